"""Cancelling, resolving, and looking after what was left lying."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from accounts.models import User
from audit.models import ClockTime
from audit.services import SYSTEM, Actor, record
from calls.freezes import frozen
from calls.models import Call, Rerun
from calls.record.idempotency import FORGET
from calls.record.outcomes import schedule_retry
from calls.record.states import Executed, State
from calls.record.transitions import Move, Outcome, ended, move_now
from core.english import english
from core.english import gettext as _
from core.errors import CountersignError
from core.listen import CANCEL
from core.live import notify_on_commit
from registry.publishing import published_catalogue


class NotResolvable(CountersignError):
    """The call's outcome is not, or no longer, unknown."""


@transaction.atomic
def cancel(call_id: UUID, *, by: Actor) -> bool:
    """Stop a queued call for certain, or ask for a running one to be stopped."""
    sentence = _cancelled(call_id) % {"who": by.name}
    move = Move(
        call_id,
        State.QUEUED,
        State.CANCELLED,
        by,
        reason=sentence,
        outcome=sentence,
        executed=Executed.NO,
    )
    done = move_now(move) or _ask_to_stop(call_id, by)
    if done:
        notify_on_commit(f"call.{call_id}", "calls")
    return done


def _cancelled(call_id: UUID) -> str:
    if Call.objects.filter(pk=call_id, executed=Executed.UNKNOWN).exists():
        return _("Cancelled by %(who)s between two attempts.")
    return _("Cancelled by %(who)s before it was sent.")


def _ask_to_stop(call_id: UUID, by: Actor) -> bool:
    asked = Call.objects.filter(
        pk=call_id, state=State.RUNNING, cancel_asked_at__isnull=True
    ).update(cancel_asked_at=ClockTime(), cancel_asked_by=by.name)
    if asked:
        record("call.cancel_asked", actor=by, call_id=call_id)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CANCEL, str(call_id)])
    return bool(asked)


@transaction.atomic
def resolve(call_id: UUID, *, by: User, executed: Executed, note: str) -> None:
    """A person found out what became of a call whose outcome was unknown."""
    sentence = _("%(who)s found out: %(what)s. %(note)s") % {
        "who": by.username,
        "what": english(executed.label),
        "note": note,
    }
    move = Move(
        call_id,
        State.UNKNOWN,
        State.RESOLVED,
        by.actor,
        reason=sentence,
        outcome=sentence,
        executed=executed,
    )
    if not move_now(move):
        raise NotResolvable(_("The outcome of this call is not unknown, or no longer."))
    notify_on_commit(f"call.{call_id}", "calls")


@transaction.atomic
def ran_again(call_id: UUID, *, retry_id: UUID, by: User) -> None:
    """Resolves a call of unknown outcome by its retry, which people decide on."""
    sentence = _("%(who)s had it asked for again, as the call %(again)s.") % {
        "who": by.username,
        "again": retry_id,
    }
    move = Move(
        call_id,
        State.UNKNOWN,
        State.RESOLVED,
        by.actor,
        reason=sentence,
        outcome=sentence,
        executed=Executed.UNKNOWN,
        details={"again": str(retry_id)},
    )
    if not move_now(move):
        raise NotResolvable(_("The outcome of this call is not unknown, or no longer."))
    Rerun.objects.create(call_id=call_id, again_id=retry_id, person=by)
    notify_on_commit(f"call.{call_id}", "calls")


def end_the_late() -> None:
    """Queued for too long: an approval is for now, not for whenever a worker comes back."""
    late = Call.objects.filter(
        ~frozen(), state=State.QUEUED, start_by__lte=Now(), clock_stopped_at=None
    )
    sentence = _("No worker could start the call in time.")
    for call_id in late.values_list("pk", flat=True)[:100]:
        _end(Move(call_id, State.QUEUED, State.EXPIRED, SYSTEM, sentence, outcome=sentence))


def end_the_lost() -> None:
    """Running, but whoever ran it let go of its lease: dead, or cut off. We cannot know more."""
    if _just_started():
        return
    # What its server runs as a task is taken over instead (calls/queue/upstream_tasks.py).
    lost = Call.objects.filter(state=State.RUNNING, lease_until__lt=ClockTime(), upstream_task="")
    sentence = _("Whoever ran the call stopped before saying how it ended.")
    outcome = Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
    for call in lost.select_related("tool")[:100]:
        _end(ended(call.pk, call.fence, _end_of_lost(call, outcome), SYSTEM))


def _end_of_lost(call: Call, outcome: Outcome) -> Outcome:
    """The outcome of a call whose lease ran out. A cancelled one is not retried, and a harmless one
    leaves nothing to resolve."""
    if call.tool is None:
        return outcome
    if not call.cancel_asked_at:
        return schedule_retry(outcome, attempt=call.fence) if call.tool.safe_to_repeat else outcome
    known = published_catalogue.one(call.tool.pk)
    is_final = call.tool.safe_to_repeat or call.tool.cancel_is_final
    is_final = is_final or (known is not None and known.is_harmless)
    return replace(outcome, state=State.CANCELLED) if is_final else outcome


def forget_keys() -> int:
    """Deletes idempotency keys that no call uses any more; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
        return int(cursor.rowcount)


def _just_started() -> bool:
    """Whether the database has just come back, so that no lease could be renewed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp() - pg_postmaster_start_time() < make_interval(secs => %s)",
            [settings.LEASE_S],
        )
        return bool(cursor.fetchone()[0])


@transaction.atomic
def _end(move: Move) -> None:
    if move_now(move):
        notify_on_commit(f"call.{move.id}", "calls")
