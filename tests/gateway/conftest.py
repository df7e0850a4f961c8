"""A server that records, a toolset that scout may use, and agents of every revision."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from secrets import token_hex
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from accounts.roles import Role
from approvals import services as approvals
from approvals.models import Approval
from audit.services import SYSTEM
from calls.models import Call
from policies.models import Effect, Rule
from policies.services import save_rule
from registry import services
from registry.discovery import discovery
from registry.models import Server, Toolset
from tests.conftest import person
from tests.database import Cleaner
from tests.gateway.agent import LEGACY, MODERN, Agent
from tests.processes import Stack
from tests.upstreams.library import Library
from tests.upstreams.recorder import Recorder

Play = Callable[..., Agent]
AddRule = Callable[..., Awaitable[None]]
# Of those with a handshake: what the older ones share with the newest is asked by the long tests.
NEWEST = LEGACY[0]
OLDER = [pytest.param(revision, marks=pytest.mark.long) for revision in LEGACY[1:]]
# Higher than any that a test's own changes make.
_versions = itertools.count(1000)
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="session")
def running_recorder() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder


@pytest.fixture
def upstream(running_recorder: Recorder) -> Recorder:
    running_recorder.reset()
    return running_recorder


@pytest.fixture
def furniture(upstream: Recorder, cleaner: Cleaner, transactional_db: None) -> None:
    """Bob, scout and their toolset with what the recorder offers. The server is really asked for
    the first test of a run; for others its rows are put back, and each process greets it anew."""
    if cleaner.knows(upstream.url):
        cleaner.furnish(upstream.url)
        forget_agreements()
    else:
        with cleaner.keeping(upstream.url):
            _furnish(upstream)
    upstream.received.clear()


def _furnish(upstream: Recorder) -> None:
    bob = person("bob", Role.VIEWER)
    made = services.create_toolset("desk", by=bob)
    services.assign(made, accounts.create_agent("scout", owner=bob, by=bob), by=bob)
    add_server("rec", made, upstream, by=bob)
    add_rule(Effect.ALLOW, "*", position=900)


@pytest.fixture
def bob(request: pytest.FixtureRequest, db: None) -> User:
    """Owns scout."""
    if "toolset" not in request.fixturenames:
        return person("bob", Role.VIEWER)
    request.getfixturevalue("furniture")
    return User.objects.get(username="bob")


@pytest.fixture
def scout(request: pytest.FixtureRequest, bob: User) -> AgentRow:
    if "toolset" not in request.fixturenames:
        return accounts.create_agent("scout", owner=bob, by=bob)
    return AgentRow.objects.get(name="scout")


@pytest.fixture
def toolset(furniture: None) -> Toolset:
    """Everything that the recorder offers is allowed; what a test holds or denies, it says."""
    return Toolset.objects.get(slug="desk")


def add_server(slug: str, toolset: Toolset, upstream: Recorder, *, by: User) -> None:
    """Another server at the recorder's address, with what it offers now."""
    server = services.register(
        slug, transport="http", url=upstream.url, owner=by, by=by, publish=True
    )
    services.add_server(toolset, server, by=by)
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary


def forget_agreements() -> None:
    """As after any change of an address: each process greets the servers anew."""
    Server.objects.update(connection_version=next(_versions))


def add_rule(effect: Effect, tool: str, *, position: int = 100, **more: Any) -> Rule:
    named = {"name": f"{effect} {tool}"} | more
    made = Rule(effect=effect, tool=tool, position=position, **named)
    return save_rule(made, by=SYSTEM)


server = sync_to_async(add_server)


@pytest.fixture(scope="session")
def running_library() -> Iterator[Library]:
    with Library() as library:
        yield library


@pytest.fixture
def library(running_library: Library, toolset: Toolset, bob: User) -> Library:
    """A server of the toolset with resources and prompts, all published."""
    running_library.reset()
    add_server("lib", toolset, running_library, by=bob)
    running_library.received.clear()
    return running_library


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=200)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


@pytest.fixture
def rule(stack: Stack, http: aiohttp.ClientSession, scout: AgentRow, bob: User) -> AddRule:
    """Adds a rule; by its return every running process goes by it."""

    async def add(effect: Effect, tool: str, **options: Any) -> None:
        await sync_to_async(add_rule)(effect, tool, **options)
        # Who does not know this token looks again, and then knows the rule too.
        token = await sync_to_async(accounts.issue_token)(scout, by=bob)
        if "agents" in stack.started:
            await Agent(http, f"{stack.agents_url}/mcp/desk", token).post(PING)
        if "web" in stack.started:
            headers = {"Authorization": f"Bearer {token}"}
            async with http.get(f"{stack.web_url}/api/tools", headers=headers) as response:
                await response.read()

    return add


@pytest.fixture
def play(stack: Stack, http: aiohttp.ClientSession, toolset: Toolset, scout_token: str) -> Play:
    """Makes an agent that speaks a revision, with abilities, at an address below /mcp/."""
    assert stack.agents
    # What its processes learn of a client is for one test alone.
    client = f"test-{token_hex(4)}"

    def play(
        revision: str = MODERN,
        *,
        at: str = "desk",
        token: str = "",
        at_stack: Stack = stack,
        **options: Any,
    ) -> Agent:
        url = f"{at_stack.agents_url}/mcp/{at}"
        return Agent(http, url, token or scout_token, revision, **{"client": client, **options})

    return play


@pytest.fixture
def agent(play: Play) -> Agent:
    """Of the modern revision."""
    return play()


@pytest.fixture(params=[MODERN, NEWEST, *OLDER])
def any_agent(request: pytest.FixtureRequest, play: Play) -> Agent:
    """Of every revision in turn."""
    return play(request.param)


@pytest.fixture(params=[NEWEST, *OLDER])
def legacy_agent(request: pytest.FixtureRequest, play: Play) -> Agent:
    return play(request.param)


async def the_call(call_id: str | None = None) -> Call:
    """The one that there is, or that one."""
    found = Call.objects.filter(pk=call_id) if call_id else Call.objects.all()
    return await found.select_related("agent").aget()


async def until(condition: Callable[[], Awaitable[Any]], *, seconds: float = 15) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0.02)
    return found


async def decide(by: User, *, approve: bool = True, reason: str = "") -> None:
    """What the person's button does, for the one call that waits, once its agent was told of it."""
    await until(
        Approval.objects.filter(state=Approval.State.WAITING, call__start_after=None).aexists
    )
    await _vote(by, approve=approve, reason=reason)


@sync_to_async
def _vote(by: User, *, approve: bool, reason: str) -> None:
    approval = Approval.objects.for_queue().get(state=Approval.State.WAITING)
    digest = approval.call.call_digest
    approvals.vote(approval, by=by, approve=approve, seen_digest=digest, reason=reason)


async def decide_soon(by: User, *, after: float = 2.0, **decision: Any) -> None:
    await asyncio.sleep(after)
    await decide(by, **decision)
