"""An endpoint in the dialect of OpenAI's embeddings; a vector counts words of each meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

# Words of one line mean the same.
MEANINGS = (
    ("refund", "money", "退", "钱", "pays back"),
    ("umbrella", "brolly", "雨伞"),
    ("wind", "gale", "风", "weather"),
)


class Embedder(BaseHTTPRequestHandler):
    asked: list[Any]
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"], body))
        found = [{"index": n, "embedding": vector(t)} for n, t in enumerate(body["input"])]
        answer = json.dumps({"object": "list", "data": found[::-1]}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_said: Any) -> None:
        pass


def vector(text: str) -> list[float]:
    return [float(sum(text.lower().count(word) for word in group)) for group in MEANINGS]


@contextmanager
def embedder() -> Iterator[tuple[type[Embedder], str]]:
    """Its class, which knows the requests, and its address."""
    kind = type("OwnEmbedder", (Embedder,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kind, f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
