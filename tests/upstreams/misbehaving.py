"""A server that does with each call what its arguments say, good or bad, in four ways of speaking:
`/modern` (2026-07-28), `/legacy` and `/session` (2025-11-25) and `/sse` (2024-11-05).

A call has a `nonce`, `do` (a key of DEEDS), and for some deeds the `status` to answer with. With
`acts` it carries out what it is asked before it does so. What it received stands in `receipts`. Of
the cancellations that come to `/session` each second one is lost on its way.

    python -m tests.upstreams.misbehaving PORT PAPER    as a process of its own, for the fault suite
"""

import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.faults.paper import Paper, arguments_in, count_receipts
from tests.upstreams.raw import (
    RawServer,
    Request,
    begin_events,
    chunk,
    end_events,
    error,
    event,
    legacy,
    modern,
    reply,
    respond,
)

ASKED = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "do": {"type": "string"},
        "status": {"type": "integer"},
        "acts": {"type": "boolean"},
        "ms": {"type": "integer"},
    },
    "required": ["nonce", "do"],
}
NAMES = ("do", "later", "held", "safe")
TOOLS = json.dumps({"tools": [{"name": n, "inputSchema": ASKED} for n in NAMES]})
BUSY = "Busy, try again."


@dataclass(frozen=True)
class Receipt:
    nonce: str
    way: str
    arguments: bytes
    acted: bool


@dataclass
class Misbehaving:
    port: int = 0
    # Each receipt is written here before anything else is done about it.
    paper: Paper | None = None
    receipts: list[Receipt] = field(default_factory=list)
    _count: Counter[str] = field(default_factory=Counter)
    _cancels: int = 0
    _streams: list[asyncio.StreamWriter] = field(default_factory=list)

    def of(self, nonce: str) -> list[Receipt]:
        return [receipt for receipt in self.receipts if receipt.nonce == nonce]

    def url(self, way: str) -> str:
        return f"http://127.0.0.1:{self.port}/{way}"

    def __post_init__(self) -> None:
        if self.paper:
            self._count = count_receipts(self.paper.path)

    # Running it.

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.run(started)), daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def run(self, started: threading.Event | None = None) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        raw = RawServer(self._handle)

        async def accept(reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            try:
                await raw.serve(reader, out)
            except asyncio.CancelledError:
                pass
            finally:
                out.transport.abort()

        server = await asyncio.start_server(accept, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        if started:
            started.set()
        await self._over.wait()
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    # Speaking.

    async def _handle(self, request: Request, out: asyncio.StreamWriter) -> None:
        path, _, session = request.path.partition("?session=")
        match path, request.verb:
            case ("/modern", "POST"):
                await modern(self._after, tools=TOOLS)(request, out)
            case ("/legacy", "POST"):
                await legacy(self._after)(request, out)
            case ("/session", "POST") if "cancelled" in request.method and self._loses_cancel():
                out.transport.abort()
            case ("/session", "POST" | "DELETE"):
                await legacy(self._after, session="s")(request, out)
            case ("/sse", "GET"):
                self._streams.append(out)
                begin_events(out)
                named = f"/messages?session={len(self._streams) - 1}"
                chunk(out, f"event: endpoint\ndata: {named}\n\n".encode())
            case ("/messages", "POST"):
                await self._posted(request, out, self._streams[int(session)])
            case _:
                respond(out, b"", status=405)

    async def _after(self, request: Request, out: asyncio.StreamWriter) -> None:
        """What comes after the greeting."""
        match request.method:
            case "tools/list":
                respond(out, reply(request, TOOLS))
            case "tools/call":
                await self._called(request, out, request.path[1:])
            case "ping":
                respond(out, reply(request, "{}"))
            case _:
                respond(out, b"", status=202)

    async def _posted(
        self, request: Request, out: asyncio.StreamWriter, stream: asyncio.StreamWriter
    ) -> None:
        match request.method:
            case "initialize":
                info = {"name": "misbehaving", "version": "1"}
                opening = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
                event(stream, reply(request, json.dumps({**opening, "serverInfo": info})))
            case "tools/list":
                event(stream, reply(request, TOOLS))
            case "tools/call":
                await self._called(request, out, "sse", stream)
                return
        respond(out, b"", status=202)

    def _loses_cancel(self) -> bool:
        self._cancels += 1
        return self._cancels % 2 == 1

    # Calls.

    async def _called(
        self,
        request: Request,
        out: asyncio.StreamWriter,
        way: str,
        stream: asyncio.StreamWriter | None = None,
    ) -> None:
        params = request.json["params"]
        arguments, sent = params["arguments"], arguments_in(request.body)
        nonce, acted = arguments["nonce"], arguments.get("acts", True)
        self._count[nonce] += 1
        receipt = Receipt(nonce, way, sent.encode(), acted)
        self.receipts.append(receipt)
        if self.paper:
            said = {"tool": params["name"], "receipt": self._count[nonce], "way": way}
            self.paper.write(nonce=nonce, arguments=sent, acted=acted, **said)
        text = answer(nonce, self._count[nonce])
        status, ms = arguments.get("status", 200), arguments.get("ms", 0)
        deed = Deed(request, out, text, status, ms, stream)
        await DEEDS[arguments["do"]](deed)


def answer(nonce: str, receipt: int, more: str = "") -> str:
    """A result that says which receipt of which call it belongs to."""
    text = json.dumps({"nonce": nonce, "receipt": receipt, "said": f"done{more}"})
    return json.dumps({"content": [{"type": "text", "text": text}]})


@dataclass
class Deed:
    request: Request
    out: asyncio.StreamWriter
    result: str
    status: int
    ms: int
    # Where answers go in HTTP with SSE.
    stream: asyncio.StreamWriter | None = None

    @property
    def text(self) -> bytes:
        return reply(self.request, self.result)

    def say(self, message: bytes, status: int = 200) -> None:
        if self.stream is None:
            respond(self.out, message, status=status)
        else:
            respond(self.out, b"", status=202 if status == 200 else status)
            event(self.stream, message)

    def cut(self) -> None:
        (self.stream or self.out).transport.abort()


async def _answer(deed: Deed) -> None:
    deed.say(deed.text)


async def _status(deed: Deed) -> None:
    headers = {"Location": deed.request.path}
    body = b"" if deed.status in (204, 304) else b"<html>"
    respond(deed.out, body, status=deed.status, kind="text/html", headers=headers)


async def _interim(deed: Deed) -> None:
    """A status that another is to follow, and then the answer."""
    deed.out.write(b"HTTP/1.1 %d Said\r\n\r\n" % deed.status)
    deed.say(deed.text)


async def _error(deed: Deed) -> None:
    deed.say(error(deed.request, -32050, BUSY), deed.status)


async def _error_of_none(deed: Deed) -> None:
    respond(deed.out, error(None, -32000, "Bad Request"), status=deed.status)


async def _twice(deed: Deed) -> None:
    second = deed.text.replace(b"done", b"done differently")
    if deed.stream is not None:
        deed.say(deed.text)
        event(deed.stream, second)
    else:
        begin_events(deed.out)
        event(deed.out, deed.text)
        event(deed.out, second)
        end_events(deed.out)


async def _half(deed: Deed) -> None:
    if deed.stream is None:
        deed.out.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        deed.out.write(b"Content-Length: 1000\r\n\r\n" + deed.text[:20])
    else:
        chunk(deed.stream, b"event: message\ndata: " + deed.text[:20])
    await (deed.stream or deed.out).drain()
    deed.cut()


async def _reset(deed: Deed) -> None:
    deed.cut()


async def _never(deed: Deed) -> None:
    if deed.stream is not None:
        respond(deed.out, b"", status=202)
        return
    await deed.request.rest.read(1)


async def _late(deed: Deed) -> None:
    await asyncio.sleep(deed.ms / 1000)
    deed.say(deed.text)


async def _another(deed: Deed) -> None:
    """The answer to a call that nobody made."""
    other = json.loads(deed.text) | {"id": 987654}
    deed.say(json.dumps(other).encode())


async def _garbage(deed: Deed) -> None:
    deed.say(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % deed.request.json["id"])


DEEDS: dict[str, Callable[[Deed], Awaitable[None]]] = {
    "answer": _answer,
    "status": _status,
    "interim": _interim,
    "error": _error,
    "error of none": _error_of_none,
    "twice": _twice,
    "half": _half,
    "reset": _reset,
    "never": _never,
    "late": _late,
    "another": _another,
    "garbage": _garbage,
}


if __name__ == "__main__":
    asyncio.run(Misbehaving(int(sys.argv[1]), Paper(Path(sys.argv[2]))).run())
