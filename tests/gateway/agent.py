"""An agent as a test plays it: raw HTTP, so that every byte and header is the test's own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import aiohttp

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"]
META = "io.modelcontextprotocol/"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
URLS: dict[str, Any] = {"elicitation": {"url": {}}}
BOTH = "application/json, text/event-stream"


@dataclass
class Reply:
    status: int
    headers: Any
    body: bytes

    @property
    def is_stream(self) -> bool:
        return bool(self.headers["Content-Type"].startswith("text/event-stream"))

    @property
    def messages(self) -> list[Any]:
        """Of a stream all, in order; otherwise the one."""
        if not self.is_stream:
            return [json.loads(self.body)]
        blocks = self.body.decode().replace("\r\n", "\n").split("\n\n")
        datas = ["\n".join(data_of(block)) for block in blocks]
        return [json.loads(data) for data in datas if data]

    @property
    def last(self) -> Any:
        return self.messages[-1]

    @property
    def result(self) -> Any:
        return self.last["result"]

    @property
    def error(self) -> Any:
        return self.last["error"]

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])

    @property
    def call_id(self) -> str:
        return str(self.result["_meta"]["countersign/call"])


def data_of(block: str) -> list[str]:
    """What it carries; an event that only names a place carries nothing."""
    datas = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
    return [data for data in datas if data]


class NoSession(AssertionError):
    """The gateway began none; `reply` says why."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body)
        self.reply = reply


@dataclass
class Agent:
    """Speaks one revision; a legacy one opens its session when it first asks something."""

    http: aiohttp.ClientSession
    url: str
    token: str
    revision: str = MODERN
    capabilities: dict[str, Any] = field(default_factory=dict)
    session: str = ""
    last_id: int = 0
    client: str = "test"

    async def post(
        self, body: Any, *, headers: dict[str, str] | None = None, url: str = ""
    ) -> Reply:
        """Exactly this: a dict or list as JSON, bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        shown = {"Authorization": f"Bearer {self.token}", "Accept": BOTH}
        shown |= {"Content-Type": "application/json", **(headers or {})}
        shown = {name: value for name, value in shown.items() if value}
        # As a file: aiohttp warns of large bytes.
        async with self.http.post(url or self.url, data=BytesIO(data), headers=shown) as response:
            return Reply(response.status, response.headers, await response.read())

    async def ask(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> Reply:
        """A request as this revision wants it."""
        message = await self.message(method, params or {}, **options)
        return await self.post(message, headers=self.headers(message))

    async def message(
        self, method: str, params: dict[str, Any], *, request_id: Any = None, token: Any = None
    ) -> dict[str, Any]:
        if self.revision != MODERN and not self.session:
            await self.begin()
        self.last_id += 1
        meta = self.meta() if self.revision == MODERN else {}
        if token is not None:
            meta["progressToken"] = token
        if meta:
            params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        if request_id is None:
            request_id = self.last_id
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    def meta(self) -> dict[str, Any]:
        return {
            f"{META}protocolVersion": MODERN,
            f"{META}clientInfo": {"name": self.client, "version": "1"},
            f"{META}clientCapabilities": self.capabilities,
        }

    def headers(self, message: dict[str, Any]) -> dict[str, str]:
        if self.revision != MODERN:
            return {"MCP-Protocol-Version": self.revision, "Mcp-Session-Id": self.session}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        params = message["params"]
        named = params.get("taskId") or params.get("uri") or params.get("name")
        return {**headers, "Mcp-Name": named} if isinstance(named, str) else headers

    async def begin(self) -> Reply:
        params = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.client, "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}
        reply = await self.post(hello)
        if reply.status != 200:
            raise NoSession(reply)
        self.session = reply.headers["Mcp-Session-Id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.post(ready, headers=self.headers(ready))
        return reply

    async def call(
        self, tool: str, arguments: Any = None, *, token: Any = None, **more: Any
    ) -> Reply:
        params = {"name": tool, "arguments": {} if arguments is None else arguments, **more}
        return await self.ask("tools/call", params, token=token)

    async def call_with(self, tool: str, arguments: Any, **headers: str) -> Reply:
        """With arguments repeated in headers, each under its name there."""
        message = await self.message("tools/call", {"name": tool, "arguments": arguments})
        more = {f"Mcp-Param-{name}": value for name, value in headers.items()}
        return await self.post(message, headers=self.headers(message) | more)

    async def call_raw(self, tool: str, arguments: str) -> Reply:
        """With exactly these characters as arguments."""
        message = await self.message("tools/call", {"name": tool, "arguments": "@@"})
        body = json.dumps(message).replace('"@@"', arguments).encode()
        return await self.post(body, headers=self.headers(message))

    @asynccontextmanager
    async def open(self, message: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """A request whose answer is read bit by bit, or left."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": BOTH}
        headers |= self.headers(message)
        async with self.http.post(self.url, json=message, headers=headers) as response:
            yield response
