"""A host of documents about clients (client ID metadata documents)."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class DocumentHost:
    """What is put into `answers` by path is served: a document, or a status and raw bytes."""

    def __init__(self, papers: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, dict[str, Any] | tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.kind = "application/json"
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked.append(self.path)
                answer = host.answers.get(self.path, (404, b""))
                status, body = (
                    answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())
                )
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", body.decode())
                self.send_header("Content-Type", host.kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        port = self._server.server_port
        self.url = f"http://127.0.0.1:{port}"
        if papers is not None:
            self._server.socket = papers.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def describe(self, path: str = "/app.json", **said: Any) -> str:
        """Puts a document there; returns the client's id, which is its address."""
        client_id = f"{self.url}{path}"
        self.answers[path] = {
            "client_id": client_id,
            "client_name": "Desk app",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "token_endpoint_auth_method": "none",
            **said,
        }
        return client_id
