"""An agent works on while its servers restart, forget it, hang up and change what they offer.

A few cycles here; `SOAK_S=600 python -m pytest tests/gateway/test_soak.py` goes on for ten minutes.
What the gateway holds afterwards is what it held after the first cycle.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp
import psutil
import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from registry import services
from registry.discovery import discovery
from registry.models import Server, Toolset
from tests.flows.house import commands
from tests.flows.servers import Server as Started
from tests.gateway.agent import LEGACY, MODERN, Agent
from tests.gateway.conftest import Play, until
from tests.gateway.test_listening import CHANGED, following, get_stream, listening
from tests.processes import Stack
from tests.upstreams.moody import Moody, moody

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

LASTS_S = float(os.environ.get("SOAK_S", "0"))
CYCLES = 4
MORE_MIB = 24
_numbers = count(1)
PIPE = [sys.executable, "-m", "examples.calculator"]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Streams stay open as long as it all lasts, and a silent one ends the test one day."""
    timeout = aiohttp.ClientTimeout(total=LASTS_S + 300)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield session


@dataclass(frozen=True)
class Held:
    sockets: int
    files: int
    children: int
    mib: float


def held(process: psutil.Process) -> Held:
    return Held(
        sockets=len(process.net_connections("tcp")),
        files=process.num_fds(),
        children=len(process.children(recursive=True)),
        mib=process.memory_info().rss / 2**20,
    )


@sync_to_async
def register(toolset: Toolset, by: User, origin: str) -> None:
    for slug, path in (("web", "/mcp"), ("old", "/sse")):
        made = services.register(
            slug, transport="http", url=origin + path, owner=by, by=by, publish=True
        )
        services.add_server(toolset, made, by=by)
    made = services.register(
        "pipe", transport="stdio", command="pipe", owner=by, by=by, publish=True
    )
    services.add_server(toolset, made, by=by)


async def look() -> None:
    """As the schedule does: each server is asked what it offers now."""
    servers = [pk async for pk in Server.objects.exclude(slug="rec").values_list("pk", flat=True)]
    for found in await discovery.look_at(servers):
        assert found.succeeded, found.summary


async def works(agents: list[Agent]) -> None:
    for agent in agents:
        assert (await agent.call("web.say", another())).text == "said"
        assert (await agent.call("old.say", another())).text == "said"
        added = await agent.call("pipe.add", {"a": 1, "b": 2})
        assert added.result["structuredContent"] == {"result": 3.0}


def another() -> dict[str, int]:
    """What may have run is not sent again unasked: no two calls are the same."""
    return {"n": next(_numbers)}


async def hangs_up(server: Moody, agents: list[Agent]) -> None:
    """In the middle of calls: what became of them is not known, and nobody is told otherwise."""
    server.drops = True
    for agent in agents:
        for tool in ("web.say", "old.say"):
            lost = await agent.call(tool, another())
            assert lost.result["isError"], lost.text
            assert lost.result["_meta"]["countersign/executed"] == "unknown"
    server.drops = False


async def changes(server: Moody, heard: list[Any]) -> None:
    """Agents hear of it, and of the way back."""
    for tools in (["say"], ["say", "spare"]):
        server.tools = tools
        await look()
        for stream in heard:
            while (await following(stream))["method"] != CHANGED:
                pass


async def forgets(server: Moody, agent: Agent) -> None:
    server.forget()
    # 2024-11-05 has no word for that: what one call came to is not known, and the next is greeted.
    lost = await agent.call("old.say", another())
    assert lost.result["_meta"]["countersign/executed"] == "unknown"


async def dies(gateway: psutil.Process) -> None:
    """The process on stdio; a new one may be started a few times a minute."""
    pipes = [
        child
        for child in gateway.children(recursive=True)
        if "examples.calculator" in " ".join(child.cmdline())
    ]
    for child in pipes:
        child.kill()
    # Until the gateway knows: what is sent into a dying process has an outcome that nobody knows.
    _gone, alive = await asyncio.to_thread(psutil.wait_procs, pipes, 10)
    assert not alive


async def test_an_agent_works_on_whatever_its_servers_do(
    play: Play, toolset: Toolset, stack: Stack, bob: User
) -> None:
    agents = [play(MODERN), play(LEGACY[0]), play(LEGACY[-1])]
    gateway = psutil.Process(stack.agents.pid)
    async with AsyncExitStack() as on:
        server = await on.enter_async_context(moody())
        on.enter_context(commands([Started("pipe", PIPE)]))
        await register(toolset, bob, server.origin)
        await look()
        await agents[1].begin()
        heard = [
            await listening(agents[0], on, {"toolsListChanged": True}),
            await get_stream(agents[1], on),
        ]
        moods: list[Callable[[], Awaitable[None]]] = [
            server.restart,
            lambda: forgets(server, agents[0]),
            lambda: hangs_up(server, agents),
            lambda: changes(server, heard),
        ]
        await cycle(moods, agents)
        before, links = held(gateway), server.open
        calls, began, cycles = server.calls, time.monotonic(), 0
        while cycles < CYCLES or time.monotonic() - began < LASTS_S:
            if cycles % 12 == 1:
                await dies(gateway)
            await cycle(moods, agents)
            cycles += 1

        async def is_as_before() -> bool:
            now = held(gateway)
            return (
                now.sockets <= before.sockets
                and now.files <= before.files + 2
                and now.children == before.children
                and now.mib <= before.mib + MORE_MIB
                and server.open <= links
            )

        await until(is_as_before)
        # With -s: what a long run saw.
        sys.stdout.write(
            f"{cycles} cycles, {server.calls - calls} calls, {before} {held(gateway)}\n"
        )
        assert server.calls - calls >= cycles * len(agents) * 2 * (len(moods) + 1)


async def cycle(moods: list[Callable[[], Awaitable[None]]], agents: list[Agent]) -> None:
    for mood in moods:
        await mood()
        await works(agents)
