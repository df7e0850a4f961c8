"""An HTTP server of ours on a real socket that does exactly what a test tells it, byte by byte."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from registry.upstream import Target

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass
class Request:
    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    # For what comes after it: more bytes, or the end.
    rest: asyncio.StreamReader

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}

    @property
    def method(self) -> str:
        return str(self.json.get("method", ""))


@dataclass
class RawServer:
    handler: "Handler"
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def target(self, **fields: Any) -> Target:
        return Target(**{"key": "raw", "transport": "http", "url": self.url} | fields)

    def sent(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await _read(reader)
                self.requests.append(request)
                await self.handler(request, writer)
                await writer.drain()
        writer.close()


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().rstrip("\r\n").split("\r\n")
    verb, path, _ = first.split(" ")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(verb, path, headers, body, reader)


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    raw = RawServer(handler)
    open_writers: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_writers.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await raw.serve(reader, writer)
        finally:
            open_writers.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        await server.wait_closed()
        for task in list(open_writers):
            task.cancel()
        await asyncio.gather(*open_writers, return_exceptions=True)


def respond(
    out: asyncio.StreamWriter,
    body: bytes,
    *,
    status: int = 200,
    kind: str = "application/json",
    headers: dict[str, str] | None = None,
) -> None:
    lines = {"Content-Type": kind, "Content-Length": str(len(body))} | (headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    out.write(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body)


def reply(request: Request, result: str = '{"content":[]}') -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request.json["id"], result.encode())


def error(request: Request | None, code: int, message: str = "no", **more: Any) -> bytes:
    id_ = request.json.get("id") if request else None
    return json.dumps(
        {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message, **more}}
    ).encode()


def begin_events(out: asyncio.StreamWriter, headers: str = "") -> None:
    out.write(
        f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{headers}"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )


def chunk(out: asyncio.StreamWriter, data: bytes) -> None:
    out.write(b"%x\r\n%s\r\n" % (len(data), data))


def event(out: asyncio.StreamWriter, data: bytes) -> None:
    chunk(out, b"event: message\ndata: " + data + b"\n\n")


def end_events(out: asyncio.StreamWriter) -> None:
    out.write(b"0\r\n\r\n")


def modern(
    call: Handler, *, tools: str = '{"tools":[],"ttlMs":0,"cacheScope":"private"}'
) -> Handler:
    """A server of 2026-07-28 with `call` for its tools/call."""

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "server/discover":
            respond(out, reply(request, DISCOVERED))
        elif request.method == "tools/list":
            respond(out, reply(request, tools))
        else:
            await call(request, out)

    return handle


def legacy(call: Handler, *, revision: str = LEGACY, session: str = "") -> Handler:
    """A server that only knows the handshake, with `call` for whatever comes after it."""

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "initialize":
            headers = {"Mcp-Session-Id": session} if session else {}
            opening = {
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            respond(out, reply(request, json.dumps(opening)), headers=headers)
        elif "initialized" in request.method or "cancelled" in request.method:
            respond(out, b"", status=202)
        elif (
            request.method == "server/discover"
            or request.headers.get("mcp-protocol-version") == MODERN
        ):
            respond(out, error(None, -32000, "Bad Request: Server not initialized"), status=400)
        elif request.verb == "DELETE":
            respond(out, b"", status=200)
        else:
            await call(request, out)

    return handle


DISCOVERED = json.dumps(
    {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "instructions": "Ask nicely.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}},
    }
)
