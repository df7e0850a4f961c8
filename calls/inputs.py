"""What a server's task asks its agent in the middle, and what the agent answers.

Sources: io.modelcontextprotocol/tasks, specification/draft/tasks; MCP 2026-07-28,
client/elicitation.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from django.db import transaction

from audit.services import Actor, record
from calls.models import Call, Input
from calls.states import State
from core.journal import Journal, Statement
from core.live import Bell, ring_on_commit

ASKED_MAX, SIZE_MAX = 8, 16_384
KEY_MAX = 200

ASK = Statement(
    "ask for input",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, inputs json)
), made AS (
    INSERT INTO calls_input (call_id, key, request, message)
    SELECT a.id, i.key, i.request, i.message
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence AND c.state = 'running',
        json_to_recordset(a.inputs) AS i(key text, request text, message text)
    ON CONFLICT DO NOTHING
    RETURNING call_id, key, message
), entries AS (
    INSERT INTO audit_entry (
        action, actor_kind, actor, call_id, agent_id, agent, person_id, person, server, tool,
        definition_digest, arguments_digest, reason, details)
    SELECT 'call.input_asked', 'system', 'countersign', m.call_id, e.agent_id, e.agent,
        e.person_id, e.person, e.server, e.tool, e.definition_digest, e.arguments_digest,
        m.message, jsonb_build_object('key', m.key)
    FROM made m JOIN audit_entry e ON e.call_id = m.call_id AND e.seq = 1
)
SELECT DISTINCT call_id FROM made
""",
    order=3,
)
# What was answered, and in which modes its client can be asked: it said so when it asked for the
# call, and that is kept in its entry alone, since it matters to few calls.
LOOK = Statement(
    "look for answers",
    """
SELECT a.id, (
    SELECT jsonb_object_agg(i.key, i.response) FROM calls_input i
    WHERE i.call_id = a.id AND i.response <> ''
), (SELECT e.details->'answers' FROM audit_entry e WHERE e.call_id = a.id AND e.seq = 1)
FROM json_to_recordset(%s::json) AS a(id uuid)
""",
    order=4,
)


class Inputs:
    """One attempt's way to its agent; `answers` is what the upstream client asks each time."""

    def __init__(self, call_id: UUID, fence: int, journal: Journal, bell: Bell) -> None:
        self._call_id, self._fence = call_id, fence
        self._journal, self._bell = journal, bell
        self._asked: set[str] = set()

    async def answers(self, requests: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
        (row,) = await self._journal.write((LOOK, {"id": self._call_id}), within=None)
        given, modes = (row[1] or {}, frozenset(row[2] or ())) if row else ({}, frozenset())
        if not _can_be_asked(requests, modes):
            return None
        await self._ask({key: one for key, one in requests.items() if key not in self._asked})
        return {key: orjson.loads(given[key]) for key in requests if key in given}

    async def _ask(self, requests: dict[str, Any]) -> None:
        if not requests:
            return
        inputs = [
            {"key": key, "request": orjson.dumps(one).decode(), "message": message(one)}
            for key, one in requests.items()
        ]
        line = {"id": self._call_id, "fence": self._fence, "inputs": inputs}
        await self._journal.write((ASK, line), within=None)
        self._asked |= set(requests)
        self._bell.ring(f"call.{self._call_id}")


def _can_be_asked(requests: dict[str, Any], modes: frozenset[str]) -> bool:
    return len(requests) <= ASKED_MAX and all(
        len(key) <= KEY_MAX and relayed(request, modes) for key, request in requests.items()
    )


def relayed(request: Any, modes: frozenset[str] | set[str]) -> bool:
    """Questions to a person, in a way that the agent's client has. Nothing else is passed on."""
    if not isinstance(request, dict) or request.get("method") != "elicitation/create":
        return False
    params = request.get("params")
    mode = params.get("mode", "form") if isinstance(params, dict) else None
    try:
        return mode in modes and len(orjson.dumps(request)) <= SIZE_MAX
    except orjson.JSONEncodeError:
        return False


def message(request: Any) -> str:
    said = request["params"].get("message")
    text = said if isinstance(said, str) else ""
    return text[:500].replace("\0", "�").encode(errors="replace").decode()


def open_ones(call_id: UUID, modes: set[str]) -> dict[str, Any]:
    """What still waits for an answer, if this client can give all of it."""
    rows = Input.objects.filter(call_id=call_id, call__state=State.RUNNING, response="")
    found = {row.key: orjson.loads(row.request) for row in rows}
    return found if all(relayed(one, modes) for one in found.values()) else {}


@transaction.atomic
def answer(call_id: UUID, responses: dict[str, Any], *, by: Actor) -> None:
    """The first answer to each question counts; what was not asked is nobody's concern."""
    for key, response in responses.items():
        if not isinstance(response, dict):
            continue
        waiting = Input.objects.filter(call_id=call_id, key=key[:KEY_MAX], response="")
        if waiting.update(response=orjson.dumps(response).decode()):
            call = Call.objects.select_related("agent").get(pk=call_id)
            record(
                "call.input_given",
                actor=by,
                call_id=call_id,
                agent=(call.agent_id, call.agent.name),
                tool=call.tool_name,
                key=key[:KEY_MAX],
                said=str(response.get("action", ""))[:20],
            )
    ring_on_commit(f"call.{call_id}")
