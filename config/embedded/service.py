"""The base of PostgreSQL and Valkey as child processes."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from core.private_files import write_private


class CannotStart(Exception):
    """Said to the person at the terminal as it is."""


class Service(Protocol):
    name: str
    stop_signal: signal.Signals
    # Lines of its output that say nothing that matters here hold one of these.
    dull: tuple[str, ...]

    def prepare(self) -> None:
        """Make the data directory if there is none, and end what an earlier run left behind."""

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Program with arguments, and its whole environment. Asked anew for every start."""

    def is_ready(self, pid: int) -> bool: ...

    def urls(self) -> dict[str, str]: ...


def package_directory(name: str) -> Path:
    # Found, not imported: these packages do things at import that we have no use for.
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise CannotStart(
            f"The package {name} is not installed. It exists for Linux (glibc) and macOS; "
            "elsewhere give DATABASE_URL and REDIS_URL, or use docker-compose.yml."
        )
    return Path(spec.origin).parent


def environment() -> dict[str, str]:
    """Services need nothing of ours, least of all our secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {**kept, "LANG": "C", "LC_ALL": "C"}


def identity_for(directory: Path, *, program: Path) -> str:
    """The user to run `program` as: the owner of `directory`, but never root."""
    if os.geteuid() != 0:
        return "self"
    if directory.exists():
        owner = directory.stat()
        if owner.st_uid != 0:
            return f"user:{owner.st_uid}:{owner.st_gid}"
    else:
        nobody = pwd.getpwnam("nobody")
        if _anybody_reaches(directory) and _anybody_reaches(program):
            return f"user:{nobody.pw_uid}:{nobody.pw_gid}"
    if sys.platform != "linux":
        raise CannotStart(
            f"Root owns {directory} or hides it, and PostgreSQL does not run as root: "
            "start as an ordinary user, or choose another directory with --data."
        )
    nobody = pwd.getpwnam("nobody")
    return f"namespace:{nobody.pw_uid}:{nobody.pw_gid}"


def _anybody_reaches(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents if parent.exists())


def hand_over(path: Path, identity: str) -> None:
    """Give a file or directory to the user that the service runs as."""
    how, _, who = identity.partition(":")
    if how == "user":
        uid, gid = (int(number) for number in who.split(":"))
        os.chown(path, uid, gid)


def private_directory(path: Path, identity: str) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    hand_over(path, identity)
    return path


def password(data: Path, name: str) -> str:
    """A service's password, made once and kept in <data>/passwords.json."""
    path = data / "passwords.json"
    kept: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    if name not in kept:
        kept[name] = secrets.token_hex(24)
        write_private(path, json.dumps(kept))
    return kept[name]


def end_leftover(pid: int, *, home: Path, signals: list[signal.Signals]) -> None:
    """End the process that an earlier run left in `home`; another that only inherited its number
    is let alone."""
    for number in signals:
        if not works_in(pid, home):
            return
        os.kill(pid, number)
        wait_until(lambda: not works_in(pid, home), seconds=10)
    if works_in(pid, home):
        raise CannotStart(f"Process {pid} of an earlier run works in {home} and does not end.")


def works_in(pid: int, home: Path) -> bool:
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == home.resolve()
        except OSError:
            return False
    listing = subprocess.run(
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return str(home) in listing.stdout


def wait_until(true: Callable[[], bool], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
