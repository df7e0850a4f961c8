"""A call in its own agent's words: the same for REST and for tools."""

from __future__ import annotations

from typing import Any

import orjson

from approvals import talk
from calls.bigness import body_of
from calls.changes import Modified, modified
from calls.models import Call, Result
from calls.refusal import Refusal, of_call
from calls.states import NOT_SENT, State
from gateway import wording
from policies.models import Rule


def described(call: Call) -> dict[str, Any]:
    """`result` and `error` as the server wrote them."""
    members: dict[str, Any] = {
        **in_short(call),
        "executed": call.executed or None,
        "outcome": call.outcome or wording.stands(State(call.state), call.pk, call.fingerprint),
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


def _refusal(call: Call) -> Refusal:
    rule = Rule.objects.filter(pk=call.rule_id or 0).first()
    known = ("", "", False)
    if rule is not None:
        known = ("" if rule.unnamed else rule.name, rule.instead, bool(rule.when))
    return of_call(State(call.state), call.executed, call.effect, known)


def in_short(call: Call) -> dict[str, Any]:
    members = {
        "id": call.pk,
        "fingerprint": call.fingerprint,
        "tool": call.tool_name,
        "toolset": call.toolset,
        "state": call.state,
        "asked_at": call.asked_at,
        "page": wording.page_of(call.pk),
    }
    if call.state == State.HELD:
        members |= {"decide_by": call.decide_by, "questions": talk.open_questions(call.pk)}
    return members


def _modified(call: Call) -> Modified | None:
    """What people changed of that which was sent, or is about to be."""
    if call.amendment is None or call.state in (State.HELD, *NOT_SENT):
        return None
    private = call.amendments.filter(private=True).exists()
    return modified(bytes(call.arguments), call.to_send, private=private)
