"""The product's processes for the suite: what ends is started again, as `up` does it, and whoever
likes may kill, stop and starve each of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from config import children
from config.embedded.postgres import SUPERUSER, Postgres
from config.embedded.valkey import Valkey, free_port
from core import die_with_parent
from tests.database import ROOT, Databases
from tests.faults.paper import Paper
from tests.faults.proxy import BrokerWire, DatabaseWire

HOST = "127.0.0.1"
HOOK = Path(__file__).parent / "hook"
READY_S = 90.0
WARM = [sys.executable, "-m", "tests.faults.warm"]
Ready = Callable[["Child"], Awaitable[bool]]


class Child:
    """One process that is kept running. `up` is set while it is ready."""

    def __init__(
        self, name: str, argv: list[str], env: dict[str, str], log: Path, ready: Ready
    ) -> None:
        self.name, self.argv, self.env, self.log, self._ready = name, argv, env, log, ready
        log.touch()
        self.up = asyncio.Event()
        self.starts = 0
        # Not started again.
        self.held = False
        self.began = 0
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._keeper = asyncio.create_task(self._keep(), name=f"keeper of {self.name}")
        await asyncio.wait_for(self.up.wait(), READY_S)

    async def close(self) -> None:
        if self._keeper:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self.signal(signal.SIGKILL)
        if self.process:
            await asyncio.to_thread(self.process.wait)

    def signal(self, number: signal.Signals, *, tree: bool = False) -> None:
        """To the process, or with all that it started."""
        if self.process is None or self.process.poll() is not None:
            return
        victims = [self.process.pid]
        if tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                victims += [p.pid for p in psutil.Process(self.process.pid).children(True)]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def text(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self.began)
            return file.read().decode(errors="replace")

    async def prepare(self) -> None:
        """What has to be so before each start."""

    async def _keep(self) -> None:
        while True:
            await self.prepare()
            await self._launch()
            assert self.process is not None
            while self.process.poll() is None:
                if not self.up.is_set() and await self._ready(self):
                    self.up.set()
                await asyncio.sleep(0.1)
            self.up.clear()
            await asyncio.sleep(0.2)
            while self.held:
                await asyncio.sleep(0.1)

    async def _launch(self) -> None:
        # On the main thread: who dies with the parent dies with the thread that started it.
        self.starts += 1
        self.began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.argv,
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                pass_fds=die_with_parent.lifelines(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


class Forked:
    """As much of a process as the suite needs, of one that somebody else started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = asyncio.Event()

    def poll(self) -> int | None:
        return 0 if self.ended.is_set() else None

    def wait(self) -> None:
        """Whoever started it has waited for it."""


class WarmChild(Child):
    """Forked from an image of its own, which reads the product's code once."""

    image: asyncio.subprocess.Process | None = None

    async def _launch(self) -> None:
        if self.image is None:
            self.image = await asyncio.create_subprocess_exec(
                *self.argv,
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log.with_suffix(".image").open("ab"),
                pass_fds=die_with_parent.lifelines(),
                start_new_session=True,
            )
        assert self.image.stdin
        assert self.image.stdout
        self.starts += 1
        self.began = self.log.stat().st_size if self.log.exists() else 0
        self.image.stdin.write(f"{self.log}\n".encode())
        self.process = Forked(int(await self.image.stdout.readline()))
        self._watching = asyncio.create_task(self._watch(self.process))

    async def _watch(self, process: Forked) -> None:
        assert self.image
        assert self.image.stdout
        await self.image.stdout.readline()
        process.ended.set()

    async def close(self) -> None:
        await super().close()
        if self.image:
            self.image.kill()
            await self.image.wait()


class DatabaseChild(Child):
    def __init__(self, data: Path, log: Path) -> None:
        settings = {"max_wal_size": "256MB", "min_wal_size": "32MB", "max_connections": "200"}
        self.postgres = Postgres(data, settings={**settings, "log_min_messages": "error"})
        super().__init__("database", [], {}, log, _database_ready)

    async def prepare(self) -> None:
        # What is left of it after a kill holds its memory for a moment.
        await asyncio.to_thread(self.postgres.prepare)
        self.argv, self.env = self.postgres.command()


class BrokerChild(Child):
    def __init__(self, data: Path, log: Path) -> None:
        self.valkey = Valkey(data)
        self.valkey.prepare()
        argv, env = self.valkey.command()
        super().__init__("broker", argv, env, log, _broker_ready)


class House:
    """Everything in `home`: one database, broker, console, gateway, sealer and two workers, and
    servers that behave and that do not."""

    def __init__(
        self, home: Path, *, broken: str = "", workers: int = 2, small_disk: bool = True, **env: str
    ) -> None:
        self.home, self.broken, self.worker_count = home, broken, workers
        self._small_disk = small_disk
        self.children: dict[str, Child] = {}
        self.told = Paper(home / "told.jsonl")
        self.faults = Paper(home / "faults.jsonl")
        self.web_port, self.agents_port, self.mock_port, self.bad_port = (
            free_port() for _ in range(4)
        )
        self.wires: dict[str, DatabaseWire] = {}
        self._open_wires = contextlib.ExitStack()
        self.web_url, self.agents_url = (
            f"http://{HOST}:{port}" for port in (self.web_port, self.agents_port)
        )
        self.env = _plain_environment() | env
        self.extra = env
        self.mounted = False
        self.token = self.bob = self.alice = ""

    async def __aenter__(self) -> House:
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5))
        try:
            await self._move_in()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        # Processes before the database that they use.
        for child in reversed(self.children.values()):
            child.signal(signal.SIGCONT, tree=True)
            await child.close()
        await self.http.close()
        self._open_wires.close()
        self._unmount()

    async def _move_in(self) -> None:
        data = self._disk()
        self.database = DatabaseChild(data, self.home / "database.log")
        self.broker = BrokerChild(self._folder("broker"), self.home / "broker.log")
        await asyncio.gather(self._start(self.database), self._start(self.broker))
        databases = await asyncio.to_thread(
            Databases, self.database.postgres.url(SUPERUSER, "postgres")
        )
        self.databases, self.urls = databases, await asyncio.to_thread(databases.clone)
        with databases.superuser(self.urls) as admin:
            # As `up` sets it for its own role: a stopped process holds no locks for long.
            admin.execute(
                "ALTER ROLE countersign_test_app SET idle_in_transaction_session_timeout = '10s'"
            )
        self._furnish_environment()
        received = str(self.home / "received.jsonl")
        upstreams = {
            "mock": ["tests.faults.mock", str(self.mock_port), received],
            "misbehaving": ["tests.upstreams.misbehaving", str(self.bad_port), received],
        }
        self._allow_stdio([sys.executable, "-m", "tests.upstreams.misbehaving_stdio", received])
        self.mock, self.misbehaving = (
            self._python(name, argv, _listening) for name, argv in upstreams.items()
        )
        await asyncio.gather(*map(self._start, (self.mock, self.misbehaving)))
        await self._furnish()
        self.broker_wire = self._open_wires.enter_context(BrokerWire(self.env["REDIS_URL"]))
        web = _after(children.web(HOST, self.web_port), "config.web")
        self.web = self._ours("web", [*WARM, "web", *web], _healthy(self.web_url), WarmChild)
        gateway = _after(children.agents(HOST, self.agents_port), "config.agents")
        self.gateway = self._ours(
            "gateway", [*WARM, "gateway", *gateway], _healthy(self.agents_url), WarmChild
        )
        worker = _after(children.worker(), "celery")
        self.workers = [
            self._ours(f"worker{n}", [*WARM, "worker", *worker], _worker_ready, WarmChild)
            for n in range(1, self.worker_count + 1)
        ]
        self.sealer = self._python("seal", ["config.seal"], _alive, env=self._sealing())
        await asyncio.gather(*map(self._start, (self.web, self.gateway, *self.workers)))
        await self._start(self.sealer)

    async def count_moves(self) -> None:
        """As a worker does once a minute, all the time."""
        await self._start(self._python("tally", ["tests.faults.tallying"], _alive))

    async def _start(self, child: Child) -> None:
        self.children[child.name] = child
        await child.start()

    def _furnish_environment(self) -> None:
        self.env |= {
            **self.urls,
            **self.broker.valkey.urls(),
            "COUNTERSIGN_DATA": str(self._folder("data")),
            "COUNTERSIGN_SECRET_KEY": secrets.token_hex(32),
            "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
            "COUNTERSIGN_PUBLIC_URL": self.web_url,
            "COUNTERSIGN_AGENT_URL": self.agents_url,
            "COUNTERSIGN_AGENT_QUEUE": "2000",
            "COUNTERSIGN_STOP_WITHIN_S": "5",
            "COUNTERSIGN_METRICS_TOKEN": secrets.token_hex(16),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PYTHONUNBUFFERED": "1",
            **self.extra,
        }

    async def _furnish(self) -> None:
        url, bad = (f"http://{HOST}:{port}" for port in (self.mock_port, self.bad_port))
        argv = [sys.executable, "-m", "tests.faults.furniture", f"{url}/mcp", bad]
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=ROOT, env=self.env, stdout=subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, "the house could not be furnished"
        found: dict[str, str] = json.loads(output.splitlines()[-1])
        self.token, self.bob, self.alice = found["token"], found["bob"], found["alice"]

    def _ours(self, name: str, argv: list[str], ready: Ready, kind: type[Child] = Child) -> Child:
        """One of the product's own processes, which the suite may spoil from outside."""
        clock = self.home / f"{name}.clock"
        clock.write_text("0")
        # A `sitecustomize` of the suite's: Python imports it before anything of the product.
        hook = {
            "PYTHONPATH": os.pathsep.join([str(HOOK), str(ROOT)]),
            "FAULTS_BROKEN": self.broken,
            "FAULTS_CLOCK": str(clock),
            "FAULTS_SYNCED": str(self.home / "synced.jsonl"),
        }
        log = self.home / f"{name}.log"
        env = self.env | hook | self._wire(name)
        return kind(name, die_with_parent.command(argv), env, log, ready)

    def _wire(self, name: str) -> dict[str, str]:
        """What this process is told instead of where the database and the broker are."""
        return {}

    def _python(
        self, name: str, argv: list[str], ready: Ready, env: dict[str, str] | None = None
    ) -> Child:
        argv = die_with_parent.command([sys.executable, "-m", *argv])
        return Child(name, argv, env or self.env, self.home / f"{name}.log", ready)

    def _sealing(self) -> dict[str, str]:
        """As `up` has it: a role and a key of the sealer's own."""
        folder = self.home / "data" / "seal"
        folder.mkdir(mode=0o700)
        url, key = self.databases.seal_url(self.urls), str(folder / "key")
        return self.env | {"DATABASE_URL": url, "COUNTERSIGN_SEAL_KEY_FILE": key}

    def _allow_stdio(self, argv: list[str]) -> None:
        path = Path(self.env["COUNTERSIGN_DATA"]) / "stdio.json"
        path.write_text(json.dumps({"pipe": {"argv": argv}}))

    async def verify(self) -> tuple[int, str]:
        """What `manage.py audit_verify` says of the record."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "manage.py", "audit_verify"),
            cwd=ROOT,
            env=self.env | {"COUNTERSIGN_NO_BOOTSTRAP": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode().strip()

    def _folder(self, name: str) -> Path:
        folder = self.home / name
        folder.mkdir(mode=0o711)
        return folder

    def _disk(self) -> Path:
        """A disk of the database's own, small enough to be filled; where we may not mount, a
        folder."""
        folder = self._folder("disk")
        if self._small_disk and os.geteuid() == 0 and sys.platform == "linux":
            argv = [
                "mount",
                "-t",
                "tmpfs",
                "-o",
                "size=1500m,mode=0711",
                "countersign",
                str(folder),
            ]
            done = subprocess.run(argv, capture_output=True, check=False)
            self.mounted = done.returncode == 0
        return folder

    def _unmount(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", self.home / "disk"], check=False)
            self.mounted = False


class WiredHouse(House):
    """Console, gateway and workers reach the database and the broker by wires that can be held."""

    def _wire(self, name: str) -> dict[str, str]:
        self.wires[name] = self._open_wires.enter_context(DatabaseWire(self.env["DATABASE_URL"]))
        return {"DATABASE_URL": self.wires[name].url, "REDIS_URL": self.broker_wire.url}


def _after(argv: list[str], program: str) -> list[str]:
    """What the program is told."""
    return argv[argv.index(program) + 1 :]


def _plain_environment() -> dict[str, str]:
    ours = ("COUNTERSIGN_", "DATABASE_", "REDIS_URL", "FAULTS_")
    return {name: text for name, text in os.environ.items() if not name.startswith(ours)}


async def _database_ready(child: Child) -> bool:
    assert isinstance(child, DatabaseChild)
    return child.process is not None and child.postgres.is_ready(child.process.pid)


async def _broker_ready(child: Child) -> bool:
    assert isinstance(child, BrokerChild)
    return await asyncio.to_thread(child.valkey.is_ready, 0)


async def _worker_ready(child: Child) -> bool:
    return " ready." in child.text()


async def _alive(child: Child) -> bool:
    return True


async def _listening(child: Child) -> bool:
    with contextlib.suppress(OSError):
        port = int(child.argv[-2])
        _reader, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        return True
    return False


def _healthy(url: str) -> Ready:
    async def healthy(child: Child) -> bool:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            timeout = aiohttp.ClientTimeout(total=2)
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.get(f"{url}/healthz") as response,
            ):
                return response.status == 200
        return False

    return healthy


def now() -> float:
    return time.time()


Told = dict[str, Any]
