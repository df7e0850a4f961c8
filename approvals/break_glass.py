"""Break-glass: one person lets one pending call run that a rule holds for others.

It is a vote like any other, and decides by the same transition; only that it suffices alone. The
database counts it (approvals/sql/break_glass.sql).
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import Proof, User
from approvals import budgets, eligibility, services
from approvals.models import Approval, BreakGlass
from approvals.services import AlreadyDecided, DecisionRefused
from approvals.statements import is_statement
from audit.services import record
from calls.basis import judged
from calls.models import Call
from core.english import gettext as _
from core.live import notify_on_commit
from policies.models import Effect
from policies.thresholds import DECIDE, people
from registry.publishing import published_catalogue

BREAK_GLASS = "approvals.break_glass"
REASON_MIN, REASON_MAX = 10, 1000
COUNTED = timedelta(days=30)


class ReviewRefused(DecisionRefused):
    """The review is not taken; says why."""


def is_offered(person: User) -> bool:
    """Whether this person is shown a way to it at all."""
    return bool(settings.BREAK_GLASS) and person.has_perm(BREAK_GLASS)


def why_not(approval: Approval, person: User) -> str:
    """Why this person may not use it on the call, as a sentence; empty if they may."""
    if not settings.BREAK_GLASS:
        return _("Break-glass is off in this installation: COUNTERSIGN_BREAK_GLASS=1 turns it on.")
    if not (person.has_perm(BREAK_GLASS) and person.has_perm(DECIDE)):
        return _("You are not among those who may break the glass.")
    if not person.is_vouched_for:
        return _("Set a password on your profile first.")
    # Also in single-person mode.
    own = {**eligibility.excluded_people(approval.call), **eligibility.involved(approval.call)}
    if never := own.get(person.pk):
        return never
    return _why_not_of_votes(approval, person) or _why_not_of_call(approval)


def _why_not_of_votes(approval: Approval, person: User) -> str:
    if approval.state != Approval.State.WAITING:
        return _("The call is no longer pending.")
    votes = list(approval.standing.select_related("person"))
    if no := next((one for one in votes if not one.approve), None):
        return _("%(who)s denied it: break-glass goes past no denial.") % {"who": no.names}
    if any(one.person_id == person.pk for one in votes):
        return _("You approved it already. Take your vote back first.")
    return eligibility.why_not_approve(approval, person)


def _why_not_of_call(approval: Approval) -> str:
    """It goes past a rule that requires approval, and past nothing else."""
    call = Call.objects.select_related("agent__owner", "token", "server").get(pk=approval.pk)
    if call.tool_id is None or call.server is None or is_statement(call):
        return _("It is a statement, whose signature says that people decided.")
    if why := services.why_stopped(approval):
        return why
    tool = published_catalogue.one(call.tool_id)
    decision = tool and judged(call, tool, call.to_send, at=call.asked_at)
    if not decision or decision.effect != Effect.ASK or decision.reason != approval.reason:
        return _("No rule alone requires its approval: a limit does, or something else.")
    return budgets.find_exceeded(call)


def seconds(approval: Approval, person: User) -> QuerySet[User]:
    """Those of whom one has to be told: they decide, are somebody else, and have no part in it."""
    never = {person.pk, *eligibility.same_hands([person.pk]), *eligibility.involved(approval.call)}
    able = User.objects.filter(pk__in=people("")).exclude(pk__in=never)
    return able.order_by("username")


def statement_line(second: User, reason: str) -> str:
    """The lines that the passkey signs besides the vote. The database reads the first one."""
    digest = hashlib.sha256(reason.encode()).hexdigest()
    return f"break-glass: {second.pk}\nsecond: {second.username}\nreason: {digest}\n"


def use(
    approval: Approval, *, by: User, second: User, reason: str, seen_digest: str, proof: Proof
) -> BreakGlass:
    """Lets the call run. Raises DecisionRefused. A call that can no longer be sent becomes
    superseded instead."""
    made = _use(approval, by, second, reason.strip(), seen_digest, proof)
    if made is None:
        raise AlreadyDecided(services.say_decided(approval))
    return made


@transaction.atomic
def _use(
    approval: Approval, by: User, second: User, reason: str, seen_digest: str, proof: Proof
) -> BreakGlass | None:
    """Returns None if the call became superseded, which is to be committed."""
    services.lock(approval)
    if not seen_digest or seen_digest != approval.call.call_digest:
        raise DecisionRefused(_("What you were shown is not what would be sent. Look again."))
    if services.supersede_locked(approval):
        return None
    if why := why_not(approval, by) or _why_not_said(approval, by, second, reason):
        raise DecisionRefused(why)
    if why := budgets.reserve(approval.call):
        raise DecisionRefused(why)
    made = BreakGlass.objects.create(
        approval=approval, person=by, second=second, reason=reason, seen_digest=seen_digest
    )
    _record_use(made, proof)
    services.cast(
        approval, by=by, approve=True, seen_digest=seen_digest, reason=reason, proof=proof
    )
    if approval.state != Approval.State.APPROVED:
        raise DecisionRefused(budgets.why_kept_pending(approval) or _("It needs your passkey."))
    notify_on_commit("frozen")
    return made


def _why_not_said(approval: Approval, by: User, second: User, reason: str) -> str:
    if not REASON_MIN <= len(reason) <= REASON_MAX:
        said = _("Say why, in %(least)d to %(most)d characters.")
        return said % {"least": REASON_MIN, "most": REASON_MAX}
    if not seconds(approval, by).filter(pk=second.pk).exists():
        return _("Choose another approver to be notified.")
    return ""


def _record_use(made: BreakGlass, proof: Proof) -> None:
    call = made.approval.call
    record(
        "break_glass.used",
        actor=made.person.actor,
        reason=made.reason,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        tool=call.tool_name,
        break_glass=made.pk,
        owner=call.person.username if call.person else "",
        second=made.second.username,
        told_id=made.second_id,
        seen_digest=made.seen_digest,
        proof=proof.statement_digest,
    )


def why_not_reviewed(used: BreakGlass, person: User) -> str:
    """Why this person may not review it, as a sentence; empty if they may."""
    if used.reviewed_at:
        return _("It is reviewed already.")
    if not person.has_perm(DECIDE):
        return _("You are not among those who decide.")
    if used.person_id in {person.pk, *eligibility.same_hands([person.pk])}:
        return _("Another user must review it.")
    return eligibility.involved(used.approval.call).get(person.pk, "")


@transaction.atomic
def review(used: BreakGlass, *, by: User, judgement: str, note: str) -> None:
    """Raises ReviewRefused."""
    used = BreakGlass.objects.select_for_update(of=["self"]).for_page().get(pk=used.pk)
    if why := why_not_reviewed(used, by):
        raise ReviewRefused(why)
    if judgement not in BreakGlass.Judgement or not note.strip():
        raise ReviewRefused(_("Choose a judgement, and say why."))
    used.reviewer, used.judgement, used.note = by, judgement, note.strip()[:REASON_MAX]
    used.reviewed_at = timezone.now()
    used.save(update_fields=["reviewer", "judgement", "note", "reviewed_at"])
    call = used.approval.call
    record(
        "break_glass.reviewed",
        actor=by.actor,
        reason=used.note,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        tool=call.tool_name,
        break_glass=used.pk,
        person=used.person.username,
        judgement=judgement,
    )
    notify_on_commit("frozen")


def count_lately() -> int:
    return BreakGlass.objects.filter(used_at__gt=timezone.now() - COUNTED).count()
