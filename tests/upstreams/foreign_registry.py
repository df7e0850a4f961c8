"""An MCP registry of somebody else's: it lists what it is given, or answers as it likes."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

Json = dict[str, Any]
META = "io.modelcontextprotocol.registry/official"


class ForeignRegistry:
    """`raw`: answers every request with these bytes instead."""

    def __init__(self, servers: list[Json]) -> None:
        self.servers = servers
        self.asked: list[str] = []
        self.raw: bytes | None = None
        self.status = 200
        # Lists the same page for ever.
        self.is_endless = False

    def __enter__(self) -> Self:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                body = registry.raw
                if body is None:
                    body = json.dumps(registry.answer(self.path)).encode()
                self.send_response(registry.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, target: str) -> Json:
        url = urlsplit(target)
        _v, _servers, *rest = url.path.strip("/").split("/")
        if rest:
            name = unquote(rest[0])
            return next((_entry(one) for one in self.servers if one["name"] == name), {})
        given = {name: texts[0] for name, texts in parse_qs(url.query).items()}
        found = [one for one in self.servers if given.get("search", "") in one["name"]]
        start, limit = int(given.get("cursor", "0")), int(given["limit"])
        shown = found[start : start + limit]
        metadata: Json = {"count": len(shown)}
        if self.is_endless or start + limit < len(found):
            metadata["nextCursor"] = str(0 if self.is_endless else start + limit)
        return {"servers": [_entry(one) for one in shown], "metadata": metadata}


def _entry(server: Json) -> Json:
    about = {"status": "active", "publishedAt": "2026-03-01T08:00:00Z", "isLatest": True}
    return {"server": server, "_meta": {META: about}}
