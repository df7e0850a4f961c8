"""2025-03-26 to 2025-11-25: a handshake first, and a session that every later request names."""

from __future__ import annotations

from typing import Any

from core import abilities
from gateway import listing, lookups, messages, questions, replies, sessions, waiting
from gateway.exchange import Client, Exchange, named
from gateway.headers import Headers
from gateway.messages import Message
from gateway.modern import VERSION, unsupported
from gateway.refusals import invalid_params, invalid_request
from gateway.revisions import LAST_LEGACY, LEGACY, OLDEST

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


def begin(message: Message, agent_id: int) -> tuple[bytes, bytes]:
    """The answer to `initialize`, and the new session's id."""
    asked = message.params.get("protocolVersion")
    if not isinstance(asked, str):
        raise invalid_params("params.protocolVersion must be a string.")
    revision = asked if asked in LEGACY else LAST_LEGACY
    session = sessions.begin(
        agent_id,
        revision=revision,
        client=named(message.params.get("clientInfo")),
        abilities=_abilities(message.params.get("capabilities"), revision),
    )
    return replies.result(message.id, listing.initialized(revision)), session.encode()


def _abilities(capabilities: Any, revision: str) -> tuple[str, ...]:
    known = capabilities if isinstance(capabilities, dict) else {}
    if revision == OLDEST:
        # It has no elicitation: a client that declares it all the same may mean anything.
        known = {name: value for name, value in known.items() if name != abilities.ELICITATION}
    return abilities.declared(known)


async def hear(exchange: Exchange, client: Client, message: Message) -> None:
    """Notifications, of which one means anything to us, and answers to what a server asked."""
    if not message.method:
        await questions.posted(exchange, message)
        return
    if message.method != "notifications/cancelled" or not client.session:
        return
    key = sessions.request_key(client.session, messages.id_of(message.params.get("requestId")))
    agent_id = exchange.bearer.agent_id
    call_id = await lookups.requested(exchange.runtime, key, agent_id=agent_id)
    if call_id is not None:
        await waiting.cancel(exchange.runtime, call_id, by=exchange.actor)
