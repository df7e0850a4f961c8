"""Starts everything in a data directory, and stops it, in the right order."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from django.core.exceptions import ImproperlyConfigured

from audit import position
from config import children, fingerprint
from config.embedded import base_backups, wal_archive
from config.embedded.base_backups import CannotRecover, TooEarly
from config.embedded.postgres import SETTINGS, SUPERUSER, Postgres
from config.embedded.service import CannotStart, Service
from config.embedded.valkey import Valkey
from config.embedded.wal_archive import Pruning
from config.environment import check_database_urls, database_parts
from config.greeting import greeting
from config.ports import listen
from config.rolling_restart import RENEW, RollingRestart, role_of
from config.secret import old_secret_keys, open_kept
from config.secret_check import check_secret, check_signing_key, secret_of
from config.session_check import check_primary, check_session
from config.supervisor import SupervisedProcess, Supervisor
from core import die_with_parent, logs
from core.private_files import write_private

ROOT = Path(__file__).resolve().parent.parent
# Set for commands that work as the owner: where the application itself connects.
APP_URL = "COUNTERSIGN_HOST_APP_URL"
LOOPBACK = "127.0.0.0/8,::1/128"
# Beyond what calls are given to end: cut off, they are written down.
WRITTEN_WITHIN_S = 15.0
# What only the sealer is told, and what it is not.
SEALERS = ("DATABASE_SEAL_URL", "COUNTERSIGN_SEAL_KEY_FILE")
NOT_FOR_THE_SEALER = (
    "COUNTERSIGN_SECRET_KEY",
    "COUNTERSIGN_OLD_SECRET_KEYS",
    "REDIS_URL",
    "BROKER_URL",
    "DATABASE_DIRECT_URL",
)
MORE_TO_SHARE = ("COUNTERSIGN_SEAL_ROLE", "BROKER_URL", "DATABASE_DIRECT_URL")
# The first time when what people wait for has started.
MAINTAIN_FIRST_S, MAINTAIN_EVERY_S = 300.0, 3600.0
START_S = 60.0
# All that was archived since the base backup is applied first.
RECOVERY_S = 86400.0
# Of an agents' endpoint at most, with one that takes over from it.
CONNECTIONS_EACH = 20
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
    paused: bool = False
    demo: bool = False
    # So many agents' endpoints share the port.
    agents: int = 1

    @property
    def endpoints(self) -> list[str]:
        if self.agents == 1:
            return ["agents"]
        return [f"agents-{number}" for number in range(1, self.agents + 1)]

    @property
    def console_url(self) -> str:
        """The console by name on one's own machine, since browsers make no passkeys for an IP
        address."""
        is_local = self.host in (*ANY_ADDRESS, "127.0.0.1")
        return f"http://localhost:{self.port}" if is_local else self.url(self.port)

    def url(self, port: int) -> str:
        host = "127.0.0.1" if self.host in ANY_ADDRESS else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Installation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.supervisor = Supervisor(ROOT)
        # What every child may know: not how owner and maintenance reach the database.
        self.env: dict[str, str] = {}
        self.seal_env: dict[str, str] = {}
        self._owner_url = self._maintenance_url = self._superuser_url = ""
        self._maintenance: asyncio.Task[None] | None = None
        self._pruning = wal_archive.pruning()
        self._sockets: dict[str, socket.socket] = {}
        self._renewal: RollingRestart | None = None

    async def run(self) -> None:
        """Runs until a signal comes."""
        self._obey_signals()
        with one_at_a_time(self.plan):
            try:
                await self._start()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.supervisor.output.say("up", "stopping …")
            finally:
                await self._stop()

    async def _start(self) -> None:
        require_probes(self.plan)
        check_database_urls()
        self._sockets = {
            "web": opened(self.plan.host, self.plan.port, "--port"),
            "agents": opened(self.plan.host, self.plan.agent_port, "--agent-port"),
        }
        services = await self._services()
        self.env = environment(self.plan, services)
        self._owner_url = owner_url(services)
        self.seal_env = sealing_environment(self.plan, self.env)
        self.env = without(self.env, SEALERS)
        self._maintenance_url = {**os.environ, **services}.get("DATABASE_MAINTENANCE_URL", "")
        write_private(self.plan.data / "services.json", json.dumps(to_be_shared(self.env)))
        owner = {"DATABASE_OWNER_URL": self._owner_url}
        write_private(self.plan.data / "owner.json", json.dumps(owner))
        first = await self._prepare()
        if self.plan.demo:
            await self._fill_demo()
        if self.plan.paused:
            await self._pause()
        await self._processes()
        if self._maintenance_url or self._pruning:
            self._maintenance = asyncio.create_task(self._maintain(), name="maintenance")
        self._renewal = RollingRestart(self.supervisor, self.plan.data, self.env)
        asyncio.get_running_loop().add_signal_handler(RENEW, self._renewal.begin)
        # What is no terminal is a log: read by others, and kept.
        with_secrets = sys.stdout.isatty()
        self.supervisor.output.greet(greeting(self.env, first, with_secrets=with_secrets))

    async def _services(self) -> dict[str, str]:
        """The URLs of what we started because nobody gave others."""
        urls: dict[str, str] = {}
        if not os.environ.get("REDIS_URL"):
            urls |= await self._service(Valkey(self.plan.data))
        if not os.environ.get("DATABASE_URL"):
            settings = wal_archive.settings() | connections_for(self.plan.agents)
            postgres = Postgres(self.plan.data, settings=settings)
            within_s = RECOVERY_S if postgres.is_recovering() else START_S
            urls |= await self._service(postgres, within_s=within_s)
            # First: whatever else is done counts its transactions on.
            if postgres.has_database():
                check_position(postgres.url(SUPERUSER), self.plan.data)
            postgres.make_roles()
            self._superuser_url = postgres.url(SUPERUSER)
            if wrong := wal_archive.find_unwritable(postgres.identity):
                self.supervisor.output.say("up", wrong, level=logging.WARNING)
        elif self.plan.demo:
            raise CannotStart("A demo brings its own PostgreSQL: start it without DATABASE_URL.")
        else:
            check_position(owner_url({}), self.plan.data)
        return urls

    async def _service(self, service: Service, *, within_s: float = START_S) -> dict[str, str]:
        service.prepare()

        async def ready(pid: int) -> bool:
            return service.is_ready(pid)

        child = SupervisedProcess(
            service.name, service.command, ready, service.stop_signal, 30.0, dull=service.dull
        )
        if not await self.supervisor.start(child, within_s=within_s):
            raise CannotStart(f"{service.name} did not get ready in time: see what it says above.")
        return service.urls()

    async def _prepare(self) -> dict[str, str]:
        """Migrate and fill a new database; a start that finds nothing new costs one query."""
        try:
            secret, where = secret_of(self.plan.data)
            old = [open_kept(kept) for kept in old_secret_keys(self.plan.data)]
        except ImproperlyConfigured as error:
            raise CannotStart(str(error)) from error
        url, key = self.env["DATABASE_URL"], Path(self.seal_env["COUNTERSIGN_SEAL_KEY_FILE"])
        wrong = check_session(url, direct_url(self.env)) or check_secret(
            url, secret, old, where=where
        )
        if wrong := wrong or check_signing_key(url, key):
            raise CannotStart(wrong)
        if is_prepared(url):
            return {}
        self.supervisor.output.say("up", "preparing the database …")
        argv = [sys.executable, "-m", "django", "prepare"]
        if self.plan.examples:
            argv.append("--examples")
        if self.plan.demo:
            argv.append("--demo")
        env = {
            **self.env,
            "DATABASE_OWNER_URL": self._owner_url,
            "DATABASE_MAINTENANCE_URL": self._maintenance_url,
        }
        code, output = await self.supervisor.run("prepare", argv, env)
        if code != 0:
            raise CannotStart("The database could not be prepared: see what it says above.")
        return dict(json.loads(output))

    async def _fill_demo(self) -> None:
        """Runs fill_demo as the superuser of this PostgreSQL, which only the demo uses."""
        env = {**self.env, "DATABASE_URL": self._superuser_url}
        self.supervisor.output.say("up", "filling the demo …")
        code, _said = await self.supervisor.run(
            "demo", [sys.executable, "-m", "django", "fill_demo"], env
        )
        if code != 0:
            raise CannotStart("The demo could not be filled: see what it says above.")

    async def _pause(self) -> None:
        """Before anything runs that could send a call."""
        env = {
            **self.env,
            "DATABASE_URL": self._owner_url,
            "DATABASE_DIRECT_URL": "",
            APP_URL: self.env["DATABASE_URL"],
        }
        argv = [sys.executable, "-m", "django", "pause", "--reason", "up --paused"]
        code, _said = await self.supervisor.run("pause", argv, env)
        if code != 0:
            raise CannotStart("Countersign could not be paused: see what it says above.")
        self.supervisor.output.say("up", "paused: nothing is sent until `python3 manage.py resume`")

    async def _maintain(self) -> None:
        """Runs maintenance for ever."""
        await asyncio.sleep(MAINTAIN_FIRST_S)
        while True:
            if self._maintenance_url:
                await self._maintain_database()
            if self._pruning:
                said = await asyncio.to_thread(prune_archive, self._pruning)
                if said:
                    self.supervisor.output.say("maintain", said)
            await asyncio.sleep(MAINTAIN_EVERY_S)

    async def _maintain_database(self) -> None:
        """Runs it once, as the maintenance role."""
        env = {**self.env, "DATABASE_URL": self._maintenance_url, "DATABASE_DIRECT_URL": ""}
        argv = [sys.executable, "-m", "django", "maintain"]
        code, output = await self.supervisor.run("maintain", argv, env)
        for line in output.decode(errors="replace").splitlines():
            self.supervisor.output.relay("maintain", line)
        if code != 0:
            self.supervisor.output.say(
                "maintain", "failed; it is tried again in an hour", level=logging.WARNING
            )

    async def _processes(self) -> None:
        plan = self.plan
        facing = [self._child("web", children.web(plan.host, plan.port), plan.port)]
        for number, name in enumerate(plan.endpoints, start=1):
            argv = children.agents(
                plan.host, plan.agent_port, number=number if plan.agents > 1 else 0
            )
            facing.append(self._child(name, argv, plan.agent_port))
        if not all(await asyncio.gather(*(self.supervisor.start(child) for child in facing))):
            if any(child.refuses.is_set() for child in facing):
                raise CannotStart("Countersign does not start: see what it says above.")
            raise CannotStart("Countersign did not get ready in time: see what it says above.")
        # Second, so that they do not fight over the processors with what people wait for.
        await self.supervisor.start(self._child("worker", children.worker()))
        beat = self._child("beat", children.beat(), alone=True)
        await self.supervisor.start(beat)
        await self.supervisor.start(self._child("seal", children.seal(), alone=True))

    def _child(
        self, name: str, argv: list[str], port: int = 0, *, alone: bool = False
    ) -> SupervisedProcess:
        async def ready(pid: int) -> bool:
            return await answers(self.plan.url(port).removeprefix("http://"), port)

        patience_s = float(self.env["COUNTERSIGN_STOP_WITHIN_S"]) + WRITTEN_WITHIN_S
        fds = (self._sockets[role_of(name)].fileno(),) if port else ()
        argv = [*argv, "--fd", str(fds[0])] if fds else argv
        return SupervisedProcess(
            name,
            # Killed: with the supervisor goes the database that they would need to end well.
            lambda: (die_with_parent.command(argv), self.seal_env if name == "seal" else self.env),
            ready if port else None,
            stop_within_s=10.0 if alone else patience_s,
            fds=fds,
            tells=not alone,
            alone=alone,
        )

    async def _stop(self) -> None:
        """Stops what takes orders first, then the workers, then the services that all need."""
        if self._renewal:
            await self._renewal.cancel()
        if self._maintenance:
            self._maintenance.cancel()
            await asyncio.wait([self._maintenance])
        for together in (
            ("web", *self.plan.endpoints),
            ("worker", "beat"),
            ("seal",),
            ("valkey",),
            ("postgres",),
        ):
            await self.supervisor.stop(*together)

    def _obey_signals(self) -> None:
        task = asyncio.current_task()
        assert task

        def stop() -> None:
            # Asked a second time, nobody wants to wait.
            if task.cancelling():
                self.supervisor.shorten_waits()
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
        file.write(f"{plan.console_url}\n{os.getpid()}\n")
        file.flush()
        yield


def prune_archive(pruning: Pruning) -> str:
    """A sentence on what was removed, or on why nothing was; "" where there was nothing to do."""
    try:
        pruned = base_backups.prune(
            pruning.archive, pruning.backups, keep=pruning.keep, now=datetime.now(UTC)
        )
    except TooEarly:
        # Within the first such days.
        return ""
    except (CannotRecover, OSError) as error:
        return f"Nothing was removed from the archive of the log: {error}"
    return str(pruned) if pruned else ""


def require_probes(plan: Plan) -> None:
    """Raises CannotStart where the figures of several endpoints could not be told apart."""
    needs = plan.agents > 1 and os.environ.get("COUNTERSIGN_METRICS_TOKEN")
    if needs and not os.environ.get("COUNTERSIGN_PROBES"):
        raise CannotStart(
            "With COUNTERSIGN_METRICS_TOKEN, --agents needs COUNTERSIGN_PROBES: each endpoint has "
            "its figures at a port of its own (see docs/en/guides/operate.md)."
        )


def connections_for(agents: int) -> dict[str, str]:
    """Settings of the embedded PostgreSQL for so many endpoints; none for one."""
    more = (agents - 1) * CONNECTIONS_EACH
    return {"max_connections": str(int(SETTINGS["max_connections"]) + more)} if more else {}


def opened(host: str, port: int, option: str) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise CannotStart(
            f"Port {port} on {host} cannot be used ({error.strerror}): "
            f"choose another with {option}."
        ) from error


def environment(plan: Plan, services: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of the children. Those that a person set win."""
    hosts = ["127.0.0.1", "localhost", "[::1]"]
    defaults = {
        "COUNTERSIGN_PUBLIC_URL": plan.console_url,
        "COUNTERSIGN_AGENT_URL": plan.url(plan.agent_port),
        "COUNTERSIGN_HOSTS": ",".join(hosts if plan.host in ANY_ADDRESS else [*hosts, plan.host]),
        # On a machine of one's own, one's own servers are on loopback.
        "COUNTERSIGN_UPSTREAM_NETWORKS": LOOPBACK,
        # As in settings, which only children read.
        "COUNTERSIGN_STOP_WITHIN_S": "25",
        # They write to our pipe, and we to the terminal.
        "COUNTERSIGN_LOG_FORMAT": logs.style("", terminal=sys.stdout.isatty()),
    }
    env = {**defaults, **os.environ, **services}
    for name in ("DATABASE_OWNER_URL", "DATABASE_MAINTENANCE_URL"):
        env.pop(name, None)
    if url := env.get("DATABASE_SEAL_URL"):
        env["COUNTERSIGN_SEAL_ROLE"] = seal_role(url)
    return env | {
        "COUNTERSIGN_DATA": str(plan.data),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
    }


def seal_role(url: str) -> str:
    return str(database_parts("DATABASE_SEAL_URL", url).get("user", ""))


def owner_url(services: Mapping[str, str]) -> str:
    """The database URL for migrations: by default that of the application, by no pooler."""
    given = {**os.environ, **services}
    return given.get("DATABASE_OWNER_URL") or direct_url(given)


def direct_url(env: Mapping[str, str]) -> str:
    return env.get("DATABASE_DIRECT_URL") or env["DATABASE_URL"]


def sealing_environment(plan: Plan, env: Mapping[str, str]) -> dict[str, str]:
    """The sealer's: a role and a key of its own, and nothing that it has no use for. Written down
    too, for `audit_seal` beside it."""
    directory = plan.data / "seal"
    directory.mkdir(mode=0o700, exist_ok=True)
    own = {
        "DATABASE_URL": env.get("DATABASE_SEAL_URL") or direct_url(env),
        "COUNTERSIGN_SEAL_KEY_FILE": env.get("COUNTERSIGN_SEAL_KEY_FILE") or str(directory / "key"),
        # Django wants one; this one opens nothing that is sealed under the installation's.
        "COUNTERSIGN_SECRET_KEY": "the sealer has no use for it",
    }
    write_private(directory / "environment.json", json.dumps(own))
    return without(env, (*SEALERS, *NOT_FOR_THE_SEALER)) | own


def without(env: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in names}


def to_be_shared(env: Mapping[str, str]) -> dict[str, str]:
    """Settings that other commands need to work beside this one."""
    names = ["DATABASE_URL", "REDIS_URL"]
    names += ["COUNTERSIGN_PUBLIC_URL", "COUNTERSIGN_AGENT_URL", "COUNTERSIGN_UPSTREAM_NETWORKS"]
    names += [name for name in MORE_TO_SHARE if name in env]
    return {name: env[name] for name in names}


def is_prepared(url: str) -> bool:
    try:
        return fingerprint.is_prepared(url)
    except psycopg.OperationalError as error:
        raise CannotStart(f"The database of DATABASE_URL does not answer: {error}") from error


def check_position(url: str, data: Path) -> None:
    """Raises CannotStart for a standby, and where the database's files are older ones than this
    host has seen, which it notes there for everybody. Processes look at the rest by themselves,
    before they serve."""
    seen = position.read(data / "position")
    if standby := check_primary(url):
        raise CannotStart(standby)
    # Not there or not prepared: whoever comes next says so.
    with (
        suppress(psycopg.OperationalError, psycopg.errors.UndefinedTable),
        psycopg.connect(url, connect_timeout=10) as connection,
    ):
        found = connection.execute(position.NEXT).fetchone()
        if why := position.say_behind(seen, *found) if found else "":
            connection.execute(position.NOTICE, [why])
            connection.commit()
            raise CannotStart(position.REFUSED.format(why))


async def answers(host: str, port: int) -> bool:
    """Does /healthz say 200? Asked by hand: an HTTP client costs more than all the rest of `up`."""
    try:
        reader, writer = await asyncio.open_connection(host.rpartition(":")[0].strip("[]"), port)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(10):
            line = await reader.readline()
        writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in line
