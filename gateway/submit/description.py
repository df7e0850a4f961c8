"""A call in its own agent's words: the same for REST and for tools."""

from __future__ import annotations

from typing import Any

import orjson

from approvals import comments
from audit.models import Entry
from calls import pauses
from calls.content.amendments import AmendmentSummary, modified
from calls.content.large_results import body_of
from calls.models import Call, Result
from calls.record.refusal import RefusalDetails, of_call
from calls.record.states import NOT_SENT, NOT_STARTED, State
from gateway.submit import messages
from policies.models import Rule


def described(call: Call) -> dict[str, Any]:
    """`result` and `error` as the server wrote them."""
    members: dict[str, Any] = {
        **in_short(call),
        "executed": call.executed or None,
        "outcome": call.outcome or _stands(call),
        "reason": call.reason,
        "finished_at": call.finished_at,
        "arguments": orjson.Fragment(bytes(call.arguments)),
    }
    result = Result.objects.filter(call=call).first()
    if result is not None:
        body = body_of(result)
        # None: large, and no longer kept.
        members[result.kind] = None if body is None else orjson.Fragment(body)
    elif call.state in NOT_SENT:
        members["refusal"] = _refusal(call).told(call.outcome)
    if found := _modified(call):
        members["arguments_modified"] = orjson.Fragment(found.json)
    return members


def _stands(call: Call) -> str:
    state = State(call.state)
    return messages.stands(state, call.pk, call.fingerprint, stopped=_stopped(call))


def _stopped(call: Call) -> str:
    return pauses.load().over(call.agent_id, call.server_id) if call.state in NOT_STARTED else ""


def _refusal(call: Call) -> RefusalDetails:
    rule = Rule.objects.filter(pk=call.rule_id or 0).first()
    known = ("", "", False)
    if rule is not None:
        known = ("" if rule.unnamed else rule.name, rule.instead, bool(rule.when))
    state = State(call.state)
    return of_call(state, call.executed, call.effect, known, _last_details(call))


def _last_details(call: Call) -> dict[str, Any]:
    entry = Entry.objects.filter(call_id=call.pk, seq=call.seq).first()
    return entry.details if entry else {}


def in_short(call: Call) -> dict[str, Any]:
    members = {
        "id": call.pk,
        "fingerprint": call.fingerprint,
        "tool": call.tool_name,
        "toolset": call.toolset,
        "state": call.state,
        "asked_at": call.asked_at,
        "page": messages.page_of(call.pk),
    }
    if call.state == State.HELD:
        # No clock runs during an emergency stop.
        decide_by = None if call.clock_stopped_at else call.decide_by
        members |= {"decide_by": decide_by, "questions": comments.open_questions(call.pk)}
    return members


def _modified(call: Call) -> AmendmentSummary | None:
    """The changes that people made to the arguments that were or will be sent."""
    if call.amendment is None or call.state in (State.HELD, *NOT_SENT):
        return None
    private = call.amendments.filter(private=True).exists()
    return modified(bytes(call.arguments), call.to_send, private=private)
