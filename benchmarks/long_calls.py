"""Long calls by the clock, on a house of their own.

python -m benchmarks.long_calls queue      500 wait, and the broker is wiped
python -m benchmarks.long_calls doorless   no broker at all: how soon do calls start?
python -m benchmarks.long_calls crowd      60 calls of 4 s at once on one worker
python -m benchmarks.long_calls watch      1,000 open pages of one call, and a bare echo
python -m benchmarks.long_calls desk       100 open pages of the queue, and calls that are held

All of them without a name; small ones with --tiny.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
import psutil
import redis.asyncio

from benchmarks import tabs
from benchmarks.tabs import Tab
from config.embedded.valkey import free_port
from tests.faults.house import HOST, Child, House
from tests.gateway.agent import TASKS, Agent

ENDED = "SELECT count(*) FROM calls_call WHERE state = 'succeeded'"
STARTED = """
    SELECT extract(epoch FROM sent_at - asked_at)::float FROM calls_call
    WHERE sent_at IS NOT NULL ORDER BY id
"""


@asynccontextmanager
async def housed(*, workers: int = 2, **env: str) -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory(prefix="countersign-long-", dir="/tmp") as folder:
        home = Path(folder)
        home.chmod(0o711)
        async with House(home, workers=workers, small_disk=False, **env) as house:
            yield house


@asynccontextmanager
async def agents(house: House, *ports: int) -> AsyncIterator[list[Agent]]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        addresses = ports or (house.agents_port,)
        yield [
            Agent(http, f"http://{HOST}:{port}/mcp/desk", house.token, capabilities=TASKS)
            for port in addresses
        ]


async def ask(agent: Agent, nonce: str, ms: int, tool: str = "later") -> None:
    reply = await agent.call(f"up.{tool}", {"nonce": nonce, "ms": ms})
    assert reply.status == 200, reply.body


def rows(house: House, query: str) -> list[tuple[Any, ...]]:
    with house.databases.superuser(house.urls) as admin:
        return admin.execute(query).fetchall()


async def until_ended(house: House, count: int) -> None:
    while (await asyncio.to_thread(rows, house, ENDED))[0][0] < count:
        await asyncio.sleep(0.1)


async def queue(count: int = 500, ms: int = 200) -> None:
    async with housed(COUNTERSIGN_AGENT_QUEUE="2000") as house, agents(house) as (agent,):
        for worker in house.workers:
            worker.signal(signal.SIGSTOP)
        await asyncio.gather(*(ask(agent, str(n), ms) for n in range(count)))
        broker = redis.asyncio.from_url(house.env["REDIS_URL"])
        await broker.flushall()
        await broker.aclose()
        began = time.monotonic()
        for worker in house.workers:
            worker.signal(signal.SIGCONT)
        await until_ended(house, count)
        say(f"{count} queued calls of {ms} ms, broker wiped: {time.monotonic() - began:.1f} s")


async def doorless(count: int = 200) -> None:
    async with housed() as house, agents(house) as (agent,):
        house.broker.held = True
        house.broker.signal(signal.SIGKILL)
        for n in range(count):
            asking = asyncio.create_task(ask(agent, str(n), 100))
            await asyncio.sleep(0.1)
        await asking
        await until_ended(house, count)
        waits = [wait for (wait,) in rows(house, STARTED)]
        say(f"without a broker, {count} calls: started after {p(waits)}")


async def crowd(count: int = 60, ms: int = 4000) -> None:
    limits = {"COUNTERSIGN_AGENT_LIMIT": "64"}
    async with housed(workers=1, **limits) as house, agents(house) as (agent,):
        await ask(agent, "warm", 1)
        await until_ended(house, 1)
        (worker,) = house.workers
        assert worker.process is not None
        process, most = psutil.Process(worker.process.pid), 0
        began = time.monotonic()
        await asyncio.gather(*(ask(agent, str(n), ms) for n in range(count)))
        ended = asyncio.create_task(until_ended(house, count + 1))
        while not ended.done():
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(0.1)
        took = time.monotonic() - began
        say(f"{count} calls of {ms / 1000:g} s, one worker: {took:.1f} s, {most / 2**20:.0f} MiB")


async def watch(pages: int = 1000, steps: int = 10) -> None:
    async with housed(workers=1) as house:
        port = free_port()
        argv = ["daphne", "--bind", HOST, "--port", str(port), "benchmarks.echo:application"]
        await house._start(house._python("echo", argv, _listens(port)))
        async with agents(house) as (agent,):
            # Not begun before every page is open.
            (worker,) = house.workers
            worker.signal(signal.SIGSTOP)
            reply = await agent.call("up.later", {"nonce": "w", "ms": 0, "steps": steps})
            url = f"{house.web_url}/live/calls/{reply.call_id}/"
            async with tabs.opened(url, [f"sessionid={house.bob}"] * pages) as shown:
                await asyncio.sleep(3)
                worker.signal(signal.SIGCONT)
                await until_ended(house, 1)
                await asyncio.sleep(1)
            async with tabs.opened(f"http://{HOST}:{port}/", ["none=1"] * pages) as echoes:
                await asyncio.sleep(3)
                for _ in range(steps):
                    echoes[0].say(f"at {time.time():.4f}")
                    await asyncio.sleep(1)
    ours, bare = tabs.delays(shown), tabs.delays(echoes)
    say(f"{pages} pages, {len(ours)} pictures: {p(ours)}")
    say(f"{pages} sockets of a bare echo, {len(bare)}: {p(bare)}")
    say(f"ratio of the medians: {median(ours) / median(bare):.2f}")


async def desk(pages: int = 100, asked: int = 5) -> None:
    """How soon each page of the queue is told of a held call, and has read it as browsers do."""
    told: list[float] = []
    read: list[float] = []
    async with housed(workers=1) as house, agents(house) as (agent,), agents(house) as (reader,):
        cookie = f"sessionid={house.alice}"
        url = f"{house.web_url}/live/"
        async with tabs.opened(url, [cookie] * pages) as open_tabs:
            await asyncio.sleep(3)
            for n in range(asked):
                for tab in open_tabs:
                    tab.rings.clear()
                began = time.time()
                await ask(agent, str(n), 0, "held")
                pending = [_read_queue(reader.http, house, cookie, tab) for tab in open_tabs]
                read += [at - began for at in await asyncio.gather(*pending)]
                told += [tab.rings[0] - began for tab in open_tabs]
    say(f"{pages} pages of the queue: told after {p(told)}, had read it after {p(read)}")


NEWS = "/queue/news/?announce=1"


async def _read_queue(http: aiohttp.ClientSession, house: House, cookie: str, tab: Tab) -> float:
    while not tab.rings:
        await asyncio.sleep(0.01)
    # As live.js waits for more of the same.
    await asyncio.sleep(0.4)
    async with http.get(f"{house.web_url}{NEWS}", headers={"Cookie": cookie}) as response:
        assert response.status == 200, await response.text()
    return time.time()


def _listens(port: int) -> Callable[[Child], Awaitable[bool]]:
    async def listens(child: Child) -> bool:
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            return True
        return False

    return listens


def p(values: list[float]) -> str:
    return f"{median(values):.3f} s (median), {quantiles(values, n=20)[-1]:.3f} s (p95)"


def say(line: str) -> None:
    print(line, flush=True)


TINY = {
    "queue": {"count": 20},
    "doorless": {"count": 10},
    "crowd": {"count": 6, "ms": 500},
    "watch": {"pages": 50, "steps": 3},
    "desk": {"pages": 10, "asked": 2},
}
COMMANDS: dict[str, Callable[..., Coroutine[None, None, None]]] = {
    "queue": queue,
    "doorless": doorless,
    "crowd": crowd,
    "watch": watch,
    "desk": desk,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=", ".join(COMMANDS))
    parser.add_argument("--tiny", action="store_true", help="does it run at all?")
    options = parser.parse_args()
    for name in options.what or COMMANDS:
        given = TINY[name] if options.tiny else {}
        asyncio.run(COMMANDS[name](**given))


if __name__ == "__main__":
    main()
