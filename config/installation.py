"""From a data directory to a running Countersign and back, in the order that matters."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from config import children, fingerprint
from config.embedded.postgres import Postgres
from config.embedded.service import CannotStart, Service, write_private
from config.embedded.valkey import Valkey
from config.greeting import greeting
from config.ports import listen
from config.renewal import RENEW, Renewal
from config.supervisor import Child, Supervisor

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.0/8,::1/128"
# Beyond what calls are given to end: cut off, they are written down.
WRITTEN_WITHIN_S = 15.0
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 what a person may choose


class AlreadyRunning(Exception):
    pass


@dataclass(frozen=True)
class Plan:
    host: str
    port: int
    agent_port: int
    data: Path
    examples: bool

    def url(self, port: int) -> str:
        host = "127.0.0.1" if self.host in ANY_ADDRESS else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Installation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.supervisor = Supervisor(ROOT)
        self.env: dict[str, str] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._renewal: Renewal | None = None

    async def run(self) -> None:
        """Until a signal comes."""
        self._obey_signals()
        with one_at_a_time(self.plan):
            try:
                await self._start()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.supervisor.say("up", "stopping …")
            finally:
                await self._stop()

    async def _start(self) -> None:
        self._sockets = {
            "web": opened(self.plan.host, self.plan.port, "--port"),
            "agents": opened(self.plan.host, self.plan.agent_port, "--agent-port"),
        }
        self.env = environment(self.plan, await self._services())
        write_private(self.plan.data / "services.json", json.dumps(to_be_shared(self.env)))
        first = await self._prepare()
        await self._processes()
        self._renewal = Renewal(self.supervisor, self.plan.data, self.env)
        asyncio.get_running_loop().add_signal_handler(RENEW, self._renewal.begin)
        print(greeting(self.env, first), flush=True)  # noqa: T201 this is the program's output

    async def _services(self) -> dict[str, str]:
        """The URLs of what we started because nobody gave others."""
        urls: dict[str, str] = {}
        if not os.environ.get("REDIS_URL"):
            urls |= await self._service(Valkey(self.plan.data))
        if not os.environ.get("DATABASE_URL"):
            postgres = Postgres(self.plan.data)
            urls |= await self._service(postgres)
            postgres.make_roles()
        return urls

    async def _service(self, service: Service) -> dict[str, str]:
        service.prepare()

        async def ready(pid: int) -> bool:
            return service.is_ready(pid)

        child = Child(service.name, service.command, ready, service.stop_signal, 30.0)
        if not await self.supervisor.start(child):
            raise CannotStart(f"{service.name} did not get ready in time: see what it says above.")
        return service.urls()

    async def _prepare(self) -> dict[str, str]:
        """Migrate and fill a new database; a start that finds nothing new costs one query."""
        if is_prepared(self.env["DATABASE_OWNER_URL"]):
            return {}
        self.supervisor.say("up", "preparing the database …")
        argv = [sys.executable, "-m", "django", "prepare"]
        if self.plan.examples:
            argv.append("--examples")
        code, output = await self.supervisor.run("prepare", argv, self.env)
        if code != 0:
            raise CannotStart("The database could not be prepared: see what it says above.")
        return dict(json.loads(output))

    async def _processes(self) -> None:
        plan = self.plan
        facing = [
            self._child("web", children.web(plan.host, plan.port), plan.port),
            self._child("agents", children.agents(plan.host, plan.agent_port), plan.agent_port),
        ]
        if not all(await asyncio.gather(*(self.supervisor.start(child) for child in facing))):
            raise CannotStart("Countersign did not get ready in time: see what it says above.")
        # Second, so that they do not fight over the processors with what people wait for.
        await self.supervisor.start(self._child("worker", children.worker()))
        beat = self._child("beat", children.beat(), alone=True)
        await self.supervisor.start(beat)

    def _child(self, name: str, argv: list[str], port: int = 0, *, alone: bool = False) -> Child:
        async def ready(pid: int) -> bool:
            return await answers(self.plan.url(port).removeprefix("http://"), port)

        patience_s = float(self.env["COUNTERSIGN_STOP_WITHIN_S"]) + WRITTEN_WITHIN_S
        fds = (self._sockets[name].fileno(),) if port else ()
        argv = [*argv, "--fd", str(fds[0])] if fds else argv
        return Child(
            name,
            lambda: (children.leashed(argv), self.env),
            ready if port else None,
            stop_within_s=10.0 if alone else patience_s,
            fds=fds,
            tells=not alone,
            alone=alone,
        )

    async def _stop(self) -> None:
        """Those that take orders first, those that carry them out next, what all need last."""
        if self._renewal:
            await self._renewal.cancel()
        for together in (("web", "agents"), ("worker", "beat"), ("valkey",), ("postgres",)):
            await self.supervisor.stop(*together)

    def _obey_signals(self) -> None:
        task = asyncio.current_task()
        assert task

        def stop() -> None:
            # Asked a second time, nobody wants to wait.
            if task.cancelling():
                self.supervisor.hurry()
            else:
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop)


@contextmanager
def one_at_a_time(plan: Plan) -> Iterator[None]:
    try:
        # Others may pass through it, since PostgreSQL may have to run as another user.
        plan.data.mkdir(mode=0o711, parents=True, exist_ok=True)
        file = (plan.data / "up.lock").open("a+")
    except OSError as error:
        raise CannotStart(
            f"The data directory {plan.data} cannot be used ({error.strerror}): "
            "start as the user who owns it, or choose another with --data."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AlreadyRunning(
                f"Countersign is already running on {plan.data}, at {file.readline().strip()}"
            ) from None
        file.truncate(0)
        file.write(f"{plan.url(plan.port)}\n{os.getpid()}\n")
        file.flush()
        yield


def opened(host: str, port: int, option: str) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise CannotStart(
            f"Port {port} on {host} cannot be used ({error.strerror}): "
            f"choose another with {option}."
        ) from error


def environment(plan: Plan, services: Mapping[str, str]) -> dict[str, str]:
    """What the children's settings read. What a person set in the environment counts first."""
    hosts = ["127.0.0.1", "localhost", "[::1]"]
    defaults = {
        "COUNTERSIGN_PUBLIC_URL": plan.url(plan.port),
        "COUNTERSIGN_AGENT_URL": plan.url(plan.agent_port),
        "COUNTERSIGN_HOSTS": ",".join(hosts if plan.host in ANY_ADDRESS else [*hosts, plan.host]),
        # On a machine of one's own, one's own servers are on loopback.
        "COUNTERSIGN_UPSTREAM_NETWORKS": LOOPBACK,
        # As in settings, which only children read.
        "COUNTERSIGN_STOP_WITHIN_S": "25",
    }
    env = {**defaults, **os.environ, **services}
    env.setdefault("DATABASE_OWNER_URL", env["DATABASE_URL"])
    return env | {
        "COUNTERSIGN_DATA": str(plan.data),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
    }


def to_be_shared(env: Mapping[str, str]) -> dict[str, str]:
    """What other commands must know to work beside this one."""
    names = ["DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL"]
    names += ["COUNTERSIGN_PUBLIC_URL", "COUNTERSIGN_AGENT_URL", "COUNTERSIGN_UPSTREAM_NETWORKS"]
    return {name: env[name] for name in names}


def is_prepared(url: str) -> bool:
    try:
        return fingerprint.is_prepared(url)
    except psycopg.OperationalError as error:
        raise CannotStart(f"The database of DATABASE_URL does not answer: {error}") from error


async def answers(host: str, port: int) -> bool:
    """Does /healthz say 200? Asked by hand: an HTTP client costs more than all the rest of `up`."""
    try:
        reader, writer = await asyncio.open_connection(host.rpartition(":")[0].strip("[]"), port)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        line = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in line
