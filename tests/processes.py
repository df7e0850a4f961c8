"""The product's processes as tests run them: real ones, on the test's database."""

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

from config import children
from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from core import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"


class Running:
    """One child process. Its output goes to `log`; it dies with the run whatever happens."""

    def __init__(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str],
        log: Path,
        ready: Callable[["Running"], bool],
        root: Path = ROOT,
    ) -> None:
        self.root = root
        self.argv, self.env, self.log, self._ready = argv, env, log, ready
        self.start()

    def start(self) -> None:
        self.began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                die_with_parent.command(self.argv),
                cwd=self.root,
                env=self.env,
                stdin=subprocess.DEVNULL,
                pass_fds=die_with_parent.lifelines(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(lambda: self.process.poll() is not None or self._ready(self), seconds=60)
        if self.process.poll() is not None or not self._ready(self):
            self.kill()
            raise AssertionError(f"{self.argv} did not get ready:\n{self.text()[-4000:]}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def text(self) -> str:
        """What it has written since its last start."""
        with self.log.open("rb") as file:
            file.seek(self.began)
            return file.read().decode(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, *, seconds: float = 20) -> None:
        """As a supervisor stops it: asked first, and killed when it takes too long."""
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        self.kill()
        self.start()


class Stack:
    """Console, agents' endpoint, worker and beat; each starts when it is first asked for.

    `stack.web.url`-like addresses are known before the start: `web_url`, `agents_url`.
    """

    def __init__(self, logs: Path, *, root: Path = ROOT) -> None:
        """`root`: the source that runs, which may be another release."""
        self.logs, self.root = logs, root
        self.web_port, self.agents_port = free_port(), free_port()
        self.web_url = f"http://{HOST}:{self.web_port}"
        self.agents_url = f"http://{HOST}:{self.agents_port}"
        self.env = {
            **os.environ,
            "COUNTERSIGN_PUBLIC_URL": self.web_url,
            "COUNTERSIGN_AGENT_URL": self.agents_url,
            "PYTHONUNBUFFERED": "1",
            # Tests empty the tables between them, and seal when they want to.
            "COUNTERSIGN_SEAL_EVERY_S": "3600",
            "COUNTERSIGN_RETRY_AFTER_S": "0.3,3",
            # On a busy machine a test's person takes longer than the 4 s of an installation.
            "COUNTERSIGN_FIRST_HOLD_S": "45",
            # Nobody starts a worker anew here that thinks itself deaf where a machine is too busy.
            "COUNTERSIGN_DEAF_AFTER_S": "600",
        }
        self.started: dict[str, Running] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.started.values():
            process.kill()

    @cached_property
    def web(self) -> Running:
        return self._start("web", children.web(HOST, self.web_port), _answers(self.web_url))

    @cached_property
    def agents(self) -> Running:
        argv = children.agents(HOST, self.agents_port)
        return self._start("agents", argv, _answers(self.agents_url))

    @cached_property
    def worker(self) -> Running:
        return self._start("worker", children.worker(), lambda it: " ready." in it.text())

    @cached_property
    def beat(self) -> Running:
        return self._start("beat", children.beat(), lambda it: "beat: Starting" in it.text())

    def end_worker(self) -> None:
        """Until somebody asks for it again."""
        if worker := self.started.pop("worker", None):
            worker.kill()
            del self.worker

    def output(self) -> list[tuple[str, str]]:
        return [(f"Output of {name}", it.text()[-6000:]) for name, it in self.started.items()]

    def _start(self, name: str, argv: list[str], ready: Callable[[Running], bool]) -> Running:
        log = self.logs / f"{name}.log"
        process = Running(argv, env=self.env, log=log, ready=ready, root=self.root)
        self.started[name] = process
        return process


def _answers(url: str) -> Callable[[Running], bool]:
    def answers(process: Running) -> bool:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    return answers
