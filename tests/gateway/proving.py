"""A client with a key of its own, as RFC 9449 has it, and everything about a proof changeable."""

import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from accounts import dpop
from tests.gateway.agent import Agent, Reply

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    made: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return made


@dataclass
class KeyHolder:
    """Proves at `url` that it has the key."""

    url: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)

    @property
    def jkt(self) -> str:
        return dpop.thumbprint(public_jwk(self.key))

    def proof(
        self,
        token: str = "",
        *,
        method: str = "POST",
        header: dict[str, Any] | None = None,
        sign_with: Any = None,
        **changed: Any,
    ) -> str:
        """None leaves a claim out, or a member of the header."""
        claims = {
            "jti": secrets.token_hex(8),
            "htm": method,
            "htu": self.url,
            "iat": int(time.time()),
            "ath": dpop.token_digest(token) if token else None,
            **changed,
        }
        head = {"typ": "dpop+jwt", "jwk": public_jwk(self.key), "alg": "ES256", **(header or {})}
        key = self.key if sign_with is None else sign_with
        left = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(left, key, head["alg"], _given(head))

    async def ping(
        self, http: aiohttp.ClientSession, token: str, proof: str | None = None, **changed: Any
    ) -> Reply:
        """At the gateway at `url`; see `send`."""
        return await send(http, self.url, token, proof or self.proof(token), **changed)


def _given(head: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in head.items() if value is not None}


async def send(
    http: aiohttp.ClientSession,
    url: str,
    token: str,
    proof: str,
    *,
    scheme: str = "DPoP",
    **headers: str,
) -> Reply:
    shown = {"Authorization": f"{scheme} {token}", "DPoP": proof, **headers}
    return await Agent(http, url, "").post(json.dumps(PING).encode(), headers=shown)
