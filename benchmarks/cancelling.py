"""How soon a server hears that its call was cancelled, by way and by the agent's revision.

`python -m benchmarks.cancelling`: npm server-everything's long operation and the example report,
each behind a relay that notes when the connection of a call is closed, or a cancellation passes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import aiohttp

from benchmarks.long_calls import housed
from config.embedded.valkey import free_port
from tests.database import ROOT
from tests.faults.clients import CSRF
from tests.faults.house import HOST, House
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent

EVERYTHING = str(ROOT / "node_modules" / ".bin" / "mcp-server-everything")


@dataclass
class Relay:
    """Passes bytes on; `heard` is when a server could first know of a cancellation."""

    port: int
    target: int
    calls: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    at: float = 0.0
    # Which call it is: the connection of an earlier one may end late.
    turn: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(HOST, self.target)
        back = asyncio.create_task(_pass_on(up_reader, writer))
        ours = -1
        while chunk := await reader.read(65536):
            if b'"tools/call"' in chunk:
                ours = self.turn
                self.began.set()
            if b"notifications/cancelled" in chunk:
                self._note()
            up_writer.write(chunk)
        if ours == self.turn:
            self._note()
        up_writer.close()
        back.cancel()

    def _note(self) -> None:
        if not self.heard.is_set():
            self.at = time.monotonic()
            self.heard.set()

    def reset(self) -> None:
        self.turn += 1
        self.heard.clear()
        self.began.clear()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


Way = Callable[[Agent, House, dict[str, Any]], Awaitable[float]]


async def by_agent(agent: Agent, house: House, call: dict[str, Any]) -> float:
    """Goes away, or says so where the revision has words for it."""
    message = await agent.message("tools/call", call, request_id="r")
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    await _under_way(house)
    began = time.monotonic()
    if agent.revision == MODERN:
        asking.cancel()
    else:
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await agent.post(note | {"params": {"requestId": "r"}}, headers=agent.headers(message))
        asking.cancel()
    return began


async def by_task(agent: Agent, house: House, call: dict[str, Any]) -> float:
    agent = Agent(agent.http, agent.url, agent.token, capabilities=TASKS)
    made = await agent.ask("tools/call", call)
    await _under_way(house)
    began = time.monotonic()
    await agent.ask("tasks/cancel", {"taskId": made.result["taskId"]})
    return began


async def by_page(agent: Agent, house: House, call: dict[str, Any]) -> float:
    message = await agent.message("tools/call", call)
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    await _under_way(house)
    query = "SELECT id FROM calls_call WHERE state = 'running' ORDER BY id DESC LIMIT 1"
    with house.databases.superuser(house.urls) as admin:
        ((call_id,),) = admin.execute(query).fetchall()
    headers = {"Cookie": f"sessionid={house.bob}; csrftoken={CSRF}", "X-CSRFToken": CSRF}
    url = f"{house.web_url}/calls/{call_id}/cancel/"
    began = time.monotonic()
    async with agent.http.post(url, headers=headers, allow_redirects=False) as response:
        assert response.status == 302, response.status
    asking.cancel()
    return began


_relays: list[Relay] = []


async def _under_way(house: House) -> None:
    await asyncio.wait_for(_relays[-1].began.wait(), 20)
    await asyncio.sleep(0.5)


async def started(slug: str, argv: list[str], house: House, port: int) -> None:
    env = {**house.env, "PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=ROOT, env=env, stdout=asyncio.subprocess.DEVNULL
    )
    house.http_servers = [*getattr(house, "http_servers", []), process]  # type: ignore[attr-defined]
    for _ in range(300):
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            return
        await asyncio.sleep(0.1)


SERVERS = {
    "everything": (
        [EVERYTHING, "streamableHttp"],
        "trigger-long-running-operation",
        {"duration": 60, "steps": 60},
    ),
    "reports": (
        [sys.executable, "-m", "examples.reports", "--http", "{port}"],
        "write_report",
        {"seconds": 60},
    ),
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7, help="of each way (%(default)s)")
    times = parser.parse_args().times
    async with housed(workers=1) as house:
        for slug, (argv, tool, arguments) in SERVERS.items():
            port, relayed = free_port(), free_port()
            words = [word.format(port=port) for word in argv]
            await started(slug, words, house, port)
            relay = Relay(relayed, port)
            _relays.append(relay)
            server = await asyncio.start_server(relay.serve, HOST, relayed)
            adding = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "benchmarks.add_server",
                slug,
                f"http://{HOST}:{relayed}/mcp",
                cwd=ROOT,
                env=house.env,
            )
            assert await adding.wait() == 0
            await _measure(
                house, relay, slug, times, {"name": f"{slug}.{tool}", "arguments": arguments}
            )
            server.close()
        for process in getattr(house, "http_servers", []):
            process.kill()


async def _measure(house: House, relay: Relay, slug: str, times: int, call: dict[str, Any]) -> None:
    ways: list[tuple[str, str, Way]] = [
        *((f"agent, {revision}", revision, by_agent) for revision in (MODERN, *LEGACY)),
        *((f"page, {revision}", revision, by_page) for revision in (MODERN, *LEGACY)),
        ("task, 2026-07-28", MODERN, by_task),
    ]
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        for name, revision, way in ways:
            took = []
            for _ in range(times):
                relay.reset()
                agent = Agent(http, f"{house.agents_url}/mcp/desk", house.token, revision)
                began = await way(agent, house, _another(call))
                await asyncio.wait_for(relay.heard.wait(), 15)
                took.append(relay.at - began)
            print(f"{slug}: {name}: {median(took):.3f} s", flush=True)


def _another(call: dict[str, Any]) -> dict[str, Any]:
    """Never the same twice: whose client has left is joined by the next that asks the same."""
    more = next(_numbers)
    longer = {
        name: value + more if name in ("duration", "seconds") else value
        for name, value in call["arguments"].items()
    }
    return {**call, "arguments": longer}


_numbers = itertools.count()


if __name__ == "__main__":
    asyncio.run(main())
