"""What one warm allowed call costs, counted: entries into our functions, files, awaits in each
other. These numbers do not depend on the machine. They only tighten: who makes the path shorter
lowers them, and nobody raises them.
"""

import asyncio
import gc
import inspect
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pytest
import uvicorn
from asgiref.sync import sync_to_async

from accounts.models import User
from config.front import Front
from gateway.http.endpoint import Endpoint
from inspection.results import ResultRules
from registry import services
from registry.discovery import discovery
from registry.models import Tool, Toolset
from registry.result_rules import set_result_rules
from tests.database import ROOT
from tests.flows.house import commands
from tests.flows.servers import Server as Started

pytestmark = pytest.mark.django_db(transaction=True)

WARM, COUNTED = 3, 12
OURS = f"{ROOT}{os.sep}"
NOT_OURS = tuple(f"{ROOT / name}{os.sep}" for name in (".venv", "tests"))
PIPE = [sys.executable, str(ROOT / "tests" / "upstreams" / "on_stdio.py"), "modern"]


class CallCost(NamedTuple):
    entries: int
    files: int
    awaits: int


class Counter:
    """Of what runs on this thread's loop. A call or the resumption of a coroutine is an entry; a
    task counts as awaited by whoever made it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._depths: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._entries, self._awaits = 0, 0
        self._files: set[str] = set()

    @contextmanager
    def counting(self) -> Iterator[None]:
        self._loop.set_task_factory(self._made)
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._loop.set_task_factory(None)

    @property
    def cost(self) -> CallCost:
        return CallCost(self._entries, len(self._files), self._awaits - 1)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_ours(frame):
            self._entries += 1
            self._files.add(frame.f_code.co_filename)
            self._awaits = max(self._awaits, self._depth(frame))

    def _depth(self, frame: FrameType | None) -> int:
        depth = self._depths.get(task, 0) if (task := _current(self._loop)) else 0
        while frame is not None:
            is_coroutine = frame.f_code.co_flags & inspect.CO_COROUTINE
            depth += bool(is_coroutine and _is_ours(frame))
            frame = frame.f_back
        return depth

    def _made(self, loop: Any, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        self._depths[task] = self._depth(sys._getframe(1))
        return task


def _current(loop: asyncio.AbstractEventLoop) -> asyncio.Task[Any] | None:
    with suppress(RuntimeError):
        return asyncio.current_task(loop)
    return None


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(OURS) and not name.startswith(NOT_OURS)


@pytest.fixture
async def agents_port() -> AsyncIterator[int]:
    """The endpoint behind its own front, as config/agents.py runs it, on the test's loop."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            Endpoint(), http=Front, ws="none", access_log=False, log_level="warning"
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listening])
        yield listening.getsockname()[1]
        await server.shutdown([listening])


@pytest.fixture
def upstream_server(toolset: Toolset, bob: User) -> Iterator[str]:
    """The slug of one that is our own child."""
    with commands([Started("pipe", argv=PIPE)]):
        made = services.register(
            "pipe", transport="stdio", command="pipe", owner=bob, by=bob, publish=True
        )
        services.add_server(toolset, made, by=bob)
        (found,) = asyncio.run(discovery.look_at([made.pk]))
        assert found.succeeded, found.summary
        yield "pipe"


def request(server: str, tool: str, token: str) -> bytes:
    """In one piece, as clients in wide use write it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "counter", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {"text": "hello"}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message, separators=(",", ":")).encode()
    head = [
        f"POST /mcp/desk/{server} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Client:
    """One connection, which says the same again and again."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wanted: bytes
    ) -> None:
        self._reader, self._writer, self._wanted = reader, writer, wanted

    async def call(self) -> CallCost:
        counter = Counter(asyncio.get_running_loop())
        with counter.counting():
            self._writer.write(self._wanted)
            head = await self._reader.readuntil(b"\r\n\r\n")
        (length,) = [line for line in head.lower().split(b"\r\n") if b"content-length" in line]
        answer = json.loads(await self._reader.readexactly(int(length.split(b":")[1])))
        assert "content" in answer.get("result", {}), answer
        return counter.cost


@asynccontextmanager
async def client(port: int, wanted: bytes) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    made = Client(reader, writer, wanted)
    for _ in range(WARM):
        await made.call()
    yield made
    writer.close()
    await writer.wait_closed()


async def cheapest(port: int, wanted: bytes) -> CallCost:
    """Of several calls: what else the loop did meanwhile is not of the call."""
    async with client(port, wanted) as scout:
        costs = [await scout.call() for _ in range(COUNTED)]
    return CallCost(*(min(each) for each in zip(*costs, strict=True)))


async def left_in_cycles(port: int, wanted: bytes) -> int:
    """How many objects a call leaves to the collector of cycles, which all calls wait for."""
    async with client(port, wanted) as scout:
        gc.collect()
        gc.disable()
        try:
            # What else the loop leaves meanwhile is not of each call.
            return min([await _left(scout) for _ in range(COUNTED)])
        finally:
            gc.enable()


async def _left(scout: Client) -> int:
    await scout.call()
    await asyncio.sleep(0)
    return gc.collect()


def dearer(cost: CallCost, most: CallCost) -> list[str]:
    figures = zip(CallCost._fields, cost, most, strict=True)
    return [f"{name}: {now}, at most {then}" for name, now, then in figures if now > then]


@pytest.mark.long
async def test_a_call_over_stdio(agents_port: int, upstream_server: str, scout_token: str) -> None:
    cost = await cheapest(agents_port, request(upstream_server, "echo", scout_token))

    assert not dearer(cost, CallCost(entries=199, files=35, awaits=11))


async def test_a_call_over_http(agents_port: int, toolset: Toolset, scout_token: str) -> None:
    cost = await cheapest(agents_port, request("rec", "echo", scout_token))

    assert not dearer(cost, CallCost(entries=239, files=39, awaits=15))


@pytest.mark.long
@pytest.mark.parametrize("server", ["rec", "pipe"])
async def test_a_call_is_gone_with_its_reply(
    agents_port: int, upstream_server: str, scout_token: str, server: str
) -> None:
    assert await left_in_cycles(agents_port, request(server, "echo", scout_token)) == 0


async def test_a_call_with_every_choice_for_its_result(
    agents_port: int, toolset: Toolset, scout_token: str
) -> None:
    tool = await Tool.objects.aget(server__slug="rec", name="echo")
    patterns = "ticket: \\bTKT-[0-9]{6}\\b\nbadge: (?i)badge no\\. [0-9]+"
    rules = ResultRules(
        *("block", "remove", True, True, True, 100_000, True),
        marking="found",
        patterns=patterns,
    )
    await sync_to_async(set_result_rules)(tool, rules, by=None)

    cost = await cheapest(agents_port, request("rec", "echo", scout_token))

    # Of a result that needs no change: twelve more than without any.
    assert not dearer(cost, CallCost(entries=251, files=43, awaits=15))
