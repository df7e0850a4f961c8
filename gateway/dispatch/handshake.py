"""`initialize` and notifications of 2025-03-26 to 2025-11-25, which speak in sessions."""

from __future__ import annotations

from typing import Any

from core import abilities
from gateway.methods import input_requests, lists
from gateway.protocol import messages, replies, sessions
from gateway.protocol.client import Client, named
from gateway.protocol.context import RequestContext
from gateway.protocol.errors import invalid_params
from gateway.protocol.messages import RpcMessage
from gateway.protocol.revisions import LAST_LEGACY, LEGACY, OLDEST
from gateway.submit import lookups, wait


def begin(message: RpcMessage, context: RequestContext) -> tuple[bytes, bytes]:
    """The answer to `initialize`, and the new session's id."""
    asked = message.params.get("protocolVersion")
    if not isinstance(asked, str):
        raise invalid_params("params.protocolVersion must be a string.")
    revision = asked if asked in LEGACY else LAST_LEGACY
    session = sessions.begin(
        context.bearer.agent_id,
        revision=revision,
        client=named(message.params.get("clientInfo")),
        abilities=_abilities(message.params.get("capabilities"), revision),
    )
    return replies.result(message.id, lists.initialized(context, revision)), session.encode()


def _abilities(capabilities: Any, revision: str) -> tuple[str, ...]:
    known = capabilities if isinstance(capabilities, dict) else {}
    if revision == OLDEST:
        # It has no elicitation: a client that declares it all the same may mean anything.
        known = {name: value for name, value in known.items() if name != abilities.ELICITATION}
    return abilities.declared(known)


async def hear(context: RequestContext, client: Client, message: RpcMessage) -> None:
    """Notifications, of which one means anything to us, and answers to what a server asked."""
    if not message.method:
        await input_requests.posted(context, message)
        return
    if message.method != "notifications/cancelled" or not client.session:
        return
    key = sessions.request_key(client.session, messages.id_of(message.params.get("requestId")))
    agent_id = context.bearer.agent_id
    call_id = await lookups.requested(context.runtime, key, agent_id=agent_id)
    if call_id is not None:
        await wait.cancel(context.runtime, call_id, by=context.actor)
