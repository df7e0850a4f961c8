"""Lines of the audit page by call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from audit.models import Entry
from audit.report import Group, ReportedCall, reported
from audit.steps import STEPS_MAX


@dataclass(frozen=True, slots=True)
class CallSteps:
    """A call, or an entry of none; `entry` is the newest that fits the filters."""

    entry: Entry
    # None where its first entry is not there.
    call: ReportedCall | None
    steps: list[Entry]

    @property
    def group(self) -> Group | None:
        """The call as the report says it: of one."""
        if self.call is None:
            return None
        group = Group(*self.call.sentence)
        group.calls.append(self.call)
        return group

    @property
    def is_cut(self) -> bool:
        beside = sum(step.seq is None for step in self.steps)
        return STEPS_MAX in (beside, len(self.steps) - beside)


def of_calls(
    rows: list[Entry], with_steps: list[Entry], people: Mapping[str, str]
) -> list[CallSteps]:
    """The rows in their order, with those of `with_steps` that are of the same call; `people` are
    display names by username."""
    by_call: dict[UUID, list[Entry]] = {}
    for step in with_steps:
        if step.call_id:
            by_call.setdefault(step.call_id, []).append(step)
    firsts = [step.pk for step in with_steps if step.seq == 1]
    calls = {call.call_id: call for call in reported(firsts, people)} if firsts else {}
    return [_of_row(row, calls, by_call) for row in rows]


def _of_row(
    row: Entry, calls: Mapping[UUID, ReportedCall], by_call: Mapping[UUID, list[Entry]]
) -> CallSteps:
    if not row.call_id:
        return CallSteps(row, None, [])
    return CallSteps(row, calls.get(row.call_id), by_call[row.call_id])
