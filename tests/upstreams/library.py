"""An upstream MCP server that offers resources, prompts and completion, as its shelves say."""

import asyncio
import json
from typing import Any

from tests.upstreams.recorder import DISCOVERED, Received, Recorder, respond

CAPABILITIES: dict[str, Any] = {
    "tools": {},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
}
NOTES = {
    "uri": "notes://today",
    "name": "today",
    "title": "Today's notes",
    "mimeType": "text/plain",
    "x-shelf": {"row": 3},
}
PICTURE = {"uri": "notes://picture", "name": "picture", "mimeType": "image/png", "size": 70}
BY_DAY = {"uriTemplate": "notes://day/{day}", "name": "day"}
REVIEW = {
    "name": "review",
    "title": "Review a text",
    "arguments": [
        {"name": "text", "required": True},
        {"name": "tone", "description": "Kind or strict."},
    ],
}
GREET = {"name": "greet", "x-shelf": 1}
# Spaces, an escaped letter and an exponent: nobody writes it like this again.
MESSAGES = rb'{"messages": [ {"role":"user","content":{"type":"text","text":"h\u00e4"}} ], "n":1e2}'
LISTS = {
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}


class Library(Recorder):
    resources: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    page: int
    # By URI or by the prompt's name: a result byte for byte, or an error.
    shelf: dict[str, bytes | dict[str, Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.streams: dict[int, list[str]] = {}

    def reset(self) -> None:
        super().reset()
        self.updated: list[str] = []
        self.said: list[str] = []
        self.tools = {}
        self.discovered = declaring(CAPABILITIES)
        self.resources = [NOTES, PICTURE]
        self.templates = [BY_DAY]
        self.prompts = [REVIEW, GREET]
        self.page = 2
        self.shelf = {"review": MESSAGES, "greet": MESSAGES}

    @property
    def asked(self) -> list[Received]:
        """For what it holds, and not what it lists."""
        methods = ("resources/read", "prompts/get", "completion/complete")
        return [r for r in self.received if r.message["method"] in methods]

    def update(self, uri: str) -> None:
        """Whoever subscribed hears that it changed."""
        self.updated.append(uri)

    @property
    def subscribed(self) -> list[list[str]]:
        """What each stream that is open now is about."""
        return list(self.streams.values())

    async def _stream(self, message: dict[str, Any], receive: Any, send: Any) -> None:
        gone = asyncio.ensure_future(receive())
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        wanted, told = message["params"]["notifications"], len(self.updated)
        self.streams[message["id"]] = wanted["resourceSubscriptions"]
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}}
        await _say(send, "subscriptions/acknowledged", {"notifications": wanted, **meta})
        while not gone.done():
            for uri in self.updated[told:]:
                await _say(send, "resources/updated", {"uri": uri, **meta})
                self.said.append(uri)
            told = len(self.updated)
            await asyncio.sleep(0.01)
        del self.streams[message["id"]]

    async def other(self, received: Received, receive: Any, send: Any) -> None:
        message = received.message
        method, params = message["method"], message["params"]
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "subscriptions/listen":
            await self._stream(message, receive, send)
            return
        if method in LISTS:
            reply["result"] = self._page(*LISTS[method], params.get("cursor", ""))
        elif method == "completion/complete":
            values = [params["argument"]["value"] + "!"]
            reply["result"] = {"completion": {"values": values, "hasMore": False}}
        else:
            found = self._found(params)
            if isinstance(found, bytes):
                await self._result(send, received, found)
                return
            reply["error"] = found
        await respond(send, json.dumps(reply).encode())

    def _found(self, params: dict[str, Any]) -> bytes | dict[str, Any]:
        key = params.get("uri") or params["name"]
        if key in self.shelf:
            return self.shelf[key]
        if "uri" in params and not key.endswith("nothing"):
            return text(key, f"This is {key}.")
        return {"code": -32602, "message": "Not on the shelf", "data": {"x": 1}}

    def _page(self, shelf: str, member: str, cursor: str) -> dict[str, Any]:
        items, start = getattr(self, shelf), int(cursor or 0)
        page = {member: items[start : start + self.page], "ttlMs": 0, "cacheScope": "public"}
        if start + self.page < len(items):
            page["nextCursor"] = str(start + self.page)
        return page


async def _say(send: Any, method: str, params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
    data = b"data: %b\n\n" % json.dumps(message).encode()
    await send({"type": "http.response.body", "body": data, "more_body": True})


def text(uri: str, words: str) -> bytes:
    contents = [{"uri": uri, "mimeType": "text/plain", "text": words}]
    members = {"contents": contents, "ttlMs": 5000, "cacheScope": "public"}
    return json.dumps(members).encode()


def declaring(capabilities: dict[str, Any]) -> bytes:
    return json.dumps({**json.loads(DISCOVERED), "capabilities": capabilities}).encode()
