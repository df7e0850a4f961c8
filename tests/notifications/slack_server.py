"""Slack as its documentation has it: the Web API that a bot calls, and the signed requests that its
users' presses and commands become."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

TOKEN = "xoxb-111-222-abcdefghijklmnop"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TEAM = "T0000TEAM"
CHANNEL = "C0000CHAN"
BUTTON = {"type", "action_id", "text", "value", "url", "style"}


class SlackServer:
    """Its messages, by channel and time, as its users see them now; its open windows."""

    def __init__(self) -> None:
        self.team = TEAM
        self.names = {"#approvals": CHANNEL}
        self.messages: dict[tuple[str, str], dict[str, Any]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.windows: list[dict[str, Any]] = []
        self.window_opened = threading.Event()
        self.faults: list[str] = []
        self.error = ""
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.triggers: set[str] = set()
        self.url = ""
        self._ticks = 0

    def take(self, method: str, headers: Any, body: bytes) -> dict[str, Any]:
        if headers["Authorization"] != f"Bearer {TOKEN}":
            return {"ok": False, "error": "invalid_auth"}
        given = json.loads(body)
        self.calls.append((method, given))
        if self.error:
            return {"ok": False, "error": self.error}
        try:
            assert headers["Content-Type"] == "application/json; charset=utf-8"
            return {"ok": True, **getattr(self, method.replace(".", "_"))(given)}
        except AssertionError as error:
            self.faults.append(repr(error))
            return {"ok": False, "error": "invalid_arguments"}
        except KeyError:
            return {"ok": False, "error": "message_not_found"}

    def auth_test(self, _body: dict[str, Any]) -> dict[str, Any]:
        return {
            "url": "https://acme.slack.com/", "team": "Acme", "user": "countersign",
            "team_id": self.team, "user_id": "U0000BOT", "bot_id": "B0000BOT",
        }  # fmt: skip

    def chat_postMessage(self, body: dict[str, Any]) -> dict[str, Any]:
        assert set(body) <= {
            "channel", "text", "blocks", "unfurl_links", "unfurl_media", "thread_ts",
            "reply_broadcast",
        }  # fmt: skip
        if "thread_ts" in body:
            assert (body["channel"], body["thread_ts"]) in self.messages
        check_blocks(body["blocks"])
        # A public channel may be given by its name; the answer has its ID.
        channel = self.names.get(body["channel"], body["channel"])
        assert channel[0] in "CG"
        self._ticks += 1
        moment = f"1764036{self._ticks:03}.{self._ticks:06}"
        self.messages[channel, moment] = body
        return {"channel": channel, "ts": moment, "message": body}

    def chat_update(self, body: dict[str, Any]) -> dict[str, Any]:
        assert set(body) == {"channel", "ts", "text", "blocks"}
        check_blocks(body["blocks"])
        changed = self.messages[body["channel"], body["ts"]]
        changed |= {"text": body["text"], "blocks": body["blocks"]}
        return {"channel": body["channel"], "ts": body["ts"], "text": body["text"]}

    def views_open(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["trigger_id"] in self.triggers
        self.triggers.remove(body["trigger_id"])
        check_window(body["view"])
        self.windows.append(body["view"])
        self.window_opened.set()
        return {"view": {"id": "V1", **body["view"]}}

    def buttons(self, message: dict[str, Any]) -> dict[str, dict[str, Any]]:
        found = [one for one in message["blocks"] if one["type"] == "actions"]
        return {button["action_id"]: button for one in found for button in one["elements"]}

    def press(self, at: tuple[str, str], action: str, by: str, **more: Any) -> bytes:
        """The body that Slack sends for a press of a button of the message."""
        self.triggers.add(trigger := f"13345224609.738474920.{len(self.calls)}{action}{by}")
        self.window_opened.clear()
        button = {**self.buttons(self.messages[at])[action]}
        payload = {
            "type": "block_actions",
            "user": {"id": by, "username": by.lower(), "name": by, "team_id": self.team},
            "api_app_id": "A0000APP",
            "token": "deprecated",
            "container": {
                "type": "message", "message_ts": at[1], "channel_id": at[0], "is_ephemeral": False,
            },
            "trigger_id": trigger,
            "team": {"id": self.team, "domain": "acme"},
            "channel": {"id": at[0], "name": "approvals"},
            "response_url": "https://hooks.slack.com/actions/T/1/x",
            "actions": [{**button, "block_id": "b1", "action_ts": "1764036000.1"}],
            **more,
        }  # fmt: skip
        return urlencode({"payload": json.dumps(payload)}).encode()

    def submit(self, user: str, text: str | None, **more: Any) -> bytes:
        """The body that Slack sends when the last window is submitted."""
        window = self.windows[-1]
        typed = {"type": "plain_text_input", "value": text}
        payload = {
            "type": "view_submission",
            "team": {"id": self.team, "domain": "acme"},
            "user": {"id": user, "username": user.lower(), "name": user, "team_id": self.team},
            "api_app_id": "A0000APP",
            "view": {**window, "id": "V1", "state": {"values": {"text": {"text": typed}}}},
            "response_urls": [],
            **more,
        }
        return urlencode({"payload": json.dumps(payload)}).encode()

    def command(self, user: str, text: str, **more: str) -> bytes:
        form = {
            "token": "deprecated", "team_id": self.team, "team_domain": "acme",
            "channel_id": CHANNEL, "channel_name": "approvals", "user_id": user,
            "user_name": user.lower(), "command": "/countersign", "text": text,
            "response_url": "https://hooks.slack.com/commands/1", "trigger_id": "1.2.3",
            "api_app_id": "A0000APP", "is_enterprise_install": "false", **more,
        }  # fmt: skip
        return urlencode(form).encode()


def signed(body: bytes, *, secret: str = SECRET, age_s: int = 0) -> dict[str, str]:
    """As docs.slack.dev computes it, by itself: v0, the time and the body."""
    moment = str(int(time.time()) - age_s)
    base = b"v0:" + moment.encode() + b":" + body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": moment, "X-Slack-Signature": f"v0={digest}"}


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    assert 1 <= len(blocks) <= 50
    for block in blocks:
        if block["type"] == "actions":
            assert 1 <= len(block["elements"]) <= 25
            names = [one["action_id"] for one in block["elements"]]
            assert len(names) == len(set(names))
            for button in block["elements"]:
                check_button(button)
            continue
        assert block["type"] == "section"
        fields = block.get("fields", [])
        assert "text" in block or 1 <= len(fields) <= 10
        assert all(1 <= len(one["text"]) <= 2000 for one in fields)
        for text in [*fields, *([block["text"]] if "text" in block else [])]:
            assert text["type"] == "mrkdwn"
            assert 1 <= len(text["text"]) <= 3000


def check_button(button: dict[str, Any]) -> None:
    assert set(button) <= BUTTON
    assert button["type"] == "button"
    assert button["text"]["type"] == "plain_text"
    assert 1 <= len(button["text"]["text"]) <= 75
    assert len(button.get("value", "")) <= 2000
    assert button.get("style", "danger") in ("primary", "danger")


def check_window(view: dict[str, Any]) -> None:
    assert view["type"] == "modal"
    for name in ("title", "submit", "close"):
        assert name not in view or 1 <= len(view[name]["text"]) <= 24
    assert "title" in view
    assert len(view.get("private_metadata", "")) <= 3000
    inputs = [one for one in view["blocks"] if one["type"] == "input"]
    assert not inputs or "submit" in view
    for one in inputs:
        assert one["element"]["type"] == "plain_text_input"
        assert 1 <= one["element"]["max_length"] <= 3000


@contextmanager
def slack_server() -> Iterator[SlackServer]:
    slack = SlackServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = slack.refusal or (200, {})
            answer = (
                b""
                if slack.refusal
                else json.dumps(
                    slack.take(self.path.removeprefix("/api/"), self.headers, body)
                ).encode()
            )
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        slack.url = f"http://127.0.0.1:{server.server_address[1]}/api"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield slack
        finally:
            server.shutdown()
            thread.join()
