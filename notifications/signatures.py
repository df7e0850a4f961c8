"""Signatures of webhooks. Source: Standard Webhooks 1.0.0 (standardwebhooks.com), symmetric."""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Iterable

PREFIX = "whsec_"


def new_secret() -> str:
    """Returns 32 random bytes, as people are shown them once."""
    return PREFIX + base64.b64encode(os.urandom(32)).decode()


def headers(
    secrets: Iterable[str], *, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """One signature for each secret that is valid now: receivers accept any."""
    signed = [
        signature(one, message_id=message_id, timestamp=timestamp, body=body) for one in secrets
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signed),
    }


def signature(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"
