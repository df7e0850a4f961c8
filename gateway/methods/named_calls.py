"""Calls that a client names: its agent's, and of a limited token those that it could ask for."""

from __future__ import annotations

from uuid import UUID

from gateway.protocol.context import RequestContext
from gateway.submit import lookups
from gateway.submit.lookups import AgentCall
from gateway.submit.token_scope import reaches


async def find_named(context: RequestContext, call_id: UUID) -> AgentCall | None:
    bearer = context.bearer
    found = await lookups.own(context.runtime, call_id, agent_id=bearer.agent_id)
    return found if found and reaches(bearer, context.toolset, found.tool_id) else None
