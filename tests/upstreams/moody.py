"""A server that forgets sessions, drops connections, changes its list and restarts, when told to.

`/mcp` is Streamable HTTP with sessions (2025-11-25), `/sse` is HTTP with SSE (2024-11-05).
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from tests.upstreams.raw import RawServer, Request, begin_events, chunk, error, reply, respond

SESSION = "mcp-session-id"


class Moody:
    def __init__(self) -> None:
        self.raw = RawServer(self._handle)
        self.tools = ["say", "spare"]
        self.calls = 0
        self.sessions: set[str] = set()
        self.streams: dict[str, asyncio.StreamWriter] = {}
        self.drops = False
        self._numbers = count(1)
        self._links: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.raw.port}"

    @property
    def open(self) -> int:
        """Connections that somebody holds."""
        return len(self._links)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.raw.port)
        self.raw.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        await self._server.wait_closed()
        self.forget()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def forget(self) -> None:
        """All sessions, of either kind; streams that are open stay open."""
        self.sessions.clear()
        self.streams.clear()

    async def _accept(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link
        self._links.add(link)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self.raw.serve(reader, out)
        finally:
            self._links.discard(link)
            out.transport.abort()

    async def _handle(self, request: Request, out: asyncio.StreamWriter) -> None:
        self.raw.requests.clear()
        path, _, session = request.path.partition("?session=")
        if path == "/mcp":
            self._http(request, out)
        elif request.verb == "GET" and path == "/sse":
            self._open_stream(out)
        elif path != "/messages":
            respond(out, b"", status=405)
        elif session not in self.streams:
            respond(out, b"", status=404)
        else:
            respond(out, b"", status=202)
            stream = self.streams[session]
            if body := self._answer(request, stream):
                chunk(stream, b"event: message\ndata: " + body + b"\n\n")

    def _open_stream(self, out: asyncio.StreamWriter) -> None:
        session = str(next(self._numbers))
        self.streams[session] = out
        begin_events(out)
        chunk(out, f"event: endpoint\ndata: /messages?session={session}\n\n".encode())

    def _http(self, request: Request, out: asyncio.StreamWriter) -> None:
        session = request.headers.get(SESSION, "")
        if request.verb != "POST":
            self.sessions.discard(session)
            respond(out, b"", status=200)
        elif request.method == "server/discover":
            respond(out, error(None, -32000, "Server not initialized"), status=400)
        elif request.method == "initialize":
            session = f"s{next(self._numbers)}"
            self.sessions.add(session)
            respond(out, self._answer(request, out), headers={SESSION: session})
        elif session not in self.sessions:
            respond(out, error(None, -32001, "Session not found"), status=404)
        elif body := self._answer(request, out):
            respond(out, body)
        else:
            respond(out, b"", status=202)

    def _answer(self, request: Request, out: asyncio.StreamWriter) -> bytes:
        match request.method:
            case "initialize":
                return reply(request, json.dumps(OPENING))
            case "tools/list":
                return reply(request, json.dumps({"tools": [_tool(name) for name in self.tools]}))
            case "tools/call":
                self.calls += 1
                if self.drops:
                    out.transport.abort()
                    raise ConnectionError
                return reply(request, '{"content":[{"type":"text","text":"said"}]}')
        return b""


OPENING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "moody", "version": "1"},
}


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


@asynccontextmanager
async def moody() -> AsyncIterator[Moody]:
    server = Moody()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
