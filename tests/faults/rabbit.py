"""RabbitMQ as a test has it: one node with its own files and ports, where it is installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from amqp import Connection
from amqp.exceptions import AMQPError

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from core import die_with_parent

HOST = "127.0.0.1"
# Debian's command of this name becomes another user first, who may read none of our files.
PROGRAMS = Path("/usr/lib/rabbitmq/bin")
IS_INSTALLED = (PROGRAMS / "rabbitmq-server").exists() and shutil.which("erl") is not None
# An idle machine takes a fifteenth.
START_S = 180


class Rabbit:
    """Killed, stopped and started like a server of Valkey's (tests/faults/sentinels.py)."""

    setting = "BROKER_URL"

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.port, names, between = (free_port() for _ in range(3))
        self._log = folder / "log"
        (folder / "plugins").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text("vm_memory_high_watermark.absolute = 1GB\n")
        self._env = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(between),
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_MNESIA_BASE": str(folder / "files"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # It shares two processors with all that it serves.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none",
        }
        self.start()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self.port}//"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                die_with_parent.command([str(PROGRAMS / "rabbitmq-server")]),
                # Where it leaves what it says when it crashes.
                cwd=self._log.parent,
                env=self._env,
                stdin=subprocess.DEVNULL,
                pass_fds=die_with_parent.lifelines(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if not wait_until(self._answers, seconds=START_S):
            self.close()
            raise AssertionError(self._log.read_text()[-4000:])

    def kill(self) -> None:
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)
        self.process.wait()

    def hang(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        # The node's own name server goes on without it.
        wait_until(self._names_end, seconds=20)

    def _names_end(self) -> bool:
        argv = ["epmd", "-kill"]
        said = subprocess.run(argv, env=self._env, check=False, capture_output=True, timeout=20)
        return b"not allowed" not in said.stdout + said.stderr

    def _signal(self, number: signal.Signals) -> None:
        """To the shell, and to the program that it waits for."""
        os.killpg(self.process.pid, number)

    def _answers(self) -> bool:
        connection: Any = Connection(f"{HOST}:{self.port}", connect_timeout=2)
        try:
            connection.connect()
            connection.close()
        except (OSError, AMQPError):
            return False
        return True
