"""Asking people, and taking their word: each verb with its entry, in one transaction."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.models import Approval, Vote
from audit.models import ClockTime
from audit.services import SYSTEM, Actor, record
from calls import dispatch
from calls.services import cancel as cancel_sent
from calls.states import State
from calls.transitions import Move, move_now
from core.errors import CountersignError
from core.journal import Statement
from core.live import ring_on_commit

# Written with the call's own first row, in the same commit: a held call without its approval
# could never be decided.
ASK = Statement(
    "ask",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, reason text)
), made AS (
    INSERT INTO approvals_approval (call_id, state, reason, decide_by)
    SELECT c.id, 'waiting', a.reason, c.decide_by
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


def asking(call_id: UUID, reason: str) -> dict[str, Any]:
    return {"id": call_id, "reason": reason}


def why_not(approval: Approval, person: User) -> str:
    """Why this person may not decide, as a sentence; empty if they may."""
    if not person.has_perm("approvals.decide_approval"):
        return _("You are not among those who decide.")
    if approval.call.person_id == person.pk or approval.call.agent.owner_id == person.pk:
        return _("The agent is yours: somebody else has to decide.")
    return ""


@transaction.atomic
def vote(
    approval: Approval, *, by: User, approve: bool, seen_digest: str, reason: str = ""
) -> None:
    """Let the held call run, or refuse it, in `by`'s name; `seen_digest`: of what was shown."""
    obstacle = why_not(approval, by)
    if obstacle:
        raise DecisionRefused(obstacle)
    if not seen_digest or seen_digest != approval.call.call_digest:
        raise DecisionRefused(_("What you were shown is not what would be sent. Look again."))

    state = Approval.State.APPROVED if approve else Approval.State.DENIED
    _decide(approval, state, by=by)
    Vote.objects.create(
        approval=approval, person=by, approve=approve, reason=reason, seen_digest=seen_digest
    )
    record(
        "approval.voted",
        actor=by.actor,
        reason=reason,
        call_id=approval.pk,
        agent=(approval.call.agent_id, approval.call.agent.name),
        tool=approval.call.tool_name,
        approve=approve,
        seen_digest=seen_digest,
    )
    _move(approval, approve=approve, by=by, reason=reason)


def _decide(approval: Approval, state: Approval.State, *, by: User) -> None:
    # Compare and set: when two people press at once, exactly one finds a row to update.
    decided = (
        Approval.objects.waiting()
        .filter(pk=approval.pk, decide_by__gt=ClockTime())
        .update(state=state, decided_by=by, decided_at=ClockTime())
    )
    approval.refresh_from_db(fields=["state", "decided_by", "decided_at"])
    if not decided:
        raise AlreadyDecided(_already(approval))


def _already(approval: Approval) -> str:
    if approval.decided_by:
        return _("%(who)s answered first: %(what)s.") % {
            "who": approval.decided_by.username,
            "what": approval.get_state_display(),
        }
    if approval.state == Approval.State.WAITING:
        return _("The time to decide is over.")
    return _("The call no longer waits: %(what)s.") % {"what": approval.get_state_display()}


def _move(approval: Approval, *, approve: bool, by: User, reason: str) -> None:
    said = _("%(who)s said yes.") if approve else _("%(who)s said no.")
    sentence = " ".join(part for part in (said % {"who": by.username}, reason) if part)
    target = State.APPROVED if approve else State.DENIED
    move = Move(approval.pk, State.HELD, target, by.actor, reason=sentence)
    if not approve:
        move.outcome = sentence
    if not move_now(move):
        raise AlreadyDecided(_("The call no longer waits."))
    if approve:
        _release(approval.pk)
    _tell(approval.pk)


def _release(call_id: UUID) -> None:
    start = settings.START_WITHIN_S
    move_now(Move(call_id, State.APPROVED, State.QUEUED, SYSTEM, start_in_s=start))
    dispatch.ring_on_commit(call_id)


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
    due = Approval.objects.waiting().filter(decide_by__lte=Now())
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
