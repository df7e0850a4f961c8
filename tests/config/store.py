"""A store that speaks like S3, as far as files of several parts need it; it takes no request whose
signature it does not find right."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import threading
from collections import Counter
from typing import Any, Self
from urllib.parse import parse_qsl, quote

import uvicorn

ACCESS_KEY, SECRET_KEY, REGION = "AKIASTORE", "the store's secret + one", "eu-central-1"
FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,"
    r"SignedHeaders=([a-z0-9;-]+),Signature=([0-9a-f]{64})"
)


class Store:
    """`files` by path; `flaw` is what it does wrong."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.asked: Counter[str] = Counter()
        self.flaw = ""

    def __enter__(self) -> Self:
        config = uvicorn.Config(
            self.app, port=0, lifespan="off", interface="asgi3", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    @property
    def env(self) -> dict[str, str]:
        return {
            "COUNTERSIGN_ARCHIVE_URL": f"http://127.0.0.1:{self.port}",
            "COUNTERSIGN_ARCHIVE_REGION": REGION,
            "COUNTERSIGN_ARCHIVE_ACCESS_KEY": ACCESS_KEY,
            "COUNTERSIGN_ARCHIVE_SECRET_KEY": SECRET_KEY,
            "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
        }

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, answer, headers = await asyncio.to_thread(self._answer, scope, body)
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        lines.append((b"content-length", str(len(answer)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, scope: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        self.asked[scope["method"]] += 1
        if not is_signed(scope, headers, query, body):
            return 403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>", {}
        path = scope["path"]
        match scope["method"], sorted(query):
            case "POST", ["uploads"]:
                # With what has to be encoded in an address.
                self.uploads["an id+of/it=="] = {}
                return 200, b"<R><UploadId>an id+of/it==</UploadId></R>", {}
            case "PUT", ["partNumber", "uploadId"]:
                part = body[:-1] if self.flaw == "loses a byte" else body
                self.uploads[query["uploadId"]][int(query["partNumber"])] = part
                return 200, b"", {"etag": f'"{hashlib.md5(body).hexdigest()}"'}
            case "POST", ["uploadId"]:
                return self._complete(path, headers, self.uploads.pop(query["uploadId"]), body)
            case "DELETE", ["uploadId"]:
                self.uploads.pop(query["uploadId"], None)
                return 204, b"", {}
            case "GET", []:
                return self._read(path, headers)
        return 400, b"", {}

    def _complete(
        self, path: str, headers: dict[str, str], parts: dict[int, bytes], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        if self.flaw == "fails late":
            return 200, b"<Error><Code>InternalError</Code></Error>", {}
        if path in self.files and headers.get("if-none-match") == "*":
            return 412, b"", {}
        assert body.count(b"<Part>") == len(parts)
        self.files[path] = b"".join(parts[number] for number in sorted(parts))
        return 200, b"<Done/>", {}

    def _read(self, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if path not in self.files:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>", {}
        first, last = map(int, headers["range"].removeprefix("bytes=").split("-"))
        content = self.files[path]
        if first >= len(content):
            return 416, b"", {}
        return 206, content[first : last + 1], {}


def is_signed(scope: Any, headers: dict[str, str], query: dict[str, str], body: bytes) -> bool:
    found = FORM.fullmatch(headers.get("authorization", ""))
    if found is None or (found[1], found[3]) != (ACCESS_KEY, REGION):
        return False
    digest = hashlib.sha256(body).hexdigest()
    time = headers["x-amz-date"]
    if headers["x-amz-content-sha256"] != digest or not time.startswith(found[2]):
        return False
    names = found[4].split(";")
    assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names)
    encoded = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in query.items())
    request = "\n".join(
        [
            scope["method"],
            quote(scope["path"], safe="/"),
            "&".join("=".join(pair) for pair in encoded),
            "".join(f"{name}:{headers[name]}\n" for name in names),
            found[4],
            digest,
        ]
    )
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (found[2], REGION, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{time}\n{found[2]}/{REGION}/s3/aws4_request\n{hashed}"
    return hmac.digest(key, text.encode(), "sha256").hex() == found[5]
