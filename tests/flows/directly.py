"""What a server answers without us: its own bytes, over its own transport, through no SDK."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from tests.flows.servers import Server
from tests.gateway.agent import LEGACY, Agent

Json = dict[str, Any]
# What discovery declares of servers that may ask what they usually may.
CAN: Json = {"elicitation": {"form": {}, "url": {}}, "roots": {}}
HELLO = {"protocolVersion": LEGACY[0], "capabilities": CAN}
HELLO |= {"clientInfo": {"name": "flows", "version": "1"}}


class OverHttp:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def begin(self) -> Json:
        hello: Json = (await self.agent.begin()).result
        return hello

    async def ask(self, method: str, params: Json) -> Json:
        answer: Json = (await self.agent.ask(method, params)).last
        return answer


class OverStdio:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout
        self.last_id = 0

    async def begin(self) -> Json:
        hello = await self.ask("initialize", HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: Json = hello["result"]
        return result

    async def ask(self, method: str, params: Json) -> Json:
        self.last_id += 1
        self._write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            message: Json = json.loads(await self.stdout.readline())
            if message.get("id") == self.last_id and "method" not in message:
                return message

    def _write(self, message: Json) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")


class OverEvents:
    """One question at a time: what is said meanwhile is passed over."""

    def __init__(self, http: aiohttp.ClientSession, stream: aiohttp.ClientResponse) -> None:
        self.http, self.stream = http, stream
        self.last_id = 0

    async def begin(self) -> Json:
        self.there = self.stream.url.join(URL(await self._data()))
        hello = await self.ask("initialize", HELLO)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: Json = hello["result"]
        return result

    async def ask(self, method: str, params: Json) -> Json:
        self.last_id += 1
        await self._post({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            message: Json = json.loads(await self._data())
            if message.get("id") == self.last_id and "method" not in message:
                return message

    async def _post(self, message: Json) -> None:
        async with self.http.post(self.there, json=message) as response:
            assert response.status == 202, await response.text()

    async def _data(self) -> str:
        async for line in self.stream.content:
            if line.startswith(b"data: "):
                return line[6:].decode().strip()
        raise ConnectionError("The stream ended.")


@asynccontextmanager
async def over_events(http: aiohttp.ClientSession, url: str) -> AsyncIterator[OverEvents]:
    async with http.get(url, read_bufsize=2**24) as stream:
        yield OverEvents(http, stream)


@asynccontextmanager
async def directly(server: Server) -> AsyncIterator[OverHttp | OverStdio | OverEvents]:
    """Whoever it is for begins it, and hears what the server says of itself."""
    if server.url.endswith("/sse"):
        async with aiohttp.ClientSession() as session, over_events(session, server.url) as events:
            yield events
        return
    if server.url:
        async with aiohttp.ClientSession() as session:
            yield OverHttp(Agent(session, server.url, "nobody", LEGACY[0], capabilities=CAN))
        return
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *server.argv, stdin=pipe, stdout=pipe, stderr=nowhere, limit=2**24
    )
    link = OverStdio(process)
    try:
        yield link
    finally:
        link.stdin.close()
        await process.wait()
