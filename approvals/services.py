"""Requests for approval, votes and decisions. Each writes its audit entry in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Proof, User
from approvals import budgets, denials, eligibility
from approvals.changes import find_obstacle
from approvals.models import Approval, BreakGlass, Vote
from audit.models import ClockTime
from audit.services import SYSTEM, Actor, record
from calls import dispatch, pauses
from calls.basis import superseding
from calls.freezes import FreezeBook, frozen
from calls.models import Call
from calls.record.states import State
from calls.record.transitions import Move, move_now
from calls.services import cancel as cancel_sent
from core.english import english, ngettext
from core.english import gettext as _
from core.errors import CountersignError
from core.journal import Statement
from core.live import notify_on_commit
from core.outage import AWAY
from policies.decide import Decision, RuleBook
from policies.thresholds import next_widening, plain

log = logging.getLogger(__name__)

# So long its gateway has to confirm that the agent hears of a held call.
UNCONFIRMED = timedelta(seconds=30)

# What `lock` reads anew.
LOCKED = (
    "state",
    "decided_by",
    "decided_at",
    "decide_by",
    "denies_at",
    "thresholds",
    "widened_min",
    "widens_at",
    "call",
)

# Written with the call's own first row, in the same commit: a held call without its approval
# could never be decided.
ASK = Statement(
    "ask",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, reason text, thresholds jsonb, start_within_s int, widens_in_min int,
        shows_arguments boolean)
), made AS (
    INSERT INTO approvals_approval (
        call_id, state, reason, decide_by, thresholds, start_within_s, widens_at,
        shows_arguments)
    SELECT c.id, 'waiting', a.reason, c.decide_by, a.thresholds, a.start_within_s,
        clock_timestamp() + make_interval(mins => a.widens_in_min), a.shows_arguments
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.id BETWEEN %s AND %s AND c.state = 'held'
    ON CONFLICT DO NOTHING
    RETURNING call_id
)
SELECT call_id FROM made
""",
    order=3,
    bounded=True,
)


class DecisionRefused(CountersignError):
    """This user's vote is not accepted; says why."""


class AlreadyDecided(DecisionRefused):
    """The call was decided by others, or expired."""


class Undeclared(DecisionRefused):
    """The database was restored without a declaration, which ends every open call whatever was
    decided on it before."""


def check_declared() -> None:
    """Raises Undeclared, before anything of an open call is changed."""
    if why := pauses.why_undeclared():
        raise Undeclared(_("%(why)s Nothing was changed.") % {"why": why})


def approval_line(call_id: UUID, decision: Decision) -> dict[str, Any]:
    return {
        "id": call_id,
        "reason": decision.reason,
        "thresholds": plain(decision.thresholds),
        "start_within_s": decision.start_within_s,
        "widens_in_min": next_widening(decision.thresholds),
        "shows_arguments": decision.shows_arguments,
    }


def vote(
    approval: Approval,
    *,
    by: User,
    approve: bool,
    seen_digest: str,
    reason: str = "",
    proof: Proof | None = None,
    via: str = "",
    together: int = 1,
) -> Vote:
    """Records `by`'s vote on a pending call, which is decided once a threshold is met.

    `seen_digest`: digest of what the voter was shown; `proof`: their confirmation by passkey or
    code; `via`: the chat account, for the entry, where it was not on our page; `together`: how many
    calls they voted on in the same step. Raises DecisionRefused. A call that can no longer be sent
    becomes superseded instead.
    """
    made = _vote(
        approval,
        by=by,
        approve=approve,
        seen_digest=seen_digest,
        reason=reason,
        proof=proof,
        via=via,
        together=together,
    )
    if made is None:
        raise AlreadyDecided(say_decided(approval))
    return made


@transaction.atomic
def _vote(
    approval: Approval,
    *,
    by: User,
    approve: bool,
    seen_digest: str,
    reason: str,
    proof: Proof | None,
    via: str,
    together: int,
) -> Vote | None:
    """Returns None if the call became superseded, which is to be committed."""
    lock(approval)
    if obstacle := eligibility.why_not(approval, by):
        raise DecisionRefused(obstacle)
    if approve and (obstacle := eligibility.why_not_approve(approval, by)):
        raise DecisionRefused(obstacle)
    if not seen_digest or seen_digest != approval.call.call_digest:
        raise DecisionRefused(_("What you were shown is not what would be sent. Look again."))
    if supersede_locked(approval):
        return None
    if approve and (why := why_stopped(approval)):
        raise DecisionRefused(why)
    return cast(
        approval,
        by=by,
        approve=approve,
        seen_digest=seen_digest,
        reason=reason,
        proof=proof,
        via=via,
        together=together,
    )


def cast(
    approval: Approval,
    *,
    by: User,
    approve: bool,
    seen_digest: str,
    reason: str,
    proof: Proof | None,
    via: str = "",
    together: int = 1,
) -> Vote:
    """Records a vote that may be given, and decides the call if it suffices. Runs in the caller's
    transaction, which holds the approval's lock."""
    replaced = [] if approve else eligibility.yielding_votes(approval, by)
    for given in replaced:
        fall(given, Vote.Fallen.DELEGATE)
    made = Vote.objects.create(
        approval=approval,
        person=by,
        approve=approve,
        reason=reason,
        seen_digest=seen_digest,
        step_up=proof.method if proof else "",
        proof=proof,
    )
    # What the database makes of it: whether its person has a part in the call, and is alone.
    made.refresh_from_db(fields=["single_person", "for_people"])
    _record("approval.voted", made, by=by, via=via, together=together, replaced=replaced)
    _settle(approval, made)
    _tell(approval.pk)
    return made


@transaction.atomic
def reconsider(approval: Approval, book: RuleBook | None = None) -> bool:
    """Supersedes the call if it changed, or decides it if the remaining votes meet a threshold
    now. Returns whether it waits for nothing but room in a limit. `book`: the rules, if just
    read."""
    lock(approval)
    if supersede_locked(approval, book):
        return False
    settled = _settle(approval)
    if settled == Settled.CHANGED:
        _tell(approval.pk)
    return settled == Settled.NO_ROOM


def supersede_locked(approval: Approval, book: RuleBook | None = None) -> bool:
    """Supersedes the call if it can no longer be sent, since no vote can change that.

    Runs in the caller's transaction, which holds the approval's lock.
    """
    obstacle = find_obstacle(approval, book)
    if obstacle is None:
        return False
    Approval.objects.filter(pk=approval.pk).update(
        state=Approval.State.SUPERSEDED, decided_at=ClockTime()
    )
    approval.refresh_from_db(fields=["state", "decided_at"])
    approval.call.outcome = obstacle.why
    if not move_now(superseding(approval.pk, State.HELD, obstacle)):
        raise AlreadyDecided(_("The call is no longer pending."))
    _tell(approval.pk)
    return True


def why_stopped(approval: Approval, book: FreezeBook | None = None) -> str:
    """Why nothing may approve it now, as a sentence; empty if votes may. `book`: what is stopped,
    if just read."""
    return (book or pauses.load()).over(approval.call.agent_id, approval.call.server_id)


class Settled(Enum):
    """The effect of the votes on a call. `NO_ROOM`: they suffice, and a hard limit has no room."""

    NOTHING = auto()
    CHANGED = auto()
    NO_ROOM = auto()


def _settle(approval: Approval, made: Vote | None = None) -> Settled:
    """Decides the call if the votes meet a threshold. A denial that can be taken back only begins.
    `made`: the vote just cast."""
    verdict = eligibility.decided(approval.pk, approval.thresholds)
    approve = verdict == Approval.State.APPROVED
    if verdict == Approval.State.DENIED and denials.can_be_taken_back(approval):
        return Settled.CHANGED if denials.begin(approval) else Settled.NOTHING
    is_changed = verdict != Approval.State.DENIED and denials.end(approval)
    if not verdict or (approve and why_stopped(approval)):
        return Settled.CHANGED if is_changed else Settled.NOTHING
    if approve and not _has_room(approval, made):
        return Settled.CHANGED if is_changed else Settled.NO_ROOM
    votes = _counted(approval, approve=approve)
    # Somebody who voted before may count again: then nobody's doing decided it now.
    actor = votes[-1].person.actor if votes[-1] == made else SYSTEM
    _decide(approval, Approval.State(verdict), votes, actor=actor)
    return Settled.CHANGED


def _has_room(approval: Approval, made: Vote | None) -> bool:
    """Takes what the call needs of hard limits, or nothing. Rates and calls that end make room by
    themselves, so a vote stays; where a budget has none, raises DecisionRefused instead."""
    with transaction.atomic():
        why = budgets.reserve_approved(approval.call)
        if not why and not budgets.take_room(approval.call):
            return True
        # While the call stays pending, others may use the budget.
        transaction.set_rollback(True)
    if why and made is not None:
        # Rolls back the vote too.
        raise DecisionRefused(
            _("%(why)s The call stays pending; your vote is not kept.") % {"why": why}
        )
    return False


def _counted(approval: Approval, *, approve: bool) -> list[Vote]:
    """The votes that count, in the order in which they were cast."""
    tally = eligibility.facts([approval.pk])[approval.pk].tally
    counted = Q(pk__in={one.vote for one in tally if one.approve == approve})
    if approve:
        # Counted by nothing but that it stands (approvals/sql/break_glass.sql).
        used = BreakGlass.objects.filter(approval=approval).values("person")
        counted |= Q(approval=approval, approve=True, fallen_at=None, person__in=used)
    return list(Vote.objects.filter(counted).select_related("person").order_by("pk"))


@transaction.atomic
def take_back(approval: Approval, *, by: User) -> None:
    """Withdraws `by`'s vote. Raises DecisionRefused once the call is decided."""
    lock(approval, for_take_back=True)
    given = approval.standing.filter(person=by).first()
    if given is None:
        raise DecisionRefused(_("You have no vote here to take back."))
    if denials.is_over(approval):
        raise AlreadyDecided(_("It is denied: that can no longer be taken back."))
    fall(given, Vote.Fallen.TAKEN_BACK)
    _record("approval.taken_back", given, by=by)
    # Where others deny it too, they have their own time.
    denials.end(approval)
    # Of people of one team the first counts: without that vote others may. Not once the time to
    # decide is over: then it expires.
    if not _too_late(approval):
        _settle(approval)
    _tell(approval.pk)


def fall(vote: Vote, why: Vote.Fallen) -> None:
    """Invalidates a vote, in the caller's transaction, which holds the approval's lock."""
    Vote.objects.standing().filter(pk=vote.pk).update(fallen_at=ClockTime(), fallen_why=why)


def lock(approval: Approval, *, for_take_back: bool = False) -> None:
    """Locks the approval, so that votes on one call are serialised. Raises AlreadyDecided and
    Undeclared.

    `for_take_back`: a denial has its time to be taken back, also where the time to decide, which
    stood still when it began, ends before.
    """
    check_declared()
    list(Approval.objects.select_for_update().filter(pk=approval.pk).values_list("pk"))
    # A statement of its own: one that waited for the lock sees joined rows as they were before.
    locked = Approval.objects.select_related("decided_by", "call").get(pk=approval.pk)
    for field in LOCKED:
        setattr(approval, field, getattr(locked, field))
    has_time = for_take_back and approval.is_being_denied and not denials.is_over(approval)
    if approval.state != Approval.State.WAITING or (not has_time and _too_late(approval)):
        raise AlreadyDecided(say_decided(approval))
    if approval.call.start_after is not None:
        raise DecisionRefused(
            _("Its agent has not been notified yet that it is pending. Try again in a moment.")
        )


def _too_late(approval: Approval) -> bool:
    late = Approval.objects.filter(
        pk=approval.pk, decide_by__lte=ClockTime(), call__clock_stopped_at=None
    )
    return late.exists()


def _record(
    action: str,
    given: Vote,
    *,
    by: User,
    via: str = "",
    together: int = 1,
    replaced: Sequence[Vote] = (),
) -> None:
    """`replaced`: approvals whose place this denial takes."""
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
        **({"single_person": True} if given.single_person else {}),
        **({"for": given.for_people, "voter": given.names} if given.for_people else {}),
        **({"via": via} if via else {}),
        **({"together": together} if together > 1 else {}),
        **({"replaced": [one.pk for one in replaced]} if replaced else {}),
    )


def _decide(approval: Approval, state: Approval.State, votes: list[Vote], *, actor: Actor) -> None:
    """Stores the decision. `votes`: those that made it, the last one cast last; `actor`: who is
    recorded for it."""
    sentence = _sentence(approval, votes, recounted=actor is SYSTEM)
    Approval.objects.filter(pk=approval.pk).update(
        state=state, decided_by=votes[-1].person, decided_at=ClockTime()
    )
    approval.refresh_from_db(fields=["state", "decided_by", "decided_at"])
    _move(approval, sentence, votes, by=actor)


def say_decided(approval: Approval) -> str:
    """The sentence for users whose vote came too late."""
    if approval.decided_by:
        return _("%(who)s answered first: %(what)s.") % {
            "who": approval.decided_by.username,
            "what": english(approval.get_state_display()),
        }
    if approval.state == Approval.State.WAITING:
        return _("The time to decide is over.")
    what = {"what": english(approval.get_state_display()), "why": approval.call.outcome}
    if approval.state == Approval.State.SUPERSEDED:
        return _("The call can no longer be sent, and was superseded: %(why)s") % what
    return _("The call is no longer pending: %(what)s.") % what


def _move(approval: Approval, sentence: str, votes: list[Vote], *, by: Actor) -> None:
    approve = votes[-1].approve
    target = State.APPROVED if approve else State.DENIED
    # Votes that did not count are entries too: the report names those that did.
    people = [vote.person_id for vote in votes]
    move = Move(approval.pk, State.HELD, target, by, sentence, details={"decided_by": people})
    if not approve:
        move.outcome = sentence
    if not move_now(move):
        raise AlreadyDecided(_("The call is no longer pending."))
    if approve:
        _release(approval)


def _sentence(approval: Approval, votes: list[Vote], *, recounted: bool) -> str:
    """The sentence for the agent: who decided, and their reasons."""
    used = BreakGlass.objects.filter(approval=approval).select_related("second").first()
    names = [one.names for one in votes]
    who = _(" and ").join([part for part in (", ".join(names[:-1]), names[-1]) if part])
    said = _("Approved by %(who)s.") if votes[-1].approve else _("Denied by %(who)s.")
    alone = any(one.single_person for one in votes)
    mode = _("Single-person mode: nobody else may decide.") if alone else ""
    again = _("Counted again, since others may decide by now.") if recounted else ""
    broken = _("Break-glass: %(second)s was notified immediately.")
    glass = broken % {"second": used.second.username} if used else ""
    late = ngettext(
        "Pending for %(n)d minute: its rule let others decide too.",
        "Pending for %(n)d minutes: its rule let others decide too.",
        approval.widened_min,
    )
    wide = late % {"n": approval.widened_min} if approval.widened_min else ""
    parts = [said % {"who": who}, glass, mode, wide, again, *(one.reason for one in votes)]
    return " ".join(part for part in parts if part)


def _release(approval: Approval) -> None:
    start = approval.start_within_s or settings.START_WITHIN_S
    move_now(Move(approval.pk, State.APPROVED, State.QUEUED, SYSTEM, start_in_s=start))
    dispatch.notify_on_commit(approval.pk)


def _tell(call_id: UUID) -> None:
    notify_on_commit("queue", "calls", f"call.{call_id}")


@transaction.atomic
def cancel(call_id: UUID, *, by: Actor) -> bool:
    """Withdraws a pending call, or cancels it later on; False if it had ended. Raises
    Undeclared."""
    check_declared()
    sentence = _("Withdrawn by %(who)s.") % {"who": by.name}
    return _close(call_id, Approval.State.WITHDRAWN, State.WITHDRAWN, by, sentence) or cancel_sent(
        call_id, by=by
    )


def send_denials() -> None:
    """Denies the calls whose denial can no longer be taken back, whoever took it: the row says
    when, so that no process has to remember it."""
    due = Approval.objects.waiting().filter(denies_at__lte=Now()).order_by("denies_at")
    for approval in due[:100]:
        try:
            _send_denial(approval)
        except AWAY:
            raise
        except Exception:
            log.exception("Approval %s could not be denied; the others are.", approval.pk)


@transaction.atomic
def _send_denial(approval: Approval) -> None:
    due = Approval.objects.waiting().filter(pk=approval.pk, denies_at__lte=ClockTime())
    if not due.select_for_update().values_list("pk"):
        return
    # A statement of its own, as `lock` has it.
    locked = Approval.objects.select_related("call").get(pk=approval.pk)
    if eligibility.decided(locked.pk, locked.thresholds) == Approval.State.DENIED:
        votes = _counted(locked, approve=False)
        _decide(locked, Approval.State.DENIED, votes, actor=votes[-1].person.actor)
    else:
        denials.end(locked)
    _tell(locked.pk)


def expire() -> None:
    """Ends pending calls whose time to decide is over; expiry never approves."""
    due = Approval.objects.waiting().filter(
        ~frozen("call__"), decide_by__lte=Now(), call__clock_stopped_at=None, denies_at=None
    )
    sentence = _("Nobody decided in time.")
    for call_id in due.values_list("pk", flat=True)[:100]:
        _close(call_id, Approval.State.EXPIRED, State.EXPIRED, SYSTEM, sentence)
    unconfirmed = Approval.objects.waiting().filter(
        call__start_after__isnull=False, call__asked_at__lte=Now() - UNCONFIRMED
    )
    for call_id in unconfirmed.values_list("pk", flat=True)[:100]:
        withdraw_unconfirmed(call_id)


@transaction.atomic
def withdraw_unconfirmed(call_id: UUID) -> bool:
    """Withdraws a call whose record was written too late, so that its agent got an error; False
    if there is no such call."""
    list(Approval.objects.waiting().select_for_update().filter(pk=call_id).values_list("pk"))
    held = Call.objects.filter(pk=call_id, state=State.HELD, start_after__isnull=False)
    if not held.select_for_update().values_list("pk"):
        return False
    sentence = _("Its agent could not be notified in time that it was recorded. It was never sent.")
    return _close(call_id, Approval.State.WITHDRAWN, State.WITHDRAWN, SYSTEM, sentence)


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
