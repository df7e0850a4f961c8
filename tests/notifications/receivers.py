"""Far ends of notifications: a mail server, and a receiver of webhooks that checks signatures."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings


class Mailbox:
    """What a mail server took; `refusal` is its answer to every recipient, if set."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refusal = ""

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.recipients += envelope.rcpt_tos
        self.messages.append(message)
        return "250 OK"


@contextmanager
def mail_server(port: int = 0) -> Iterator[tuple[Mailbox, int]]:
    """Its mailbox, and its port on 127.0.0.1."""
    mailbox = Mailbox()
    controller = _Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield mailbox, controller.port
    finally:
        controller.stop()


class _Controller(Controller):
    def _trigger_server(self) -> None:
        """Theirs connects to the port that was asked for, which is 0."""
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def text_of(message: EmailMessage, kind: str = "plain") -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def links_to(path: str, text: str) -> bool:
    """Whether it has a link that notes who follows it, to this page of ours."""
    here = re.escape(settings.PUBLIC_URL)
    return bool(re.search(rf"{here}/message/[0-9a-f-]{{36}}{re.escape(path)}(?![\w/?])", text))


class Hook:
    """A receiver that keeps what is signed with one of its secrets, once an id."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self.status = 204
        self.answer = b""
        # Each request: its id, and its body.
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.signatures: list[str] = []
        # Called while the sender waits for the answer.
        self.before_answer: Callable[[], None] = lambda: None
        # Called once the answer is on its way.
        self.after_answer: Callable[[], None] = lambda: None
        self.url = ""

    @property
    def received(self) -> dict[str, dict[str, Any]]:
        return dict(self.requests)

    def take(self, headers: Any, body: bytes) -> int:
        if self.secrets and not self._is_signed(headers, body):
            return 401
        self.requests.append((headers["webhook-id"], json.loads(body)))
        self.signatures.append(headers["webhook-signature"])
        self.before_answer()
        return self.status

    def _is_signed(self, headers: Any, body: bytes) -> bool:
        """As the specification's own libraries check it: any signature, by any valid secret."""
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        given = headers["webhook-signature"].split(" ")
        fresh = abs(time.time() - int(headers["webhook-timestamp"])) < 300
        return fresh and any(
            hmac.compare_digest(one, expected)
            for one in given
            for expected in (_signature(secret, signed) for secret in self.secrets)
        )


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@contextmanager
def webhook_receiver() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = hook.take(self.headers, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(hook.answer)))
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            # The sender may have closed before the end.
            with suppress(ConnectionError):
                self.wfile.write(hook.answer)
                self.wfile.flush()
            hook.after_answer()

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hook
        finally:
            server.shutdown()
            thread.join()
