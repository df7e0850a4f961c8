"""What the docs tell people to paste."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.flows.servers import NODE
from tests.processes import ROOT

ENGLISH = ROOT / "docs" / "en"
CLIENTS = ENGLISH / "guides" / "connect-clients.md"
FIRST_STEPS = ENGLISH / "tutorials" / "first-steps.md"
HERE = "http://127.0.0.1:8001"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, page: Path = CLIENTS) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text()) if name == language]


def curls(page: Path = CLIENTS) -> list[str]:
    return [block for block in blocks("sh", page) if block.startswith("curl ")]


def run(language: str, text: str, *, url: str, env: dict[str, str], folder: Path) -> str:
    """As somebody would who pastes it, with the address of their own installation."""
    argv = {
        "sh": ["sh", "-c"],
        "python": [sys.executable, "-c"],
        "js": [NODE, "--input-type=module", "-e"],
    }[language]
    done = subprocess.run(
        [*argv, text.replace(HERE, url)],
        cwd=ROOT,
        env={**env, "PATH": f"{env['PATH']}:{_with_curl(folder)}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _with_curl(folder: Path) -> Path:
    """Comes last on PATH: a machine's own curl is preferred."""
    stand_in = folder / "curl"
    if shutil.which("curl") is None and not stand_in.exists():
        script = Path(__file__).parent / "curl.py"
        stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        stand_in.chmod(0o755)
    return folder
