"""An upstream MCP server (2026-07-28) that remembers what it receives and does as it is told."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest
import uvicorn

OBJECT: dict[str, Any] = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FORM = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
TOOLS: dict[str, dict[str, Any]] = {
    # Says back what it was given.
    "echo": {"inputSchema": TEXT, "description": "Says it again.", "title": "Echo"},
    # Answers with `results["say"]`, byte for byte.
    "say": {"inputSchema": OBJECT},
    "form": {"inputSchema": FORM},
    # Answers when `release()` is called.
    "hang": {"inputSchema": OBJECT},
    # Reports 1, 2, 3 of 3 and answers.
    "steps": {"inputSchema": OBJECT},
    # Answers with a JSON-RPC error.
    "fail": {"inputSchema": OBJECT},
    # Wants an argument repeated in a header.
    "regional": {"inputSchema": REGION},
    "erase": {"inputSchema": OBJECT, "annotations": {"destructiveHint": True}},
}
DONE = b'{"content":[{"type":"text","text":"done"}]}'


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.body)
        return message

    @property
    def arguments(self) -> bytes:
        """As they were written, between the two members that surround them."""
        return self.body.partition(b'"arguments":')[2].partition(b',"_meta"')[0]


@dataclass
class Recorder:
    received: list[Received] = field(default_factory=list)
    results: dict[str, bytes] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=lambda: TOOLS)
    discovered: bytes = b""
    # How many callers of "hang" went away before they were answered.
    gone: int = 0
    # The same one again when it is started again.
    port: int = 0

    def __post_init__(self) -> None:
        self.discovered = DISCOVERED
        # Calls of these are answered once they are released.
        self.waiting = {"hang"}

    def __enter__(self) -> Self:
        self._released = threading.Event()
        config = uvicorn.Config(
            self.app, port=self.port, lifespan="off", interface="asgi3", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        return self

    def __exit__(self, *error: object) -> None:
        self._released.set()
        self._server.should_exit = True
        self._thread.join()

    def reset(self) -> None:
        self.discovered, self.waiting = DISCOVERED, {"hang"}
        self._released.set()
        self._released = threading.Event()
        self.received.clear()
        self.results.clear()
        self.tools = TOOLS
        self.gone = 0

    def release(self) -> None:
        self._released.set()

    @property
    def calls(self) -> list[Received]:
        return [r for r in self.received if r.message["method"] == "tools/call"]

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        got = await receive()
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        received = Received(headers, got["body"])
        while got.get("more_body"):
            got = await receive()
            received.body += got["body"]
        self.received.append(received)
        match received.message["method"]:
            case "server/discover":
                await self._result(send, received, self.discovered)
            case "tools/list":
                await self._result(send, received, _listed(self.shown(received)))
            case "tools/call":
                await self._call(received, receive, send)
            case _:
                await self.other(received, receive, send)

    def shown(self, received: Received) -> dict[str, dict[str, Any]]:
        return self.tools

    async def other(self, received: Received, receive: Any, send: Any) -> None:
        """For servers that know more."""

    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        name = received.message["params"]["name"]
        if name in self.waiting and not await self._released_before_gone(receive):
            self.gone += 1
            return
        match name:
            case "steps":
                await self._steps(received, send)
                return
            case "fail":
                error = {"code": 1234, "message": "no such luck", "data": {"why": [1, "x"]}}
                reply = {"jsonrpc": "2.0", "id": received.message["id"], "error": error}
                await respond(send, json.dumps(reply).encode())
                return
        await self._result(send, received, self.results.get(name) or _echoed(received))

    async def _released_before_gone(self, receive: Any) -> bool:
        released, watcher = self._released, asyncio.ensure_future(receive())
        while not released.is_set():
            if watcher.done():
                return False
            await asyncio.sleep(0.01)
        watcher.cancel()
        return True

    async def _steps(self, received: Received, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        token = received.message["params"]["_meta"].get("progressToken")
        for step in (1, 2, 3) if token is not None else ():
            params = {"progressToken": token, "progress": step, "total": 3, "message": f"#{step}"}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await send(_event(json.dumps(note).encode(), more=True))
        await send(_event(_reply(received, DONE), more=False))

    async def _result(self, send: Any, received: Received, result: bytes) -> None:
        await respond(send, _reply(received, result))


def _listed(tools: dict[str, dict[str, Any]]) -> bytes:
    listed = [{"name": name, **tool} for name, tool in tools.items()]
    members = {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "private"}
    return json.dumps(members).encode()


def _echoed(received: Received) -> bytes:
    text = json.dumps(received.message["params"]["arguments"].get("text", "done"))
    return b'{"content":[{"type":"text","text":%b}]}' % text.encode()


def _reply(received: Received, result: bytes) -> bytes:
    request_id = json.dumps(received.message["id"]).encode()
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result)


def _event(message: bytes, *, more: bool) -> dict[str, Any]:
    body = b"data: %b\n\n" % message
    return {"type": "http.response.body", "body": body, "more_body": more}


async def respond(send: Any, body: bytes, *, status: int = 200) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


DISCOVERED = json.dumps(
    {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {"name": "recorder", "version": "1"},
        },
    }
).encode()


def running(kind: type[Recorder]) -> Any:
    """The fixture `running_recorder`, for the tests of a file that need a server of this kind."""

    @pytest.fixture(scope="module")
    def running_recorder() -> Iterator[Recorder]:
        with kind() as recorder:
            yield recorder

    return running_recorder
