"""Servers that say by themselves when their tools change: over HTTP of today, over HTTP and HTTP
with SSE of before, in the test's own loop; or on stdio: python -m tests.upstreams.telling FILE

There the tools are FILE's lines. `forget` takes away the last, which that process alone tells of;
what happens to FILE.told, all tell of.
"""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.upstreams.raw import (
    Request,
    begin_events,
    chunk,
    end_events,
    event,
    reply,
    respond,
)

CHANGED = "notifications/tools/list_changed"
CAPABILITIES = {"tools": {"listChanged": True}}
INFO = {"name": "telling", "version": "1"}
EVERY_S = 0.02


def listed(names: list[str]) -> dict[str, Any]:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}


def opening(revision: str) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": CAPABILITIES, "serverInfo": INFO}


class Telling:
    """`streams`: those open now, on which it says that something changed."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.tools = ["one", "two"]
        self.streams: list[asyncio.StreamWriter] = []
        self.asked = 0
        # Of what it says that it can tell, it will not.
        self.refuses = False

    def change(self, *tools: str, times: int = 1) -> None:
        self.tools = list(tools)
        said = json.dumps({"jsonrpc": "2.0", "method": CHANGED}).encode()
        for stream in self.streams:
            for _ in range(times):
                event(stream, said)

    def hang_up(self) -> None:
        for stream in self.streams:
            end_events(stream)
            stream.close()

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "tools/list":
            self.asked += 1
        await {"modern": self._modern, "legacy": self._legacy, "sse": self._sse}[self.way](
            request, out
        )

    async def _modern(self, request: Request, out: asyncio.StreamWriter) -> None:
        match request.method:
            case "server/discover":
                found = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
                respond(out, reply(request, json.dumps(found)))
            case "tools/list":
                respond(out, reply(request, json.dumps(listed(self.tools))))
            case "subscriptions/listen" if self.refuses:
                respond(out, b"", status=405)
            case "subscriptions/listen":
                assert request.json["params"]["notifications"]["toolsListChanged"] is True
                begin_events(out)
                method = "notifications/subscriptions/acknowledged"
                event(out, json.dumps({"jsonrpc": "2.0", "method": method}).encode())
                await self._open(request, out)

    async def _legacy(self, request: Request, out: asyncio.StreamWriter) -> None:
        match request.method:
            case "initialize":
                said = json.dumps(opening("2025-11-25"))
                respond(out, reply(request, said), headers={"Mcp-Session-Id": "s"})
            case "tools/list":
                respond(out, reply(request, json.dumps(listed(self.tools))))
            case "server/discover":
                respond(out, b"{}", status=400)
            case "" if request.verb == "GET" and self.refuses:
                respond(out, b"", status=405)
            case "" if request.verb == "GET":
                begin_events(out)
                await self._open(request, out)
            case _:
                respond(out, b"", status=202)

    async def _sse(self, request: Request, out: asyncio.StreamWriter) -> None:
        if request.verb == "GET":
            begin_events(out)
            self.place = out
            chunk(out, b"event: endpoint\ndata: /messages\n\n")
        elif request.path != "/messages":
            respond(out, b"", status=405)
        else:
            respond(out, b"", status=202)
            await out.drain()
            await self._said(request, self.place)

    async def _said(self, request: Request, out: asyncio.StreamWriter) -> None:
        match request.method:
            case "initialize":
                event(out, reply(request, json.dumps(opening("2024-11-05"))))
            case "notifications/initialized":
                self.streams = [out]
            case "tools/list":
                event(out, reply(request, json.dumps(listed(self.tools))))
        await out.drain()

    async def _open(self, request: Request, out: asyncio.StreamWriter) -> None:
        await out.drain()
        self.streams.append(out)
        try:
            await request.rest.read(1)
        finally:
            self.streams.remove(out)


class OnStdio:
    def __init__(self, tools: Path) -> None:
        self._tools = tools
        self._written = threading.Lock()

    def run(self) -> None:
        threading.Thread(target=self._tell, daemon=True).start()
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                self._answer(message["id"], message["method"], message["params"])

    def _answer(self, id_: int, method: str, params: dict[str, Any]) -> None:
        match method:
            case "initialize":
                self._say(id=id_, result=opening(params["protocolVersion"]))
            case "tools/list":
                self._say(id=id_, result=listed(self._names()))
            case "tools/call":
                self._tools.write_text("\n".join(self._names()[:-1]))
                self._say(method=CHANGED)
                self._say(id=id_, result={"content": []})
            case _:
                self._say(id=id_, error={"code": -32601, "message": f"no {method}"})

    def _names(self) -> list[str]:
        return self._tools.read_text().split()

    def _tell(self) -> None:
        told, seen = self._tools.with_suffix(".told"), 0.0
        while True:
            time.sleep(EVERY_S)
            now = told.stat().st_mtime if told.exists() else 0.0
            if now != seen:
                self._say(method=CHANGED)
            seen = now

    def _say(self, **message: Any) -> None:
        with self._written:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    OnStdio(Path(sys.argv[1])).run()
