"""An upstream that writes down every call before it answers, and answers when it is told."""

import asyncio
import json
import threading
from collections import Counter
from typing import Any, Self

import uvicorn

from tests.upstreams.recorder import DISCOVERED, respond

NONCE = {"type": "object", "properties": {"nonce": {"type": "string"}}, "required": ["nonce"]}
LISTED = {
    "resultType": "complete",
    "tools": [{"name": "now", "inputSchema": NONCE}, {"name": "later", "inputSchema": NONCE}],
    "ttlMs": 0,
    "cacheScope": "private",
}


class Witness:
    """`receipts` counts what arrived, by nonce: the one thing that cannot be taken back."""

    def __init__(self) -> None:
        self.receipts: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self._go = threading.Event()
        self._arrived = threading.Condition()

    def __enter__(self) -> Self:
        config = uvicorn.Config(
            self.app, port=0, lifespan="off", interface="asgi3", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/mcp"
        return self

    def __exit__(self, *error: object) -> None:
        self._go.set()
        self._server.should_exit = True
        self._thread.join()

    def answer(self) -> None:
        self._go.set()

    def wait_for(self, tool: str, count: int, *, seconds: float = 60) -> None:
        with self._arrived:
            arrived = self._arrived.wait_for(lambda: self.tools[tool] >= count, seconds)
        assert arrived, f"only {self.tools} of {count} of {tool} arrived"

    def wait_for_each(self, count: int, *, seconds: float = 30) -> None:
        """Until so many calls of every tool have arrived."""
        with self._arrived:
            arrived = self._arrived.wait_for(
                lambda: min(self.tools["now"], self.tools["later"]) >= count, seconds
            )
        assert arrived, f"only {self.tools} of {count} each arrived"

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        got = await receive()
        body = got["body"]
        while got.get("more_body"):
            got = await receive()
            body += got["body"]
        message = json.loads(body)
        match message["method"]:
            case "server/discover":
                result = DISCOVERED
            case "tools/list":
                result = json.dumps(LISTED).encode()
            case _:
                result = await self._called(**message["params"])
        request_id = json.dumps(message["id"]).encode()
        await respond(send, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result))

    async def _called(self, name: str, arguments: dict[str, str], **_: Any) -> bytes:
        nonce = arguments["nonce"]
        with self._arrived:
            self.receipts[nonce] += 1
            self.tools[name] += 1
            self._arrived.notify_all()
        while not self._go.is_set():
            await asyncio.sleep(0.01)
        return json.dumps({"content": [{"type": "text", "text": nonce}]}).encode()
