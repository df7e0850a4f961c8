"""What one request to a tool server costs: our HTTP/1.1 client, and those that one could take.

`python -m benchmarks.http_client` asks one lean server (benchmarks/upstream.py) over sixteen
connections with each client in turn, round after round, and prints the client's own CPU time a
request: the server's is not in it. Ours also reads the reply as JSON-RPC; others hand over bytes.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median

import aiohttp
import httpcore2
import httpx2
import uvloop

from core.connection_pool import ConnectionPool
from core.outbound import Guard
from registry.upstream import wire
from registry.upstream.transport.http_request import HttpRequest, exchange, head
from registry.upstream.values import USUAL

CONNECTIONS, REQUESTS, ROUNDS = 16, 4000, 7
HEADERS: dict[str, str] = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
Ask = Callable[[int, bytes], Awaitable[object]]


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Ask]:
    pool = ConnectionPool(Guard(["127.0.0.0/8"]))
    checked = pool.guard.check_url(url)
    place, first = pool.origin_of(checked), head("POST", checked, HEADERS)
    yield lambda id_, body: exchange(pool, HttpRequest(id_, place, first, body, USUAL))
    await pool.aclose()


@asynccontextmanager
async def with_aiohttp(url: str) -> AsyncIterator[Ask]:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(_id: int, body: bytes) -> bytes:
            async with session.post(url, data=body, headers=HEADERS) as response:
                return await response.read()

        yield ask


@asynccontextmanager
async def with_httpcore(url: str) -> AsyncIterator[Ask]:
    fields = list(HEADERS.items())
    async with httpcore2.AsyncConnectionPool(max_connections=CONNECTIONS) as pool:
        yield lambda _id, body: pool.request("POST", url, content=body, headers=fields)


@asynccontextmanager
async def with_httpx(url: str) -> AsyncIterator[Ask]:
    limits = httpx2.Limits(max_connections=CONNECTIONS)
    async with httpx2.AsyncClient(limits=limits, trust_env=False) as client:
        yield lambda _id, body: client.post(url, content=body, headers=HEADERS)


CLIENTS = {
    "ours": ours,
    "aiohttp": with_aiohttp,
    "httpcore": with_httpcore,
    "httpx": with_httpx,
}


async def measured(ask: Ask, requests: int) -> float:
    """Milliseconds of CPU a request."""
    ids = iter(range(requests))

    async def keep_asking() -> None:
        for id_ in ids:
            await ask(id_, wire.call(id_, b'"echo"', b'{"text":"hi"}', wire.meta(True)))

    began = time.process_time()
    await asyncio.gather(*(keep_asking() for _ in range(CONNECTIONS)))
    return (time.process_time() - began) / requests * 1e3


async def compare(url: str) -> None:
    figures: dict[str, list[float]] = {name: [] for name in CLIENTS}
    async with AsyncExitStack() as stack:
        asks = {name: await stack.enter_async_context(made(url)) for name, made in CLIENTS.items()}
        for ask in asks.values():
            await measured(ask, 200)
        for _ in range(ROUNDS):
            for name, ask in asks.items():
                figures[name].append(await measured(ask, REQUESTS))
    own = median(figures["ours"])
    for name, found in figures.items():
        share = median(found) / own
        print(f"{name:<10} {median(found):.3f} ms of CPU a request   {share:.2f} × ours")


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.upstream", str(port)])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        uvloop.run(compare(f"http://127.0.0.1:{port}/mcp"))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
