"""A server of ours at the far end, which answers what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FarEnd:
    """`answers`: status, headers and body, of each request in turn; the last one from then on."""

    answers: list[tuple[int, dict[str, str], bytes]]
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        handler.rfile.read(int(headers.get("content-length", 0)))
        self.requests.append((handler.command, handler.path, headers))
        status, fields, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        handler.send_response(status)
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


def answer(body: Any, status: int = 200, **headers: str) -> tuple[int, dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps(body).encode()


@contextmanager
def far_end(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[FarEnd]:
    there = FarEnd(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def respond(self) -> None:
            there.respond(self)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = respond

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
