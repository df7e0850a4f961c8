"""Keys and sealed values: one installation secret, one derived key per purpose."""

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


class Unsealable(Exception):
    """The value was altered, moved to another place, or sealed under another key."""


@cache
def key(purpose: str) -> bytes:
    return derived(settings.SECRET_KEY, purpose)


def fingerprint() -> str:
    return fingerprint_of(settings.SECRET_KEY)


def sign(purpose: str, message: bytes) -> bytes:
    return hmac.digest(key(purpose), message, hashlib.sha256)


def seal(purpose: str, value: bytes, *, place: str) -> bytes:
    """Encrypt `value` so that it opens only at `place` (the row's identity, say)."""
    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key(purpose)).encrypt(nonce, value, place.encode())


def unseal(purpose: str, sealed: bytes, *, place: str) -> bytes:
    try:
        return AESGCM(key(purpose)).decrypt(sealed[:NONCE], sealed[NONCE:], place.encode())
    except (InvalidTag, ValueError) as error:
        raise Unsealable(f"A sealed {purpose} does not open at {place}.") from error


def to_text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Raises ValueError for anything that `to_text` did not write."""
    value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if to_text(value) != text:
        raise ValueError("not in the one form that we write")
    return value
