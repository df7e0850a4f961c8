"""Access tokens that we give: `cso_<grant>_<end>_<id>_<signature>`.

They are stored nowhere. Every process knows the grants (accounts/tokens.py), which say whose agent
it is, and end within a second when they are revoked. A grant of a user's sign-in has one address;
tokens of workloads name theirs themselves: `cso_<grant>_<end>_<id>.<address>.<signature>`. One that
is bound to a client's key (DPoP) names its thumbprint: `cso_<grant>_<end>_<id>~<key>.<signature>`.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import NamedTuple

from core import seal

PREFIX = "cso_"
LIFETIME_S = 3600
_PURPOSE = "access token"
_form = re.compile(
    r"cso_([0-9a-f]{8})_([0-9]{10})_([0-9a-f]{16})"
    # A dot alone would be another spelling of a token with neither.
    r"(?:_|(?!\.[A-Za-z0-9_-]{43}$)(?:\.([A-Za-z0-9_-]{1,1000}))?(?:~([A-Za-z0-9_-]{43}))?\.)"
    r"([A-Za-z0-9_-]{43})",
    re.ASCII,
).fullmatch


class AccessToken(NamedTuple):
    """`grant`: the public id of its AgentToken; `resource`: empty where that has the address;
    `jkt`: of the key that it is bound to, if it is (RFC 9449, 6)."""

    grant: str
    expires_at: float
    token_id: str
    resource: str = ""
    jkt: str = ""


def issue(grant: str, *, resource: str = "", jkt: str = "", lifetime_s: int = 0) -> str:
    """`resource`: an address that the grant does not have; `lifetime_s`: if not the usual one."""
    ends = int(time.time()) + (lifetime_s or LIFETIME_S)
    body = f"{PREFIX}{grant}_{ends}_{secrets.token_hex(8)}"
    body += f".{seal.to_text(resource.encode())}" if resource else ""
    body += f"~{jkt}" if jkt else ""
    return f"{body}{'.' if resource or jkt else '_'}{_signature(body)}"


def _signature(body: str) -> str:
    return seal.to_text(seal.sign(_PURPOSE, body.encode()))


def has_form(token: str) -> bool:
    return _form(token) is not None


def read(token: str) -> AccessToken | None:
    """A token that we signed, expired or not; else None."""
    found = _form(token)
    if found is None or not _is_signed(token[: -len(found[6]) - 1], found[6]):
        return None
    resource = seal.from_text(found[4]).decode() if found[4] else ""
    return AccessToken(found[1], float(found[2]), found[3], resource, found[5] or "")


def _is_signed(body: str, signature: str) -> bool:
    try:
        return seal.is_signature(_PURPOSE, body.encode(), seal.from_text(signature))
    except ValueError:
        return False
