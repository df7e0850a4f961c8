"""Far ends of chats: each takes what its vendor documents, answers as it does, and shows what its
people would see."""

import base64
import hmac
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

Answer = tuple[int, bytes]
LINK = "/queue/"


class Chat(ABC):
    """Keeps the requests that it took; what breaks the vendor's rules is answered with 400."""

    path = "/services/T000/B000/secretsecretwxyz"
    # To a caller that it does not know.
    unknown: Answer = (404, b"no_service")

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.queries: list[dict[str, list[str]]] = []
        self.faults: list[str] = []
        # Requests of callers that it does not know.
        self.strangers = 0
        # Answered instead, with these headers.
        self.refusal: tuple[int, dict[str, str]] | None = None
        # In seconds, as Telegram says it in the body.
        self.retry_after = 77
        self.url = ""

    def take(self, path: str, body: bytes) -> Answer:
        split, given = urlsplit(path), json.loads(body)
        if not self.knows(split):
            self.strangers += 1
            return self.unknown
        try:
            self.check(given)
        except AssertionError as error:
            self.faults.append(repr(error))
            return 400, b"invalid_payload"
        self.bodies.append(given)
        self.queries.append(parse_qs(split.query))
        return self.answer()

    def knows(self, address: SplitResult) -> bool:
        """Whoever has the secret path may post."""
        return address.path == urlsplit(self.path).path

    @abstractmethod
    def check(self, body: dict[str, Any]) -> None:
        """Raises AssertionError for what the vendor would not take."""

    def answer(self) -> Answer:
        return 200, b"ok"


class Slack(Chat):
    """docs.slack.dev: incoming webhooks; section: text of 1 to 3,000, up to 10 fields of 2,000."""

    def check(self, body: dict[str, Any]) -> None:
        assert set(body) == {"text", "blocks", "unfurl_links", "unfurl_media"}
        assert 1 <= len(body["blocks"]) <= 50
        for block in body["blocks"]:
            assert block["type"] == "section"
            assert set(block) in ({"type", "text"}, {"type", "fields"})
            fields = block.get("fields", [])
            assert "text" in block or 1 <= len(fields) <= 10
            assert all(1 <= len(one["text"]) <= 2000 for one in fields)
            for text in [*fields, *([block["text"]] if "text" in block else [])]:
                assert text["type"] == "mrkdwn"
                assert text["verbatim"] is True
                assert 1 <= len(text["text"]) <= 3000


class Teams(Chat):
    """learn.microsoft.com: a message of 28 KB with one Adaptive Card; 202 without an id.

    The address of a workflow is signed (SAS): with another path, or other parameters, its signature
    is wrong. Which bytes Microsoft signs is not documented; here they are all but itself.
    """

    key = b"of the workflow"
    unsigned = (
        "/workflows/abc/triggers/manual/paths/invoke?api-version=1&sp=%2Ftriggers%2Frun&sv=1.0"
    )
    unknown = (401, b'{"error": {"code": "DirectApiAuthorizationRequired"}}')

    @property
    def path(self) -> str:  # type: ignore[override]
        return f"{self.unsigned}&sig={self._signature(urlsplit(self.unsigned))}"

    def knows(self, address: SplitResult) -> bool:
        given = parse_qs(address.query).get("sig", [""])[0]
        return hmac.compare_digest(given, self._signature(address))

    def _signature(self, address: SplitResult) -> str:
        named = sorted((name, *v) for name, v in parse_qs(address.query).items() if name != "sig")
        signed = json.dumps([address.path, named]).encode()
        digest = hmac.digest(self.key, signed, "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def check(self, body: dict[str, Any]) -> None:
        assert len(json.dumps(body)) <= 28 * 1024
        assert body["type"] == "message"
        (attachment,) = body["attachments"]
        assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
        card = attachment["content"]
        assert card["type"] == "AdaptiveCard"
        assert card["version"] == "1.4"
        for block in card["body"]:
            assert block["type"] == "RichTextBlock"
            assert all(run["type"] == "TextRun" and run["text"] for run in block["inlines"])
        (action,) = card["actions"]
        assert action["type"] == "Action.OpenUrl"

    def answer(self) -> Answer:
        return 202, b""


class Mattermost(Chat):
    """docs.mattermost.com: incoming webhooks; a post of 16,383 characters."""

    path = "/hooks/abcdefghijklmnopqrstuvwxyz"

    def check(self, body: dict[str, Any]) -> None:
        assert set(body) == {"text"}
        assert 1 <= len(body["text"]) <= 16383


class Discord(Chat):
    """docs.discord.com, Execute Webhook: content of 2,000; with `wait` it answers the message."""

    path = "/api/webhooks/1234/tokentokentokenwxyz"

    def check(self, body: dict[str, Any]) -> None:
        assert set(body) <= {"content", "allowed_mentions", "flags"}
        assert 1 <= units(body["content"]) <= 2000
        assert body["allowed_mentions"] == {"parse": []}
        assert body["flags"] == 4

    def answer(self) -> Answer:
        assert self.queries[-1] == {"wait": ["true"]}
        return 200, b'{"id": "1", "content": ""}'


class Telegram(Chat):
    """core.telegram.org/bots/api, sendMessage: text of 4,096, entities in units of UTF-16."""

    path = "/bot1234:AAsecretsecretsecret/sendMessage?chat_id=-1001234567890"

    def __init__(self) -> None:
        super().__init__()
        # Of the last 24 hours.
        self.updates: list[Any] = []

    def take(self, path: str, body: bytes) -> Answer:
        bot, _slash, method = path.rpartition("/")
        if method != "getUpdates":
            return super().take(path, body)
        if bot != "/bot1234:AAsecretsecretsecret":
            return 401, b'{"ok": false, "error_code": 401, "description": "Unauthorized"}'
        assert json.loads(body) == {}
        return 200, json.dumps({"ok": True, "result": self.updates}).encode()

    def check(self, body: dict[str, Any]) -> None:
        assert body["chat_id"] == "-1001234567890"
        assert 1 <= units(body["text"]) <= 4096
        assert "parse_mode" not in body
        assert body["link_preview_options"] == {"is_disabled": True}
        assert all(one["type"] == "code" for one in body["entities"])
        if "reply_parameters" in body:
            assert 1 <= body["reply_parameters"]["message_id"] <= len(self.bodies)

    def answer(self) -> Answer:
        result = {"message_id": len(self.bodies), "chat": {"id": -1001234567890}}
        return 200, json.dumps({"ok": True, "result": result}).encode()

    def code(self, body: dict[str, Any]) -> list[str]:
        """What is shown as code: by the units that Telegram counts."""
        text = body["text"].encode("utf-16-le")
        spans = [(2 * one["offset"], 2 * one["length"]) for one in body["entities"]]
        return [text[at : at + long].decode("utf-16-le") for at, long in spans]


CHATS: dict[str, type[Chat]] = {
    "slack": Slack,
    "teams": Teams,
    "mattermost": Mattermost,
    "discord": Discord,
    "telegram": Telegram,
}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@contextmanager
def chat_server(kind: str) -> Iterator[Chat]:
    chat = CHATS[kind]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            headers: dict[str, str] = {}
            if chat.refusal:
                status, headers = chat.refusal
                said = {"ok": False, "parameters": {"retry_after": chat.retry_after}}
                answer = json.dumps(said).encode()
            else:
                status, answer = chat.take(self.path, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        chat.url = f"http://127.0.0.1:{server.server_address[1]}{chat.path}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield chat
        finally:
            server.shutdown()
            thread.join()
