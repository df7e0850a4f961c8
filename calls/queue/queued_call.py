"""A queued call as a claim judges it: its row, locked, with whom it is of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import orjson
from django.db.models import Model

from accounts.models import Agent, AgentToken, User
from calls.freezes import FROZEN
from calls.models import Amendment, Call
from calls.record.call_options import CallOptions, options_in
from core import planned

M = TypeVar("M", bound=Model)

# What is read of each; Django reads anything else where it is asked for.
_CALL = (
    *(
        "id",
        "agent_id",
        "token_id",
        "person_id",
        "toolset",
        "server_id",
        "tool_id",
        "definition_id",
    ),
    *("tool_name", "arguments", "amendment_id", "statement", "mode", "revision", "effect"),
    *("state", "seq", "asked_at", "fence", "executed"),
)
_AGENT = ("id", "name", "owner_id", "enabled")
_OWNER = ("id", "username", "is_active")
_TOKEN = ("id", "expires_at", "revoked_at", "client_id", "issuer")
_AMENDMENT = ("id", "arguments")
_COLUMNS = ", ".join(
    f"{alias}.{name}"
    for alias, names in zip("caotm", (_CALL, _AGENT, _OWNER, _TOKEN, _AMENDMENT), strict=True)
    for name in names
)
# One claim at a time for an agent, and for a server, since two that look at once would both find
# room: taken where the row is read, and held until the transaction ends.
_LOCKED = """
    pg_advisory_xact_lock(71001, (c.agent_id % 2147483648)::int)::text
    || pg_advisory_xact_lock(71002, (COALESCE(c.server_id, 0) % 2147483648)::int)::text
""".replace("%", "%%")
READ = f"""
    SELECT {_COLUMNS}, {_LOCKED},
        (SELECT e.details::text FROM audit_entry e
         WHERE e.call_id = c.id AND e.seq = 1 ORDER BY e.id LIMIT 1)
    FROM calls_call c
    JOIN accounts_agent a ON a.id = c.agent_id JOIN accounts_user o ON o.id = a.owner_id
    LEFT JOIN accounts_agenttoken t ON t.id = c.token_id
    LEFT JOIN calls_amendment m ON m.id = c.amendment_id
    WHERE c.id = %s AND c.state = 'queued' AND c.start_by > clock_timestamp()
      AND {FROZEN} IS NOT TRUE
    FOR UPDATE OF c SKIP LOCKED
"""


class QueuedCall(NamedTuple):
    call: Call
    options: CallOptions


def lock(call_id: UUID) -> QueuedCall | None:
    """None when somebody else has it, or it is not to be sent, or not now."""
    row = planned.execute(READ, [call_id]).fetchone()
    if row is None:
        return None
    *columns, _locked, details = row
    values = iter(columns)
    call = _instance(Call, _CALL, values)
    call.agent = _instance(Agent, _AGENT, values)
    call.agent.owner = _instance(User, _OWNER, values)
    token, amendment = (
        _instance(AgentToken, _TOKEN, values),
        _instance(Amendment, _AMENDMENT, values),
    )
    if call.token_id and not token.pk:
        # Gone, past the console: it lets nothing be sent any more.
        token = AgentToken(pk=call.token_id, expires_at=call.asked_at)
    call.token = token if call.token_id else None
    call.amendment = amendment if call.amendment_id else None
    return QueuedCall(call, options_in(orjson.loads(details or "{}")))


def _instance(model: type[M], names: tuple[str, ...], values: Iterator[Any]) -> M:
    return model.from_db("default", names, list(islice(values, len(names))))
