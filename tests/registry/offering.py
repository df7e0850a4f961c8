"""An MCP server whose tools a test may change at will, as servers do behind our back."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Tool = dict[str, Any]

# One honest tool, with every field that a definition has.
ADD: Tool = {
    "name": "add",
    "title": "Add",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number", "maximum": 100}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}},
    "annotations": {"readOnlyHint": True, "title": "Add"},
    "icons": [{"src": "data:image/svg+xml,<svg/>"}],
    "_meta": {"org.example/class": "arithmetic"},
    "execution": {"taskSupport": "optional"},
}


class Offering:
    """What it says at `/mcp` and, all alike, at every other path."""

    def __init__(self) -> None:
        self.tools: list[Tool] = []
        self.info: dict[str, Any] = {"name": "offering", "version": "1.0"}
        self.status = 200
        # Raw JSON instead of `tools`, for what no honest server writes.
        self.raw = b""
        self.asked: list[dict[str, str]] = []

    def answer(self, request: dict[str, Any]) -> bytes:
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        match request["method"]:
            case "server/discover":
                body["result"] = self._introduction()
            case "tools/list" if self.raw:
                head = json.dumps({**body, "result": {"tools": None}}).encode()
                return head.replace(b"null", self.raw)
            case "tools/list":
                body["result"] = {"tools": self.tools, "ttlMs": 0, "cacheScope": "private"}
            case method:
                body["error"] = {"code": -32601, "message": f"no {method}"}
        return json.dumps(body).encode()

    def _introduction(self) -> dict[str, Any]:
        return {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info},
        }


@contextmanager
def serving(offering: Offering) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            offering.asked.append(dict(self.headers))
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = offering.answer(json.loads(body)) if offering.status == 200 else b"{}"
            self.send_response(offering.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
