"""An HTTP API made from an OpenAPI document: it answers as the document says, and keeps each
request as it came."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class HttpApi:
    """`answers`: by "METHOD /path" of the document, instead of what it says."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.received: list[ReceivedRequest] = []
        self.answers: dict[str, Answer] = {}

    def __enter__(self) -> Self:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = ReceivedRequest(self.command, self.path, headers, body)
                api.received.append(request)
                answer = api.answer(request)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: ReceivedRequest) -> Answer:
        path = request.target.partition("?")[0]
        if path == "/openapi.json":
            kind = {"Content-Type": "application/json"}
            return Answer(200, kind, json.dumps(self.document).encode())
        for template, item in self.document["paths"].items():
            operation = item.get(request.method.lower())
            if operation and re.fullmatch(re.sub(r"\{[^{}]*\}", "[^/]+", template), path):
                key = f"{request.method} {template}"
                return self.answers.get(key) or self._described(operation)
        return Answer(404, {"Content-Type": "text/plain"}, b"no such operation")

    def _described(self, operation: dict[str, Any]) -> Answer:
        status, response = next(iter(operation["responses"].items()))
        response = self._followed(response)
        content = response.get("content", {})
        if not content:
            return Answer(int(status))
        kind, media = next(iter(content.items()))
        body = json.dumps(self.value(media.get("schema", {}))).encode()
        return Answer(int(status), {"Content-Type": kind}, body)

    def _followed(self, node: Any) -> Any:
        while "$ref" in node:
            found: Any = self.document
            for name in node["$ref"].removeprefix("#/").split("/"):
                found = found[name.replace("~1", "/").replace("~0", "~")]
            node = found
        return node

    def value(self, schema: Any, depth: int = 0) -> Any:
        """Some value that fits."""
        schema = self._followed(schema)
        for keyword in ("example", "default", "const"):
            if keyword in schema:
                return schema[keyword]
        if schema.get("enum"):
            return schema["enum"][0]
        for keyword in ("oneOf", "anyOf"):
            if schema.get(keyword):
                return self.value(schema[keyword][0], depth + 1)
        if schema.get("allOf"):
            merged: dict[str, Any] = {}
            for part in schema["allOf"]:
                merged |= self.value(part, depth + 1) or {}
            return merged
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        match kind:
            case "object":
                required = schema.get("required", []) if depth < 8 else []
                members = schema.get("properties", {})
                return {name: self.value(members.get(name, {}), depth + 1) for name in required}
            case "array":
                return []
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
            case "string":
                return "x" * schema.get("minLength", 1)
        return {}
