"""Proofs that whoever shows a token has the private key it is bound to.

Source: RFC 9449 (DPoP), RFC 7638 (thumbprints). Without nonces: a proof counts once, for a minute,
and every process knows which were used (UsedProof).
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jwt
import orjson
from jwt import PyJWK

from accounts.oidc.signed_tokens import is_name
from core import seal
from core.english import gettext as _
from core.errors import CountersignError

# Asymmetric ones alone, each with the curve or the kind of key that it is for.
ALGORITHMS = {
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "EdDSA": ("OKP", "Ed25519"),
    "RS256": ("RSA", ""),
    "PS256": ("RSA", ""),
}
TYPE = "dpop+jwt"
PROOF_MAX = 8 * 1024
# A proof is as old as this at most, and a clock as far ahead.
WINDOW_S = 60
# Required members of a public key, in the order of RFC 7638, 3.2. A private one has others.
_PUBLIC = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
_PRIVATE = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))
# 2048 to 4096 bits, and the exponent that everybody uses: others make a check expensive.
_RSA_MODULUS, _RSA_EXPONENT = range(342, 684), "AQAB"
_base64url = re.compile(r"[A-Za-z0-9_-]+", re.ASCII).fullmatch
is_thumbprint = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII).fullmatch


class ProofFailed(CountersignError):
    """The proof proves nothing; says why. English, for the record."""


@dataclass(frozen=True, slots=True)
class KeyProof:
    """A checked proof. `digest` is what must not have been used before, until `expires_at`."""

    jkt: str
    digest: str
    expires_at: float


def check(proof: str, *, method: str, url: str, token: str = "") -> KeyProof:
    """`url`: as clients reach it, without a query. With a `token` the proof must be for it. Raises
    ProofFailed."""
    if not proof or len(proof) > PROOF_MAX:
        raise ProofFailed(_("The DPoP header has no proof, or one that is too long."))
    try:
        header = jwt.get_unverified_header(proof)
        key, jkt = _key(header)
        claims = jwt.decode(
            proof, key, [header["alg"]], options={"verify_iat": False, "verify_aud": False}
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProofFailed(_("The proof cannot be read, or its signature is not valid.")) from error
    _check_claims(claims, method, url, token)
    digest = hashlib.sha256(f"{jkt}\n{claims['jti']}".encode(errors="replace")).hexdigest()
    return KeyProof(jkt, digest, claims["iat"] + WINDOW_S)


def thumbprint(jwk: dict[str, Any]) -> str:
    members = {name: jwk[name] for name in _PUBLIC[jwk["kty"]]}
    return _digest(orjson.dumps(members))


def token_digest(token: str) -> str:
    """The claim `ath`."""
    return _digest(token.encode(errors="replace"))


def _digest(content: bytes) -> str:
    return seal.to_text(hashlib.sha256(content).digest())


def _key(header: dict[str, Any]) -> tuple[PyJWK, str]:
    jwk = header.get("jwk")
    if header.get("typ") != TYPE:
        raise ProofFailed(_("The proof's type is not dpop+jwt."))
    if header.get("alg") not in ALGORITHMS:
        raise ProofFailed(_("The proof is signed in a way that is not taken here."))
    if not isinstance(jwk, dict) or _PRIVATE & jwk.keys():
        raise ProofFailed(_("The proof's header needs a public key, and nothing of a private one."))
    kind, curve = ALGORITHMS[header["alg"]]
    if jwk.get("kty") != kind or jwk.get("crv", "") != curve or not _is_plain(jwk):
        raise ProofFailed(_("The proof's key does not fit its algorithm."))
    if kind == "RSA" and (len(jwk["n"]) not in _RSA_MODULUS or jwk["e"] != _RSA_EXPONENT):
        raise ProofFailed(_("The proof's RSA key must have 2048 to 4096 bits and exponent 65537."))
    members = orjson.dumps({name: jwk[name] for name in _PUBLIC[kind]})
    return _parsed(members, header["alg"]), thumbprint(jwk)


def _is_plain(jwk: dict[str, Any]) -> bool:
    """Whether what makes up the key is there, as texts."""
    members = [jwk.get(name) for name in _PUBLIC[jwk["kty"]]]
    return all(isinstance(one, str) and _base64url(one) for one in members)


@lru_cache(maxsize=1024)
def _parsed(members: bytes, algorithm: str) -> PyJWK:
    """A client shows the same key with each request."""
    return PyJWK(orjson.loads(members), algorithm)


def _check_claims(claims: dict[str, Any], method: str, url: str, token: str) -> None:
    if not is_name(claims.get("jti")):
        raise ProofFailed(_("The proof lacks “jti”, by which it counts once."))
    if claims.get("htm") != method:
        raise ProofFailed(_("The proof is for another method."))
    if claims.get("htu") != url:
        raise ProofFailed(_("The proof is for another address."))
    at = claims.get("iat")
    # A larger one is no time, and more than a float holds.
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < 10**12:
        raise ProofFailed(_("The proof lacks “iat”, the time of its creation."))
    if not -WINDOW_S <= time.time() - at <= WINDOW_S:
        raise ProofFailed(_("The proof is too old, or from the future."))
    if token and claims.get("ath") != token_digest(token):
        raise ProofFailed(_("The proof is for another token."))
