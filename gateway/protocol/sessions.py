"""Sessions of legacy clients: all that there is to know stands in the id, sealed.

Any process can read it, none has to remember it, and it opens only for the agent that it was
made for.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import lru_cache

import orjson

from core import seal
from core.seal import Unsealable
from gateway.protocol.errors import RpcError

LASTS_S = 24 * 3600
_PURPOSE = "mcp session"


@dataclass(frozen=True, slots=True)
class Session:
    revision: str
    client: str
    # What its client can be asked, in words of core.abilities.
    abilities: tuple[str, ...]
    expires_at: int


def begin(agent_id: int, *, revision: str, client: str, abilities: tuple[str, ...]) -> str:
    # The seal's nonce makes every session another one.
    value = [revision, client, abilities, int(time.time()) + LASTS_S]
    return seal.to_text(seal.seal(_PURPOSE, orjson.dumps(value), place=_place(agent_id)))


def resume(agent_id: int, text: str) -> Session:
    """Raises a 404 for what is expired, altered or another agent's: begin again."""
    session = _opened(agent_id, text)
    if session is None or session.expires_at < time.time():
        raise RpcError(404, "This session has ended: send initialize again, without a session id.")
    return session


@lru_cache(maxsize=4096)
def _opened(agent_id: int, text: str) -> Session | None:
    try:
        value = seal.unseal(_PURPOSE, seal.from_text(text), place=_place(agent_id))
    except (Unsealable, ValueError):
        return None
    revision, client, abilities, expires_at = orjson.loads(value)
    return Session(revision, client, tuple(abilities), expires_at)


def session_key(session: str) -> str:
    """A key that finds the session, and cannot be used as its id."""
    return hashlib.sha256(session.encode()).hexdigest()


def request_key(session: str, request_id: bytes) -> str:
    """The key by which another process finds the call of this session's request."""
    return hashlib.sha256(session.encode() + b"\0" + request_id).hexdigest()


def _place(agent_id: int) -> str:
    return f"agent:{agent_id}"
