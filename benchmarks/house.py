"""The product as `up` runs it, with its record on and durable, beside a server to call."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from tests.database import ROOT, manage
from tests.processes import HOST, Stack
from tests.services import services

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class House:
    agents_port: int
    upstream_port: int
    token: str
    gateway_pid: int
    data: Path
    stack: Stack | None = None

    def gateway_cpu(self) -> float:
        return cpu_seconds(self.gateway_pid)

    def worker_cpu(self) -> float:
        """Of its processes that are there from first to last."""
        if self.stack is None or "worker" not in self.stack.started:
            return 0.0
        first = self.stack.worker.pid
        return sum(map(cpu_seconds, [first, *children_of(first)]))

    def database_cpu(self) -> float:
        """Of every process of this PostgreSQL, those that have ended included."""
        postmaster = int((self.data / "postgres" / "postmaster.pid").read_text().split("\n")[0])
        return cpu_seconds(postmaster, ended=True) + sum(map(cpu_seconds, children_of(postmaster)))


def cpu_seconds(pid: int, *, ended: bool = False) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # It ended before, or while, this was read.
        return 0.0
    # utime, stime and, of children that have ended, cutime and cstime.
    return sum(map(int, fields[11 : 15 if ended else 13])) / TICKS


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def house(data: Path) -> Iterator[House]:
    with ExitStack() as resources:
        urls = resources.enter_context(services(data))
        os.environ |= urls | {
            "COUNTERSIGN_DATA": str(data),
            "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        manage(["migrate", "--database", "owner", "-v", "0"], env={})
        manage(["grant_app_role"], env={})
        port = free_port()
        argv = ["-m", "benchmarks.upstream", str(port)]
        upstream = resources.enter_context(beside(argv, port, data / "upstream.log"))
        token = _world(f"http://{HOST}:{port}/mcp")
        stack = resources.enter_context(Stack(data))
        yield House(stack.agents_port, port, token, stack.agents.pid, data, stack)
        assert upstream.poll() is None


@contextmanager
def beside(argv: list[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Python that listens on this port."""
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, *argv], cwd=ROOT, stdout=output, stderr=output)
    try:
        wait_until(lambda: _listens(port), seconds=20)
        yield process
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _world(url: str) -> str:
    """An agent that may call everything on one server, as people would set it up."""
    django.setup()
    from accounts import services as accounts
    from accounts.models import User
    from accounts.roles import ensure_roles
    from audit.services import SYSTEM
    from policies.models import Effect, Rule
    from policies.services import save_rule
    from registry import services as registry
    from registry.discovery import discovery

    ensure_roles()
    bob = User.objects.create_user("bob")
    scout = accounts.create_agent("scout", owner=bob, by=bob)
    toolset = registry.create_toolset("desk", by=bob)
    server = registry.register("up", transport="http", url=url, owner=bob, by=bob, publish=True)
    registry.add_server(toolset, server, by=bob)
    registry.assign(toolset, scout, by=bob)
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    save_rule(Rule(name="allow all", effect=Effect.ALLOW), by=SYSTEM)
    return accounts.issue_token(scout, by=bob)
