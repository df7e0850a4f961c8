"""Two consoles and two endpoints behind each example balancer: what one begins, another goes on
with, and the loss of one endpoint or one console loses nothing that was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, LiteralString

import aiohttp
import psycopg
import pytest

from config.embedded.valkey import free_port
from tests.config.crossing import cancellations_arrive, listeners_hear, streams_go_on
from tests.config.test_proxies import AGENTS, CONSOLE, PROGRAMS, balanced
from tests.database import python
from tests.faults.clients import BROKEN, Member
from tests.faults.test_restore import until
from tests.gateway.agent import TASKS, Agent, Reply
from tests.processes import HOST, ROOT, Stack

ROUNDS = 8
APPROVALS = 16
REST = [name for name in PROGRAMS if name != "nginx"]
STOPPED = """
import django; django.setup()
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from django.contrib.auth.models import Group
for name in ("olga", "otto"):
    User.objects.create_user(name).groups.add(Group.objects.get(name=Role.OPERATOR))
olga = User.objects.get(username="olga")
freezes.begin(by=olga, reason="a drill", agent=Agent.objects.get(name="scout"))
"""
RESUMED = """
import django; django.setup()
from accounts.models import User
from approvals import freezes
from calls.models import Freeze
freezes.end(Freeze.objects.get(), by=User.objects.get(username="otto"), why="it is over")
"""
REVOKED = """
import django; django.setup()
from accounts import services
from accounts.models import AgentToken, User
services.revoke_token(AgentToken.objects.get(), by=User.objects.get(username="bob"))
"""
APPROVED = "SELECT call_id::text FROM approvals_approval WHERE state = 'approved'"
SUCCEEDED = "SELECT id::text FROM calls_call WHERE state = 'succeeded'"
CALLS = "SELECT convert_from(arguments, 'UTF8')::json->>'nonce', state FROM calls_call"


class Site:
    """Both stacks, and the world they share, as clients of the balancer find it."""

    def __init__(self, stacks: list[Stack], http: aiohttp.ClientSession, port: int) -> None:
        self.stacks, self.http, self.port = stacks, http, port
        self.made: dict[str, str] = {}
        self.paper = Path()
        self.numbers = itertools.count()

    @property
    def env(self) -> dict[str, str]:
        return {**self.stacks[0].env, "DJANGO_SETTINGS_MODULE": "config.settings"}

    def agent(self, revision: str = "2026-07-28", **capabilities: Any) -> Agent:
        url = f"https://{AGENTS}:{self.port}/mcp/desk"
        return Agent(self.http, url, self.made["token"], revision, capabilities)

    async def call(self, agent: Agent, tool: str = "now") -> Reply:
        return await agent.call(f"up.{tool}", {"nonce": str(next(self.numbers)), "ms": 0})

    async def approve(self, call_id: str) -> None:
        web = f"https://{CONSOLE}:{self.port}"
        house: Any = SimpleNamespace(agents_url="", web_url=web, token="", alice=self.made["alice"])
        await Member(house, self.http)._decide(call_id, "approve")

    async def elsewhere(self, program: str) -> None:
        """As another machine does it."""
        await asyncio.to_thread(python, "-c", program, env=self.env)

    @property
    def received(self) -> Counter[str]:
        lines = self.paper.read_text().splitlines()
        return Counter(json.loads(line)["nonce"] for line in lines)

    def ids(self, query: LiteralString) -> set[str]:
        with psycopg.connect(self.env["DATABASE_URL"]) as database:
            return {row[0] for row in database.execute(query).fetchall()}

    def recorded(self) -> dict[str, str]:
        with psycopg.connect(self.env["DATABASE_URL"]) as database:
            return dict(database.execute(CALLS).fetchall())


@pytest.fixture
def stacks(
    own_stack: Stack, fresh_database: dict[str, str], tmp_path: Path
) -> Iterator[list[Stack]]:
    other = tmp_path / "other"
    other.mkdir()
    with Stack(other) as second:
        own_stack.env |= fresh_database | {"COUNTERSIGN_TRUSTED_PROXIES": HOST}
        yield [own_stack, second]
        own_stack.__exit__()


@asynccontextmanager
async def site(program: str, stacks: list[Stack], folder: Path) -> AsyncIterator[Site]:
    port, mock_port = free_port(), free_port()
    first, second = stacks
    first.env |= {
        "COUNTERSIGN_PUBLIC_URL": f"https://{CONSOLE}:{port}",
        "COUNTERSIGN_AGENT_URL": f"https://{AGENTS}:{port}",
        "COUNTERSIGN_HOSTS": f"{CONSOLE},{HOST}",
        "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
    }
    second.env = dict(first.env)
    mock = [sys.executable, "-m", "tests.faults.mock", str(mock_port), str(folder / "received")]
    upstream = await asyncio.create_subprocess_exec(*mock, cwd=ROOT)
    try:
        made = await asyncio.to_thread(furnish, mock_port, first.env)
        await asyncio.to_thread(start, stacks)
        ports = {
            CONSOLE: [stack.web_port for stack in stacks],
            AGENTS: [stack.agents_port for stack in stacks],
        }
        async with balanced(program, folder, ports, port) as http:
            here = Site(stacks, http, port)
            here.made, here.paper = made, folder / "received"
            yield here
    finally:
        upstream.kill()
        await upstream.wait()


def furnish(mock_port: int, env: dict[str, str]) -> dict[str, str]:
    url = f"http://{HOST}:{mock_port}/mcp"
    argv = [sys.executable, "-m", "tests.faults.furniture", url]
    env = {**env, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(argv, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def start(stacks: list[Stack]) -> None:
    for stack in stacks:
        assert stack.web
        assert stack.agents
    assert stacks[0].worker


@pytest.mark.alone
@pytest.mark.parametrize(
    "program", ["nginx", *(pytest.param(one, marks=pytest.mark.proof) for one in REST)]
)
async def test_what_begins_on_one_host_goes_on_at_another(
    program: str, stacks: list[Stack], tmp_path: Path
) -> None:
    async with site(program, stacks, tmp_path) as here:
        await sessions_go_on(here)
        await a_task_is_approved_and_polled(here)
        await a_stop_reaches_both(here)
        await listeners_hear(here)
        await cancellations_arrive(here)
        await streams_go_on(here, here.stacks[1].agents.kill)
        await asyncio.to_thread(here.stacks[1].agents.start)
        await one_endpoint_is_lost(here)
        await one_console_is_lost(here)
        await a_revoked_token_opens_neither(here)


async def sessions_go_on(here: Site) -> None:
    for revision in ("2025-11-25", "2025-06-18"):
        agent = here.agent(revision)
        replies = [await here.call(agent) for _ in range(ROUNDS)]
        assert [reply.status for reply in replies] == [200] * ROUNDS, replies[-1].body


async def a_task_is_approved_and_polled(here: Site) -> None:
    agent = here.agent(**TASKS)
    held = await here.call(agent, "held")
    await here.approve(held.call_id)
    async with asyncio.timeout(30):
        while True:
            polls = [
                await agent.ask("tasks/get", {"taskId": held.result["taskId"]})
                for _ in range(ROUNDS)
            ]
            assert {poll.status for poll in polls} == {200}
            if polls[0].result["status"] != "working":
                break
    assert {poll.result["status"] for poll in polls} == {"completed"}


async def a_stop_reaches_both(here: Site) -> None:
    agent = here.agent()
    await here.elsewhere(STOPPED)
    replies = [await here.call(agent) for _ in range(ROUNDS)]
    assert all("a drill" in reply.text for reply in replies)
    await here.elsewhere(RESUMED)
    replies = [await here.call(agent) for _ in range(ROUNDS)]
    assert not any(reply.result.get("isError") for reply in replies)


async def one_endpoint_is_lost(here: Site) -> None:
    """Answers that came are in the record; from then on the other one answers."""
    agent, answered = here.agent(), set[str]()

    async def ask(nonce: str) -> None:
        with suppress(*BROKEN):
            reply = await agent.call("up.now", {"nonce": nonce, "ms": 5})
            if reply.status == 200 and not reply.result.get("isError"):
                answered.add(nonce)

    asked = [asyncio.create_task(ask(f"lost {n}")) for n in range(64)]
    await until(lambda: bool(answered))
    here.stacks[0].agents.kill()
    await asyncio.gather(*asked)
    states = here.recorded()
    assert {states[nonce] for nonce in answered} == {"succeeded"}
    assert max(here.received.values()) == 1
    statuses = sorted([(await here.call(agent)).status for _ in range(ROUNDS)])
    # Caddy may learn of the loss by one of them.
    assert statuses[-1] in (200, 502)
    assert set(statuses[:-1]) == {200}, statuses
    here.stacks[0].agents.start()


async def one_console_is_lost(here: Site) -> None:
    """Approvals that it acknowledged are in the record; the others are given at the other one, and
    each call is sent once."""
    agent, approved = here.agent(**TASKS), set[str]()
    calls = [(await here.call(agent, "held")).call_id for _ in range(APPROVALS)]

    async def approve(call_id: str) -> None:
        with suppress(*BROKEN):
            await here.approve(call_id)
            approved.add(call_id)

    asked = [asyncio.create_task(approve(one)) for one in calls]
    await until(lambda: bool(approved))
    here.stacks[0].web.kill()
    await asyncio.gather(*asked)
    assert approved <= here.ids(APPROVED)
    await asyncio.gather(*(here.approve(one) for one in set(calls) - here.ids(APPROVED)))
    await until(lambda: here.ids(SUCCEEDED) >= set(calls))
    assert max(here.received.values()) == 1
    here.stacks[0].web.start()


async def a_revoked_token_opens_neither(here: Site) -> None:
    agent = here.agent()
    await here.elsewhere(REVOKED)
    replies = [await here.call(agent) for _ in range(ROUNDS)]
    assert {reply.status for reply in replies} == {401}
