"""Requests whose head came before, as a server of ours may say in their scope (config/front.py)."""

from __future__ import annotations

from gateway.protocol.client import Client

# Of a scope, where the server knows the head: what it came to, and the body, all of it.
KNOWN, BODY = "countersign.known", "countersign.body"


class HeaderCacheEntry:
    """The result of checking one request head, valid for every request with an equal head."""

    __slots__ = ("address", "client", "noted_until", "peer")

    def __init__(self) -> None:
        # Toolset and server, once origin and form were looked at and nothing was wrong.
        self.address: tuple[str, str] | None = None
        # What its bodies say once more, and who says it, once neither said anything else.
        self.client: tuple[bytes, Client] | None = None
        # The address at the other end that it came from last, and how long that needs no note.
        self.peer: str | None = None
        self.noted_until = 0.0
