"""Keys and sealed values: one installation secret, one derived key per purpose.

Secrets from before a rotation go on to open and to recognise, and seal and sign nothing.
"""

import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from core.secrets import derived, fingerprint_of

NONCE = 12
# Fewer bytes of a signature than this are none.
SHORTEST = 8


class Unsealable(Exception):
    """The value was altered, moved to another place, or sealed under another key."""


@cache
def key(purpose: str) -> bytes:
    return derived(settings.SECRET_KEY, purpose)


@cache
def _old_keys(purpose: str) -> tuple[bytes, ...]:
    return tuple(derived(secret, purpose) for secret in settings.OLD_SECRET_KEYS)


def fingerprint() -> str:
    return fingerprint_of(settings.SECRET_KEY)


def sign(purpose: str, message: bytes) -> bytes:
    return hmac.digest(key(purpose), message, hashlib.sha256)


def is_signature(purpose: str, message: bytes, shown: bytes) -> bool:
    """Whether `shown` is the signature of `message`, or its beginning, under the present secret or
    an old one."""
    return len(shown) >= SHORTEST and any(
        hmac.compare_digest(hmac.digest(one, message, hashlib.sha256)[: len(shown)], shown)
        for one in (key(purpose), *_old_keys(purpose))
    )


def old_signatures(purpose: str, message: bytes) -> list[bytes]:
    """The signatures of `message` under secrets from before a rotation."""
    return [hmac.digest(one, message, hashlib.sha256) for one in _old_keys(purpose)]


def seal(purpose: str, value: bytes, *, place: str) -> bytes:
    """Encrypt `value` so that it opens only at `place` (the row's identity, say)."""
    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key(purpose)).encrypt(nonce, value, place.encode())


def unseal(purpose: str, sealed: bytes, *, place: str) -> bytes:
    for candidate in (key(purpose), *_old_keys(purpose)):
        try:
            return AESGCM(candidate).decrypt(sealed[:NONCE], sealed[NONCE:], place.encode())
        except (InvalidTag, ValueError):
            continue
    raise Unsealable(f"A sealed {purpose} does not open at {place}.")


def to_text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Raises ValueError for anything that `to_text` did not write."""
    value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if to_text(value) != text:
        raise ValueError("not in the one form that we write")
    return value
