"""Changes since a held call was requested that no vote can override."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from approvals.models import Approval
from calls.basis import Obstacle, find_changes, find_denial, judged
from calls.models import Call
from core.english import gettext as _
from policies.decide import Decision, RuleBook
from policies.models import Effect
from policies.thresholds import Threshold, combine, stored
from registry.publishing import published_catalogue


def find_obstacle(approval: Approval, book: RuleBook | None = None) -> Obstacle | None:
    """`book`: the rules of now, where they were just read. The time of day is the one of asking:
    that it goes on is no change."""
    call = Call.objects.select_related("agent__owner", "token", "amendment").get(pk=approval.pk)
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if found := find_changes(call, tool):
        return found
    assert tool is not None
    decision = judged(call, tool, call.to_send, book=book, at=call.asked_at)
    return find_denial(decision) or find_more(approval, decision)


def find_more(approval: Approval, decision: Decision) -> Obstacle | None:
    """Do rules ask by now for more yeses than this call waits for?"""
    if decision.effect != Effect.ASK:
        return None
    before, now = _yeses(stored(approval.thresholds)), _yeses(decision.thresholds)
    if combine(before, now) == combine(before):
        return None
    said = _("Policy now asks for more than this call waits for: %(who)s.")
    return Obstacle(said % {"who": decision.who})


def _yeses(thresholds: Iterable[Threshold]) -> tuple[Threshold, ...]:
    return tuple(replace(one, deny=1) for one in thresholds)
