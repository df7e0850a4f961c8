"""Asking people, and taking their word: each verb with its entry, in one transaction."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import Proof, User
from approvals import standing
from approvals.models import Approval, Vote
from audit.models import ClockTime
from audit.services import SYSTEM, Actor, record
from calls import dispatch, freezes
from calls.freezes import frozen
from calls.services import cancel as cancel_sent
from calls.states import State
from calls.transitions import Move, move_now
from core.errors import CountersignError
from core.journal import Statement
from core.live import ring_on_commit
from policies.decide import Decision
from policies.thresholds import plain

# Written with the call's own first row, in the same commit: a held call without its approval
# could never be decided.
ASK = Statement(
    "ask",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, reason text, thresholds jsonb, start_within_s int)
), made AS (
    INSERT INTO approvals_approval (
        call_id, state, reason, decide_by, thresholds, start_within_s)
    SELECT c.id, 'waiting', a.reason, c.decide_by, a.thresholds, a.start_within_s
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.state = 'held'
    ON CONFLICT DO NOTHING
    RETURNING call_id
)
SELECT call_id FROM made
""",
    order=3,
)


class DecisionRefused(CountersignError):
    """This person's word cannot be taken; says why."""


class AlreadyDecided(DecisionRefused):
    """Somebody else, or the clock, was first."""


def asking(call_id: UUID, decision: Decision) -> dict[str, Any]:
    return {
        "id": call_id,
        "reason": decision.reason,
        "thresholds": plain(decision.thresholds),
        "start_within_s": decision.start_within_s,
    }


@transaction.atomic
def vote(
    approval: Approval,
    *,
    by: User,
    approve: bool,
    seen_digest: str,
    reason: str = "",
    proof: Proof | None = None,
) -> Vote:
    """`by`'s word on the held call, which decides once a threshold is met.

    `seen_digest`: of what was shown; `proof`: that they confirmed it. Raises DecisionRefused.
    """
    lock(approval)
    if obstacle := standing.why_not(approval, by):
        raise DecisionRefused(obstacle)
    if not seen_digest or seen_digest != approval.call.call_digest:
        raise DecisionRefused(_("What you were shown is not what would be sent. Look again."))
    if approve and (why := freezes.load().over(approval.call.agent_id, approval.call.server_id)):
        raise DecisionRefused(why)

    made = Vote.objects.create(
        approval=approval,
        person=by,
        approve=approve,
        reason=reason,
        seen_digest=seen_digest,
        step_up=proof.method if proof else "",
        proof=proof,
    )
    _record("approval.voted", made, by=by)
    verdict = standing.decided(approval.pk, approval.thresholds)
    if verdict:
        _decide(approval, Approval.State(verdict), by=by)
    _tell(approval.pk)
    return made


@transaction.atomic
def take_back(approval: Approval, *, by: User) -> None:
    """`by`'s vote falls; raises DecisionRefused once the call is decided."""
    lock(approval)
    given = approval.standing.filter(person=by).first()
    if given is None:
        raise DecisionRefused(_("You have no vote here to take back."))
    fall(given, Vote.Fallen.TAKEN_BACK)
    _record("approval.taken_back", given, by=by)
    _tell(approval.pk)


def fall(vote: Vote, why: Vote.Fallen) -> None:
    """It no longer counts; in the caller's transaction, which holds the approval's lock."""
    Vote.objects.standing().filter(pk=vote.pk).update(fallen_at=ClockTime(), fallen_why=why)


def lock(approval: Approval) -> None:
    """Those who decide one call take turns. Raises AlreadyDecided."""
    list(Approval.objects.select_for_update().filter(pk=approval.pk).values_list("pk"))
    # A statement of its own: one that waited for the lock sees joined rows as they were before.
    locked = Approval.objects.select_related("decided_by", "call").get(pk=approval.pk)
    for field in ("state", "decided_by", "decided_at", "decide_by", "thresholds", "call"):
        setattr(approval, field, getattr(locked, field))
    if approval.state != Approval.State.WAITING or _too_late(approval):
        raise AlreadyDecided(_already(approval))


def _too_late(approval: Approval) -> bool:
    late = Approval.objects.filter(
        pk=approval.pk, decide_by__lte=ClockTime(), call__clock_stopped_at=None
    )
    return late.exists()


def _record(action: str, given: Vote, *, by: User) -> None:
    call = given.approval.call
    record(
        action,
        actor=by.actor,
        reason=given.reason,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        tool=call.tool_name,
        approve=given.approve,
        seen_digest=given.seen_digest,
        step_up=given.step_up,
        proof=given.proof.statement_digest if given.proof else "",
    )


def _decide(approval: Approval, state: Approval.State, *, by: User) -> None:
    approve = state == Approval.State.APPROVED
    Approval.objects.filter(pk=approval.pk).update(
        state=state, decided_by=by, decided_at=ClockTime()
    )
    approval.refresh_from_db(fields=["state", "decided_by", "decided_at"])
    _move(approval, approve=approve, by=by)


def _already(approval: Approval) -> str:
    if approval.decided_by:
        return _("%(who)s answered first: %(what)s.") % {
            "who": approval.decided_by.username,
            "what": approval.get_state_display(),
        }
    if approval.state == Approval.State.WAITING:
        return _("The time to decide is over.")
    return _("The call no longer waits: %(what)s.") % {"what": approval.get_state_display()}


def _move(approval: Approval, *, approve: bool, by: User) -> None:
    sentence = _sentence(approval, approve=approve)
    target = State.APPROVED if approve else State.DENIED
    move = Move(approval.pk, State.HELD, target, by.actor, reason=sentence)
    if not approve:
        move.outcome = sentence
    if not move_now(move):
        raise AlreadyDecided(_("The call no longer waits."))
    if approve:
        _release(approval)


def _sentence(approval: Approval, *, approve: bool) -> str:
    """Who said so, and why."""
    given = list(approval.standing.filter(approve=approve).select_related("person"))
    names = [one.person.username for one in given]
    who = _(" and ").join([part for part in (", ".join(names[:-1]), names[-1]) if part])
    said = _("%(who)s said yes.") if approve else _("%(who)s said no.")
    return " ".join([said % {"who": who}, *(one.reason for one in given if one.reason)])


def _release(approval: Approval) -> None:
    start = approval.start_within_s or settings.START_WITHIN_S
    move_now(Move(approval.pk, State.APPROVED, State.QUEUED, SYSTEM, start_in_s=start))
    dispatch.ring_on_commit(approval.pk)


def _tell(call_id: UUID) -> None:
    ring_on_commit("queue", "calls", f"call.{call_id}")


@transaction.atomic
def cancel(call_id: UUID, *, by: Actor) -> bool:
    """Withdraw a call that waits for people, or stop it further on; False if it had ended."""
    sentence = _("Withdrawn by %(who)s.") % {"who": by.name}
    return _close(call_id, Approval.State.WITHDRAWN, State.WITHDRAWN, by, sentence) or cancel_sent(
        call_id, by=by
    )


def expire() -> None:
    """The time to decide is over: that never means yes."""
    due = Approval.objects.waiting().filter(
        ~frozen("call__"), decide_by__lte=Now(), call__clock_stopped_at=None
    )
    sentence = _("Nobody decided in time.")
    for call_id in due.values_list("pk", flat=True)[:100]:
        _close(call_id, Approval.State.EXPIRED, State.EXPIRED, SYSTEM, sentence)


@transaction.atomic
def _close(call_id: UUID, state: Approval.State, target: State, by: Actor, sentence: str) -> bool:
    closed = (
        Approval.objects.waiting().filter(pk=call_id).update(state=state, decided_at=ClockTime())
    )
    if not closed:
        return False
    move_now(Move(call_id, State.HELD, target, by, reason=sentence, outcome=sentence))
    _tell(call_id)
    return True
