"""A provider that we own, in the wire format of real ones: it lies where a test tells it to."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT = "countersign"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


class SigningKey:
    """A key of its own, with a name."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(4)
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(self.private.public_key()))
        return said | {"kid": self.name, "use": "sig", "alg": "RS256"}

    @property
    def public_pem(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


@dataclass
class FakeProvider:
    issuer: str
    key: SigningKey = field(default_factory=SigningKey)
    # What it publishes, if not `key`.
    keys: list[dict[str, Any]] | None = None
    subject: str = "248289761001"
    # About the person; and what is put over the token's own claims (None: left out).
    about: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    algorithm: str = "RS256"
    # Of codes: what they were asked with. Each is good for one use.
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def authorize(self, url: str, **wrong: str | None) -> dict[str, str]:
        """The parameters of its answer to a browser that came with this URL."""
        query = dict(parse_qsl(urlsplit(url).query))
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.issuer, **wrong}
        return {name: value for name, value in answer.items() if value is not None}

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "auth_time": now,
            "nonce": nonce,
            **self.about,
            **self.wrong,
        }
        return self.signed({name: v for name, v in claims.items() if v is not None})

    def logout_token(self, **wrong: Any) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 120,
            "jti": secrets.token_hex(8),
            "events": {LOGOUT: {}},
            "sub": self.subject,
            **wrong,
        }
        return self.signed({name: v for name, v in claims.items() if v is not None})

    def signed(self, claims: dict[str, Any]) -> str:
        headers = {"kid": self.key.name}
        if self.algorithm == "none":
            return jwt.encode(claims, "", "none", headers)
        if self.algorithm == "HS256":
            return _hmac_signed(claims, headers, self.key.public_pem)
        return jwt.encode(claims, self.key.private, self.algorithm, headers)

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._document()
            case "/jwks":
                return 200, {"keys": [self.key.public] if self.keys is None else self.keys}
            case "/token":
                return self._token(form)
            case "/me" if self.userinfo is not None:
                return 200, self.userinfo
        return 404, {}

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/end",
            "authorization_response_iss_parameter_supported": True,
            **({"userinfo_endpoint": f"{self.issuer}/me"} if self.userinfo is not None else {}),
            **self.document,
        }

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        if "resource" in asked:
            return 200, {"access_token": self.access_token(asked), "token_type": "Bearer"}
        said = {"access_token": "any", "token_type": "Bearer"}
        return 200, {**said, "id_token": self.id_token(asked["nonce"])}

    def access_token(self, asked: dict[str, str]) -> str:
        """For the resource that the client asked for (RFC 8707, RFC 9068)."""
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": self.subject, "aud": asked["resource"]}
        claims |= {"client_id": asked["client_id"], "scope": asked.get("scope", "")}
        return self.signed({**claims, "iat": now, "exp": now + 300, "jti": secrets.token_hex(4)})


def _hmac_signed(claims: dict[str, Any], headers: dict[str, Any], key: bytes) -> str:
    """PyJWT refuses to sign like this; an attacker does not use PyJWT."""

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    head = part(json.dumps({"alg": "HS256", "typ": "JWT", **headers}).encode())
    text = head + b"." + part(json.dumps(claims).encode())
    return (text + b"." + part(hmac.new(key, text, "sha256").digest())).decode()


class _Handler(BaseHTTPRequestHandler):
    provider: FakeProvider

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._answer({name: values[0] for name, values in parse_qs(body.decode()).items()})

    def _answer(self, form: dict[str, str]) -> None:
        status, said = self.provider.answer(urlsplit(self.path).path, form)
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def running() -> Iterator[FakeProvider]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    provider = FakeProvider(f"http://127.0.0.1:{server.server_port}")
    handler.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


def callback(slug: str, answer: dict[str, str]) -> str:
    return f"/sign-in/with/{slug}/callback/?{urlencode(answer)}"
