"""Checks, just before a call is sent, whether what was decided on still holds."""

from __future__ import annotations

from collections.abc import Callable

from audit import rollback
from calls.basis import Obstacle, find_changes, find_denial, judged
from calls.freezes import wait_for_freezes
from calls.models import Call
from calls.pauses import why_paused
from core.english import gettext as _
from policies.decide import Decision
from policies.models import Effect
from registry.publishing.published_tools import PublishedTool

# Says what, of what people said, no longer lets the call be sent; empty if nothing.
Check = Callable[[Call, Decision], str]
_checks: list[Check] = []


def register(*checks: Check) -> None:
    """Registers another check before a call is sent, for apps above this one."""
    _checks.extend(check for check in checks if check not in _checks)


def registered() -> tuple[Check, ...]:
    return tuple(_checks)


def may_start() -> bool:
    """Anything at all; an emergency stop waits until the caller's transaction ends."""
    wait_for_freezes()
    return not (why_paused() or rollback.has_gone_back())


def find_sending_obstacle(call: Call, tool: PublishedTool | None) -> Obstacle | None:
    """The change since the decision that forbids sending the call; None if none does."""
    if found := find_changes(call, tool):
        return found
    assert tool is not None
    decision = judged(call, tool, call.to_send)
    if found := find_denial(decision):
        return found
    if decision.effect == Effect.ASK and call.effect == Effect.ALLOW:
        return Obstacle(_("Policy now requires approval first: %(why)s") % {"why": decision.reason})
    whys = (check(call, decision) for check in _checks)
    return next((Obstacle(why) for why in whys if why), None)
