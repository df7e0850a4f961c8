"""Public keys as operators paste them: PEM, a JWK or a JWKS. Source: RFC 7517, RFC 7638."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from accounts.oidc.workload_issuers import SPIFFE_USE
from core import strict_json
from core.english import gettext as _
from core.errors import CountersignError
from core.text import is_storable

TEXT_MAX, KEYS_MAX, RSA_BITS_MIN = 16 * 1024, 10, 2048
# What makes a key the same key, in the order that a thumbprint has.
_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
_CURVES = {"EC": ("P-256", "P-384", "P-521"), "OKP": ("Ed25519",)}
_SECRET = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


class KeysRefused(CountersignError):
    """The text holds no public keys that can be used; says why."""


def read_keys(text: str) -> list[dict[str, Any]]:
    """The keys as JWK. Raises KeysRefused."""
    text = text.strip()
    if len(text) > TEXT_MAX:
        raise KeysRefused(_("The keys are too long."))
    if "PRIVATE KEY" in text:
        raise KeysRefused(
            _("This is a private key. Paste the public one, and keep this to the program.")
        )
    keys = [_of_pem(text)] if text.startswith("-----") else _of_json(text)
    if not 0 < len(keys) <= KEYS_MAX:
        raise KeysRefused(_("Paste one to %d public keys.") % KEYS_MAX)
    return [_checked(key) for key in keys]


def thumbprint(key: dict[str, Any]) -> str:
    """Source: RFC 7638. Raises KeysRefused."""
    members = _MEMBERS.get(str(key.get("kty")))
    if members is None or not all(isinstance(key.get(name), str) for name in members):
        raise KeysRefused(_("A key is none of RSA, EC or Ed25519."))
    canonical = json.dumps({name: key[name] for name in members}, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _of_pem(text: str) -> dict[str, Any]:
    try:
        found = load_pem_public_key(text.encode())
    except (ValueError, TypeError, UnicodeEncodeError) as error:
        raise KeysRefused(_("The text holds no public key that can be read.")) from error
    match found:
        case rsa.RSAPublicKey():
            return RSAAlgorithm.to_jwk(found, as_dict=True)
        case ec.EllipticCurvePublicKey():
            return ECAlgorithm.to_jwk(found, as_dict=True)
        case ed25519.Ed25519PublicKey():
            return OKPAlgorithm.to_jwk(found, as_dict=True)
    raise KeysRefused(_("A key is none of RSA, EC or Ed25519."))


def _of_json(text: str) -> list[dict[str, Any]]:
    try:
        said = strict_json.loads(text.encode(errors="replace"))
    except strict_json.Ambiguous as error:
        raise KeysRefused(_("The text is neither PEM nor JSON that can be used.")) from error
    keys = said.get("keys", [said]) if isinstance(said, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise KeysRefused(_("The text holds no public key that can be read."))
    return keys


def _checked(key: dict[str, Any]) -> dict[str, Any]:
    """Raises KeysRefused."""
    if _SECRET & key.keys():
        raise KeysRefused(
            _("This is a private key. Paste the public one, and keep this to the program.")
        )
    thumbprint(key)
    kind = key["kty"]
    if key.get("crv") not in (_CURVES.get(kind) or (key.get("crv"),)):
        raise KeysRefused(_("A key is none of RSA, EC or Ed25519."))
    if key.get("use", "sig") not in ("sig", SPIFFE_USE):
        raise KeysRefused(_("A key is for something other than signatures."))
    try:
        read = PyJWK(key, algorithm=key.get("alg") or _usual_algorithm(key)).key
    except (PyJWTError, ValueError, TypeError, KeyError) as error:
        raise KeysRefused(_("The text holds no public key that can be read.")) from error
    if isinstance(read, rsa.RSAPublicKey) and read.key_size < RSA_BITS_MIN:
        raise KeysRefused(_("An RSA key needs %d bits at least.") % RSA_BITS_MIN)
    names = (*_MEMBERS[kind], "kid", "alg")
    kept = {name: key[name] for name in names if isinstance(key.get(name), str)}
    if not all(map(is_storable, kept.values())):
        raise KeysRefused(_("The text holds no public key that can be read."))
    return kept


def _usual_algorithm(key: dict[str, Any]) -> str:
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    return {"RSA": "RS256", "OKP": "EdDSA"}.get(key["kty"]) or curves[key["crv"]]
