"""A process of the agents' endpoint serves so many connections at once, and turns more away."""

import asyncio
import resource
from contextlib import AsyncExitStack

import pytest
from asgiref.sync import sync_to_async

from calls.models import Call
from registry.models import Toolset
from tests.gateway.agent import Agent
from tests.gateway.conftest import Play
from tests.gateway.test_front import Line, call, line_of, said
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 4


@pytest.fixture
async def agent(toolset: Toolset, own_stack: Stack, play: Play) -> Agent:
    own_stack.env |= {"COUNTERSIGN_CONNECTIONS": str(MOST), "COUNTERSIGN_HEAD_WITHIN_S": "0.5"}
    assert await sync_to_async(lambda: own_stack.agents)()
    return play(at_stack=own_stack)


async def fill(agent: Agent, opened: AsyncExitStack) -> list[Line]:
    lines = [await opened.enter_async_context(line_of(agent)) for _ in range(MOST)]
    for n, line in enumerate(lines):
        assert said(await line.ask(line.request(call(str(n))))) == str(n)
    return lines


async def get(agent: Agent, path: str) -> bytes:
    async with line_of(agent) as line:
        line.writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await line.reader.readuntil(b"\r\n")


async def test_one_more_is_turned_away_and_the_others_are_served(
    agent: Agent, upstream: Recorder
) -> None:
    async with AsyncExitStack() as opened:
        lines = await fill(agent, opened)

        async with line_of(agent) as surplus:
            request = surplus.request(call("one too many"))
            for piece in (request[:40], request[40:]):
                surplus.writer.write(piece)
            answer = await surplus.reader.read()

        head, _, _body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in head
        assert b"connection: close" in head
        assert b'"kind":"limit","reason":"This process already serves' in answer
        assert await Call.objects.acount() == MOST
        assert said(await lines[0].ask(lines[0].request(call("again")))) == "again"
        # Its place is free once it is gone.
        lines[0].writer.close()
        await lines[0].writer.wait_closed()
        async with line_of(agent) as next_one:
            assert said(await next_one.ask(next_one.request(call("next")))) == "next"


@pytest.mark.long
async def test_probes_are_answered_also_then(agent: Agent) -> None:
    async with AsyncExitStack() as opened:
        await fill(agent, opened)

        assert await get(agent, "/livez") == b"HTTP/1.1 200 OK\r\n"
        assert await get(agent, "/readyz") == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.long
async def test_a_probe_opens_the_way_to_nothing_else(agent: Agent) -> None:
    async with AsyncExitStack() as opened:
        lines = await fill(agent, opened)

        async with line_of(agent) as line, asyncio.timeout(5):
            probe = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
            line.writer.write(probe + lines[0].request(call("behind it")))
            answers = await line.reader.read()

        assert answers.startswith(b"HTTP/1.1 200 ")
        assert answers.count(b"HTTP/1.1 ") == 1
    assert await Call.objects.acount() == MOST


@pytest.mark.long
async def test_what_sends_no_head_is_closed_in_time(agent: Agent) -> None:
    async with AsyncExitStack() as opened:
        await fill(agent, opened)

        async with line_of(agent) as silent, asyncio.timeout(5):
            assert await silent.reader.read() == b""


@pytest.mark.long
async def test_it_may_have_as_many_files_open_as_the_system_allows(
    agent: Agent, own_stack: Stack
) -> None:
    pid = own_stack.agents.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    assert soft == hard
