"""Changing what a held call is to send: checked like the agent's own, and put to a vote anew.

An edit is a proposal. Whoever edited the call, first or last, has no vote on it, so that no one
person alone decides any of what is sent; earlier votes fall, because they were about something
else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import transaction

from accounts.models import User
from approvals import eligibility
from approvals.models import Approval, Vote
from approvals.services import (
    AlreadyDecided,
    DecisionRefused,
    fall,
    lock,
    say_decided,
    supersede_locked,
)
from approvals.widening import widens_at
from calls.basis import judged
from calls.content.amendments import between
from calls.models import Call
from calls.record.transitions import Amending, amend_now
from core import strict_json
from core.english import english
from core.english import gettext as _
from core.live import notify_on_commit
from policies.decide import Decision
from policies.limits.amending import reserve_anew
from policies.models import Effect
from policies.thresholds import DECIDE, Threshold, clauses, combine, people, plain, stored
from registry.publishing import published_catalogue
from registry.publishing.published_tools import PublishedTool
from registry.schemas.violations import Violation

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
    if own := eligibility.parties(call).get(person.pk):
        return own
    if approval.state != Approval.State.WAITING:
        return _("The call is no longer pending: %(what)s.") % {
            "what": english(approval.get_state_display())
        }
    if approval.is_being_denied:
        return _("The call was denied. It can be edited once that is taken back.")
    return ""


def others(approval: Approval, editor: User) -> list[str]:
    """People who could approve the edit that `editor` proposes; none where they are too few to
    decide."""
    # As the database will say once this person has edited too.
    never = {*eligibility.excluded_people(approval.call), editor.pk}
    never |= eligibility.same_hands([editor.pk])
    found: set[int] = set()
    for clause in clauses(stored(approval.thresholds)):
        able = _possible_voters(clause, never)
        if not able:
            return []
        found |= able
    return [one.shown_name for one in User.objects.filter(pk__in=found).order_by("username")]


def _possible_voters(clause: Iterable[Threshold], never: Collection[int]) -> set[int]:
    """People who could meet one of these thresholds, where there are enough."""
    circles = [(one, people(one.source) - set(never)) for one in clause]
    return set().union(*(circle for one, circle in circles if len(circle) >= one.approve))


def edit(approval: Approval, given: Edit, *, by: User) -> None:
    """Raises EditRefused and DecisionRefused. What can no longer be sent becomes superseded."""
    if not _edit(approval, given, by=by):
        raise AlreadyDecided(say_decided(approval))


@transaction.atomic
def _edit(approval: Approval, given: Edit, *, by: User) -> bool:
    """False: it became superseded, which is to be kept."""
    lock(approval)
    if obstacle := why_not(approval, by):
        raise EditRefused(obstacle)
    if supersede_locked(approval):
        return False
    tool = _tool(approval.call)
    _check(approval.call, tool, given)
    decision = judged(approval.call, tool, given.arguments)
    thresholds = _thresholds(approval, decision)
    if why := reserve_anew(approval.pk, given.arguments):
        raise EditRefused(why)
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
        asks=(decision.rule, decision.reason) if decision.effect == Effect.ASK else None,
    )
    if not amend_now(amending):
        raise AlreadyDecided(_("What you were shown is not what would be sent. Look again."))
    Approval.objects.filter(pk=approval.pk).update(
        thresholds=plain(thresholds), widens_at=widens_at(approval, thresholds)
    )
    notify_on_commit("queue", "calls", f"call.{approval.pk}")
    return True


def _tool(call: Call) -> PublishedTool:
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
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
    before = stored(approval.thresholds)
    if decision.effect == Effect.DENY:
        raise EditRefused(
            _("A rule forbids the call with these arguments: %(why)s") % {"why": decision.reason}
        )
    if decision.effect == Effect.ALLOW:
        return before
    return combine(before, decision.thresholds)
