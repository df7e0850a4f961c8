"""2025-03-26 to 2025-11-25: what a client is, by its headers and its session."""

from __future__ import annotations

from core import abilities
from gateway.protocol import sessions
from gateway.protocol.client import Client
from gateway.protocol.errors import invalid_request
from gateway.protocol.headers import Headers
from gateway.protocol.modern import VERSION, unsupported
from gateway.protocol.revisions import LEGACY, OLDEST

SESSION = b"mcp-session-id"


def client_of(headers: Headers, agent_id: int) -> Client:
    """A request without a session is served too: it only cannot be cancelled from elsewhere."""
    version = headers.text(VERSION)
    if version is not None and version not in LEGACY:
        raise unsupported(version)
    text = headers.text(SESSION)
    if text is None:
        return Client(version or OLDEST)
    session = sessions.resume(agent_id, text)
    if version is not None and version != session.revision:
        raise invalid_request(f"This session speaks {session.revision}, the header says {version}.")
    capabilities = abilities.capabilities(session.abilities)
    return Client(session.revision, session.client, capabilities, text)
