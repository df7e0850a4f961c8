"""Checks, just before a call is sent, whether what was decided on still holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from audit import position, rollback
from calls.basis import Obstacle, find_changes, find_denial, judged, subject
from calls.configuration import CURRENT, CallConfiguration, Generation, KeptConfiguration
from calls.freezes import wait_for_freezes
from calls.models import Call
from calls.pauses import STATE, say_why
from core import planned
from core.english import gettext as _
from core.listen import GENERATION
from policies.decide import Decision
from policies.limits.costs import ResultCost, result_costs
from policies.models import Effect
from registry.publishing.published_tools import PublishedTool

# Says what, of what people said, no longer lets the call be sent; empty if nothing.
Check = Callable[[Call, Decision], str]
_checks: list[Check] = []
_kept = KeptConfiguration(None)

_LOOK = f"""
    SELECT p.*, n.*, g.*, pg_postmaster_start_time(),
        pg_current_xact_id_if_assigned() IS NOT NULL
    FROM ({STATE}) p, ({position.NEXT}) n, ({GENERATION}) g
"""


def register(*checks: Check) -> None:
    """Registers another check before a call is sent, for apps above this one."""
    _checks.extend(check for check in checks if check not in _checks)


def registered() -> tuple[Check, ...]:
    return tuple(_checks)


@dataclass(frozen=True, slots=True)
class Start:
    """The facts that the caller's transaction starts calls by, as long as it goes on."""

    configuration: CallConfiguration
    generation: Generation


def may_start() -> Start | None:
    """None: nothing may start. An emergency stop waits until the caller's transaction ends."""
    wait_for_freezes()
    # Before the database is asked, since others go on meanwhile.
    seen = position.read()
    row = planned.execute(_LOOK).fetchone()
    assert row is not None
    *pause, place, following, number, began_at, has_written = row
    if say_why(*pause) or rollback.is_older_than(seen, place, following):
        return None
    generation = Generation(place, began_at, number)
    # What this transaction has written may be undone, and the number with it.
    return Start(CURRENT if has_written else _kept_at(generation), generation)


def _kept_at(generation: Generation) -> CallConfiguration:
    global _kept  # noqa: PLW0603 one per process is the point
    kept = _kept
    if kept.generation != generation:
        # What is committed from here on comes with another number.
        kept = _kept = KeptConfiguration(generation)
    return kept


def judge_sending(
    call: Call, tool: PublishedTool | None, configuration: CallConfiguration
) -> Obstacle | PublishedTool:
    """The change since the decision that forbids sending the call; without any, its tool, whose
    results are treated as rules demand for the call."""
    found = find_changes(call, tool, configuration)
    if found or tool is None:
        return found or Obstacle(_("The tool is no longer published."))
    decision = judged(call, tool, call.to_send, configuration=configuration)
    if found := find_denial(decision):
        return found
    if decision.effect == Effect.ASK and call.effect == Effect.ALLOW:
        return Obstacle(_("Policy now requires approval first: %(why)s") % {"why": decision.reason})
    whys = (check(call, decision) for check in _checks)
    why = next(filter(None, whys), "")
    return Obstacle(why) if why else tool.with_results(decision.results)


def find_costs(
    call: Call, tool: PublishedTool, configuration: CallConfiguration
) -> tuple[ResultCost, ...]:
    """The costs that the call's result may say."""
    book = configuration.limits()
    if not result_costs(book.limits):
        return ()
    return result_costs(book.covering(subject(call, tool, call.to_send, configuration)))
