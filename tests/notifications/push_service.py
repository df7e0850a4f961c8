"""A push service of ours, with the browser behind it: it checks who sends, and opens what came."""

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


class Browser:
    """Opens messages by RFC 8291, written from its text: not with the library that made them."""

    def __init__(self, private: bytes = b"", auth: bytes = b"") -> None:
        self._private = (
            ec.derive_private_key(int.from_bytes(private), ec.SECP256R1())
            if private
            else ec.generate_private_key(ec.SECP256R1())
        )
        self.auth = auth or os.urandom(16)
        self.point = _point(self._private.public_key())

    def open(self, body: bytes) -> bytes:
        salt, size, length = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert 18 <= len(record) <= size
        shared = self._private.exchange(ec.ECDH(), _public(sender))
        info = b"WebPush: info\0" + self.point + sender
        secret = _hkdf(self.auth, shared, info, 32)
        key = _hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded[-1:] == b"\x02"
        return padded[:-1]


class PushService:
    """What it took: headers, and the message as the browser opens it."""

    def __init__(self) -> None:
        self.browser = Browser()
        self.status = 201
        self.more: dict[str, str] = {}
        self.url = ""
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.bodies: list[bytes] = []
        # The key that subscriptions were made for.
        self.key = ""
        self.before_answer: Callable[[], None] = lambda: None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for _headers, message in self.requests]

    def subscription(self, **change: object) -> str:
        """As a browser's `PushSubscription.toJSON()`."""
        keys = {"p256dh": _text(self.browser.point), "auth": _text(self.browser.auth)}
        made = {"endpoint": self.url, "expirationTime": None, "keys": keys}
        return json.dumps({**made, **change})

    def take(self, headers: Any, body: bytes) -> int:
        assert headers["Content-Encoding"] == "aes128gcm"
        # RFC 8030: seconds, and characters that need no escaping.
        assert int(headers["TTL"]) >= 0
        assert 0 < len(headers["Topic"]) <= 32
        assert len(body) <= 4096
        if not self._is_signed(headers["Authorization"]):
            return 403
        self.bodies.append(body)
        self.requests.append((dict(headers), json.loads(self.browser.open(body))))
        self.before_answer()
        return self.status

    def _is_signed(self, authorization: str) -> bool:
        """Source: RFC 8292: a token for this very service, not for longer than a day."""
        scheme, _, parts = authorization.partition(" ")
        given = dict(one.strip().split("=", 1) for one in parts.split(","))
        signed, _, signature = given["t"].rpartition(".")
        head, claims = (json.loads(_bytes(part)) for part in signed.split("."))
        r, s = _bytes(signature)[:32], _bytes(signature)[32:]
        der = encode_dss_signature(int.from_bytes(r), int.from_bytes(s))
        # Raises for a wrong one.
        _public(_bytes(given["k"])).verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
        return (
            scheme == "vapid"
            and head["alg"] == "ES256"
            and claims["aud"] == self.url.rpartition("/")[0]
            and claims["sub"].startswith("mailto:")
            and 0 < claims["exp"] - time.time() <= 86400
            and given["k"] == self.key
        )


@contextmanager
def push_service() -> Iterator[PushService]:
    service = PushService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(service.take(self.headers, body))
            for name, value in {"Content-Length": "0", **service.more}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_address[1]}/{_text(os.urandom(24))}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def fingerprint(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _public(point: bytes) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
