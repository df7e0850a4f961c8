"""`manage.py up` as tests run it: on a data directory and ports of their own."""

import os
import pty
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import psutil

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from core import die_with_parent

ROOT = Path(__file__).resolve().parents[2]


def bare_environment() -> dict[str, str]:
    """Nobody gave us anything: neither a database nor a setting."""
    ours = re.compile("DATABASE_|REDIS_URL|COUNTERSIGN_|DJANGO_|PYTEST_")
    env = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return env | {"COUNTERSIGN_NO_BOOTSTRAP": "1"}


class Up:
    def __init__(
        self,
        data: Path,
        *options: str,
        env: Mapping[str, str] | None = None,
        user: int | None = None,
        examples: bool = False,
        terminal: bool = False,
    ) -> None:
        self.data = data
        self.port, self.agent_port = free_port(), free_port()
        self.options = [*options] if examples else ["--no-examples", *options]
        self.env = bare_environment() | dict(env or {})
        self.user = user
        self.terminal = terminal
        self.python = sys.executable
        self.log = data.parent / f"{data.name}.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)

    def start(self) -> None:
        self.launch()
        wait_until(
            lambda: self.process.poll() is not None or self.has_greeted(),
            # A cluster and a database are made first, and the machine may be busy.
            seconds=300,
        )
        assert self.has_greeted(), self.text()

    def argv(self, command: str) -> list[str]:
        return [self.python, "manage.py", command, "--data", str(self.data)]

    def launch(self) -> None:
        ports = ["--port", str(self.port), "--agent-port", str(self.agent_port)]
        argv = [*self.argv("up"), *ports]
        identity: dict[str, Any] = {}
        if self.user is not None:
            identity = {"user": self.user, "group": self.user, "extra_groups": []}
        with self._output() as output:
            self.process = subprocess.Popen(
                # As itself: the death signal comes after the change of user.
                die_with_parent.command([*argv, *self.options], signal=15, python=self.python),
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=die_with_parent.lifelines(),
                **identity,
            )

    def _output(self) -> BinaryIO:
        """The log, or a terminal whose screen is copied to it."""
        self.log.write_bytes(b"")
        if not self.terminal:
            return self.log.open("wb")
        screen, terminal = pty.openpty()
        threading.Thread(target=self._copy, args=(screen,), daemon=True).start()
        return os.fdopen(terminal, "wb")

    def _copy(self, screen: int) -> None:
        with self.log.open("wb", buffering=0) as log, suppress(OSError):
            # Ends with the last process that has the terminal.
            while data := os.read(screen, 4096):
                log.write(data)
        os.close(screen)

    def ends(self) -> int:
        return self.process.wait(60)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, sentence: str) -> bool:
        return wait_until(lambda: sentence in self.text(), seconds=30)

    def has_greeted(self) -> bool:
        return "Countersign is running" in self.text()

    def found(self, pattern: str) -> str:
        match = re.search(pattern, self.text())
        assert match, self.text()
        return match[1]

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def own(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def child(self, word: str) -> psutil.Process:
        """The child of `up` itself with this word among its arguments, once it is started."""
        assert wait_until(lambda: bool(self._children(word)), seconds=30), word
        return self._children(word)[0]

    def _children(self, word: str) -> list[psutil.Process]:
        return [one for one in self.own() if any(word in part for part in one.cmdline())]

    def is_healthy(self) -> bool:
        return all(status(port, "/healthz") == 200 for port in (self.port, self.agent_port))


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def all_gone(family: list[psutil.Process], *, seconds: float = 10) -> bool:
    return wait_until(lambda: not any(alive(process) for process in family), seconds=seconds)


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
