"""What a server answers without us: its own bytes, over its own transport, through no SDK."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.flows.servers import Server
from tests.gateway.agent import LEGACY, Agent

Json = dict[str, Any]
HELLO = {"protocolVersion": LEGACY[0], "capabilities": {}}
HELLO |= {"clientInfo": {"name": "flows", "version": "1"}}


class OverHttp:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def ask(self, method: str, params: Json) -> Json:
        answer: Json = (await self.agent.ask(method, params)).last
        return answer


class OverStdio:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout
        self.last_id = 0

    async def begin(self) -> None:
        await self.ask("initialize", HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, method: str, params: Json) -> Json:
        self.last_id += 1
        self._write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            message: Json = json.loads(await self.stdout.readline())
            if message.get("id") == self.last_id and "method" not in message:
                return message

    def _write(self, message: Json) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")


@asynccontextmanager
async def directly(server: Server) -> AsyncIterator[OverHttp | OverStdio]:
    if server.url:
        async with aiohttp.ClientSession() as session:
            yield OverHttp(Agent(session, server.url, "nobody", LEGACY[0]))
        return
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *server.argv, stdin=pipe, stdout=pipe, stderr=nowhere, limit=2**24
    )
    link = OverStdio(process)
    try:
        await link.begin()
        yield link
    finally:
        link.stdin.close()
        await process.wait()
