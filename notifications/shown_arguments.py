"""Arguments of a pending call in messages: where every rule that asks about it says so, and without
secrets.

The rules said so when the call was asked for, and are judged again as the message is made: one that
was changed or disabled since shows nothing more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from approvals.models import Approval
from calls.basis import judged
from calls.models import Call
from inspection.patterns import PatternsTimedOut
from inspection.results import PASS_ALL, ResultRules, clean
from policies.models import Effect
from registry.publishing import published_catalogue
from registry.schemas.secret_arguments import mask_secrets

VALUES_MAX = 20
VALUE_MAX = 300


class ShownArguments(NamedTuple):
    """Names and values; `is_masked`: some of them are secret; `left_out`: how many are not here."""

    values: list[tuple[str, str]]
    is_masked: bool = False
    left_out: int = 0


NOTHING = ShownArguments([])


def of_approval(approval: Approval) -> ShownArguments:
    """NOTHING too for a call that an approver edited: channels have other readers too."""
    return _of_call(approval.call) if approval.shows_arguments else NOTHING


def _of_call(call: Call) -> ShownArguments:
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if tool is None or call.amendment_id is not None:
        return NOTHING
    decision = judged(call, tool, call.to_send, at=call.asked_at)
    if decision.effect != Effect.ASK or not decision.shows_arguments:
        return NOTHING
    arguments = call.parsed_arguments
    masked = mask_secrets(tool.content.get("inputSchema", {}), arguments)
    try:
        cleaned = _cleaned(masked, tool.with_results(decision.results).result_rules or PASS_ALL)
    except PatternsTimedOut:
        return NOTHING
    values = _values(cleaned)
    return ShownArguments(values, cleaned != arguments, len(cleaned) - len(values))


def _cleaned(arguments: Any, rules: ResultRules) -> Any:
    """With secrets in names masked as well, and what its operator masks in the tool's results.
    Raises PatternsTimedOut."""
    masks = ResultRules(secrets=True, personal=rules.personal, patterns=rules.patterns)
    return orjson.loads(clean(orjson.dumps(arguments), masks).body)


def _values(arguments: Any) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in list(arguments.items())[:VALUES_MAX]]


def _text(value: Any) -> str:
    """On one line: no value passes for another line of the message."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
