"""A case before and after its tool's definition changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from accounts.models import User
from calls.content.large_results import body_of
from calls.models import Call, Result
from calls.views.call_page import may_read_payload
from core import strict_json
from gateway.models import CaseRun, SavedCase
from gateway.submit import try_call
from gateway.submit.try_call import TryRoute
from registry.publishing.published_tools import ParsedDefinition, Violation
from registry.schemas import differences
from registry.schemas.differences import DiffLine


class HistoryRow(NamedTuple):
    run: CaseRun
    # The run is the first with its definition.
    is_first: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The last run before the definition changed, and the first after it."""

    before: CaseRun
    after: CaseRun
    # None: this person may not read both results, or one of them is not kept.
    lines: list[DiffLine] | None = None
    # Expectations by their sentence: whether each was met before and after; None: not looked at.
    checks: list[tuple[str, bool | None, bool | None]] = field(default_factory=list)


def history_rows(runs: Sequence[CaseRun]) -> list[HistoryRow]:
    """`runs`: newest first."""
    older = [run.definition_id for run in runs[1:]] + [run.definition_id for run in runs[-1:]]
    return [
        HistoryRow(run, run.definition_id != before)
        for run, before in zip(runs, older, strict=True)
    ]


def latest_change(runs: Sequence[CaseRun], person: User) -> Change | None:
    """The newest change among the runs that were sent; None where they share one definition."""
    sent = [run for run in runs if run.checks]
    for after, before in pairwise(sent):
        if after.definition_id != before.definition_id:
            return Change(before, after, _lines(before, after, person), _checks(before, after))
    return None


def _checks(before: CaseRun, after: CaseRun) -> list[tuple[str, bool | None, bool | None]]:
    old, new = ({one["expected"]: not one["problem"] for one in r.checks} for r in (before, after))
    return [(expected, old.get(expected), new.get(expected)) for expected in {**old, **new}]


def _lines(before: CaseRun, after: CaseRun, person: User) -> list[DiffLine] | None:
    bodies = [_body(run.call, person) for run in (before, after)]
    if None in bodies:
        return None
    old, new = bodies
    return differences.lines(old, new) if old != new else []


def _body(call: Call | None, person: User) -> Any:
    if call is None or not may_read_payload(call, person):
        return None
    found = Result.objects.filter(pk=call.pk).first()
    body = body_of(found) if found else None
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return None


def unfit(case: SavedCase, way: TryRoute | None) -> list[Violation]:
    """How its arguments do not fit what the server says of the tool now."""
    schema = try_call.latest_schema(case.tool, way)
    return ParsedDefinition.of(schema).violations(strict_json.loads(bytes(case.arguments)))
