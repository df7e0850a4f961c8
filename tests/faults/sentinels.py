"""Valkey twice, and three Sentinels that promote the replica when the primary is gone."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import redis

from config.embedded.service import wait_until
from config.embedded.valkey import Valkey, free_port
from core import die_with_parent

HOST, NAME, PASSWORD = "127.0.0.1", "countersign", "of the servers"
DOWN_AFTER_MS = 1000
SENTINELS, QUORUM = 3, 2


class Server:
    """A process of Valkey's program; one that is killed can be started again with its files."""

    setting = "REDIS_URL"

    def __init__(self, folder: Path, *more: str, settings: Mapping[str, object]) -> None:
        folder.mkdir()
        self.port = free_port()
        self._argv = [str(Valkey(folder).program), str(folder / "valkey.conf"), *more]
        self._log = folder / "log"
        lines = {"bind": HOST, "port": self.port, "dir": folder, **settings}
        (folder / "valkey.conf").write_text("".join(f"{k} {v}\n" for k, v in lines.items()))
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                die_with_parent.command(self._argv),
                stdin=subprocess.DEVNULL,
                pass_fds=die_with_parent.lifelines(),
                stdout=log,
                stderr=log,
            )
        if not wait_until(self._answers, seconds=20):
            self.kill()
            raise AssertionError(self._log.read_text())

    @property
    def url(self) -> str:
        return f"redis://:{quote(PASSWORD)}@{HOST}:{self.port}/0"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()

    def ask(self, *command: str, password: str | None = None) -> Any:
        with redis.Redis(
            HOST, self.port, password=password, socket_timeout=2, decode_responses=True
        ) as client:
            return client.execute_command(*command)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.AuthenticationError:
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            return False


class WatchedPair:
    """A primary, its replica, and Sentinels that know both."""

    def __init__(self, folder: Path) -> None:
        self._opened = ExitStack()
        login: dict[str, object] = {"requirepass": f'"{PASSWORD}"', "masterauth": f'"{PASSWORD}"'}
        login |= {"appendonly": "yes", "save": '""', "repl-diskless-sync-delay": 0}
        self.servers = [self._server(folder / "a", settings=login)]
        follows = {"replicaof": f"{HOST} {self.servers[0].port}"}
        self.servers.append(self._server(folder / "b", settings=login | follows))
        self.sentinels = [self._sentinel(folder / f"sentinel-{n}") for n in range(SENTINELS)]

    def _server(self, folder: Path, *more: str, settings: Mapping[str, object]) -> Server:
        server = Server(folder, *more, settings=settings)
        self._opened.callback(server.kill)
        return server

    def _sentinel(self, folder: Path) -> Server:
        watched = f"sentinel monitor {NAME} {HOST} {self.servers[0].port} {QUORUM}"
        settings: dict[str, object] = {
            watched: "",
            f'sentinel auth-pass {NAME} "{PASSWORD}"': "",
            f"sentinel down-after-milliseconds {NAME}": DOWN_AFTER_MS,
            f"sentinel failover-timeout {NAME}": 5000,
        }
        return self._server(folder, "--sentinel", settings=settings)

    def __enter__(self) -> Self:
        if not wait_until(self._know_each_other, seconds=30):
            self.__exit__()
            raise AssertionError("the Sentinels do not find each other")
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    @property
    def url(self) -> str:
        places = ",".join(f"{HOST}:{one.port}" for one in self.sentinels)
        return f"redis+sentinel://:{quote(PASSWORD)}@{places}/{NAME}/0"

    @property
    def primary(self) -> Server:
        _host, port = self.sentinels[0].ask("SENTINEL", "get-master-addr-by-name", NAME)
        return next(one for one in self.servers if one.port == int(port))

    def fail_over(self) -> None:
        """The primary is killed; what was one comes back as the replica."""
        lost = self.primary
        lost.kill()
        assert wait_until(lambda: self.primary is not lost, seconds=60), "nobody was promoted"
        lost.start()

    def follows(self) -> bool:
        """Whether the primary has a replica again, which may be promoted in its turn."""
        said = self.primary.ask("INFO", "replication", password=PASSWORD)
        return bool(said["role"] == "master" and said["connected_slaves"] == 1)

    def _know_each_other(self) -> bool:
        found = [one.ask("SENTINEL", "master", NAME) for one in self.sentinels]
        return all(
            int(one["num-other-sentinels"]) == SENTINELS - 1 and int(one["num-slaves"]) == 1
            for one in found
        )
