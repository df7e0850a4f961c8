"""Changing what a held call is to send: checked like the agent's own, and put to a vote anew.

An edit is a proposal. Whoever made it has no vote on it, so that no one person alone decides what
is sent; earlier votes fall, because they were about something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from approvals import standing
from approvals.models import Approval, Vote
from approvals.services import AlreadyDecided, DecisionRefused, fall, lock
from calls.changes import between
from calls.claiming import judged
from calls.models import Call
from calls.transitions import Amending, amend_now
from core import strict_json
from core.live import ring_on_commit
from policies.decide import Decision
from policies.models import Effect
from policies.thresholds import DECIDE, Distinct, StepUp, Threshold, parse, people, plain
from registry import published
from registry.published import PublishedTool
from registry.violations import Violation

NAMED = 6


class EditRefused(DecisionRefused):
    """`violations`: where the arguments do not fit, if that is why."""

    def __init__(self, why: str, violations: list[Violation] | None = None) -> None:
        super().__init__(why)
        self.violations = violations or []


@dataclass(frozen=True, slots=True)
class Edit:
    """`seen_digest`: of what was shown when it was changed."""

    seen_digest: str
    arguments: bytes
    note: str = ""
    private: bool = False


def why_not(approval: Approval, person: User) -> str:
    """Why this person may not edit, as a sentence; empty if they may. A vote is no obstacle, nor
    an earlier edit."""
    if not person.has_perm(DECIDE):
        return _("You are not among those who decide.")
    call = approval.call
    if person.pk in (call.person_id, call.agent.owner_id):
        return _("The agent is yours: somebody else has to decide.")
    if approval.state != Approval.State.WAITING:
        return _("The call no longer waits: %(what)s.") % {"what": approval.get_state_display()}
    return ""


def others(approval: Approval, editor: User) -> list[str]:
    """Who could approve what `editor` proposes; nobody where they are too few to decide."""
    never = {*standing.excluded_people(approval.call), editor.pk}
    never -= _editors_alone(approval, editor)
    found: set[int] = set()
    for threshold in parse(approval.thresholds):
        able = people(threshold.source) - never
        if len(able) >= threshold.approve:
            found |= able
    names = User.objects.filter(pk__in=found).order_by("username")
    return list(names.values_list("username", flat=True))


def _editors_alone(approval: Approval, editor: User) -> set[int]:
    """Who edited before may decide once somebody else was the last to edit."""
    call = approval.call
    last = call.amendment.person_id if call.amendment else None
    own = {call.person_id, call.agent.owner_id, editor.pk}
    return {last} - own if last is not None else set()


@transaction.atomic
def edit(approval: Approval, given: Edit, *, by: User) -> None:
    """Raises EditRefused and DecisionRefused."""
    lock(approval)
    if obstacle := why_not(approval, by):
        raise EditRefused(obstacle)
    tool = _tool(approval.call)
    _check(approval.call, tool, given)
    decision = judged(approval.call, tool, given.arguments)
    thresholds = _thresholds(approval, decision)
    for vote in approval.standing:
        fall(vote, Vote.Fallen.EDITED)
    amending = Amending(
        id=approval.pk,
        seen=given.seen_digest,
        statement=approval.call.statement,
        arguments=given.arguments,
        person=by.actor,
        note=given.note,
        private=given.private,
    )
    if not amend_now(amending):
        raise AlreadyDecided(_("What you were shown is not what would be sent. Look again."))
    Approval.objects.filter(pk=approval.pk).update(thresholds=plain(thresholds))
    ring_on_commit("queue", "calls", f"call.{approval.pk}")


def _tool(call: Call) -> PublishedTool:
    tool = published.one(call.tool_id) if call.tool_id else None
    if tool is None or tool.definition_id != call.definition_id:
        raise EditRefused(_("The tool's definition changed: this call can no longer be sent."))
    return tool


def _check(call: Call, tool: PublishedTool, given: Edit) -> None:
    try:
        value = strict_json.loads(given.arguments)
    except strict_json.Ambiguous as error:
        raise EditRefused(str(error)) from error
    if violations := tool.violations(value):
        raise EditRefused(_("The arguments do not fit the tool's schema."), violations)
    if not between(call.to_send, given.arguments):
        raise EditRefused(_("Nothing was changed."))


def _thresholds(approval: Approval, decision: Decision) -> tuple[Threshold, ...]:
    before = parse(approval.thresholds)
    if decision.effect == Effect.DENY:
        raise EditRefused(
            _("A rule forbids the call with these arguments: %(why)s") % {"why": decision.reason}
        )
    if decision.effect == Effect.ALLOW:
        return before
    both = stricter(before, decision.thresholds)
    if not both:
        said = _("For these arguments a rule asks others than those who decide now: %(who)s.")
        who = "; ".join(str(one) for one in decision.thresholds)
        raise EditRefused(said % {"who": who})
    return both


def stricter(before: tuple[Threshold, ...], after: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
    """Meeting one of these meets one of each. Empty where they ask different people."""
    both = [_both(one, other) for one, other in product(before, after)]
    return tuple(dict.fromkeys(found for found in both if found is not None))


def _both(one: Threshold, other: Threshold) -> Threshold | None:
    if one.source and other.source and one.source != other.source:
        return None
    strengths = [StepUp(name) for name in StepUp.values]
    return Threshold(
        approve=max(one.approve, other.approve),
        deny=min(one.deny, other.deny),
        source=one.source or other.source,
        distinct=Distinct.TEAM if Distinct.TEAM in (one.distinct, other.distinct) else one.distinct,
        step_up=max(one.step_up, other.step_up, key=strengths.index),
    )
