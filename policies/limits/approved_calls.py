"""Room in hard rates, and among calls at the same time, for a pending call that people let run.

When it was requested it was counted as a request. What people approve together would be sent
together, so it is counted once more when it is sent: approved calls have a count of their own in
each rate, and take a place among the calls at the same time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from core.english import gettext as _
from policies.decide import Subject
from policies.limits.budgets import hard, lock_counter
from policies.limits.compiled import CallParties, CompiledLimit, CounterKey
from policies.models import Limit, LimitCounter, LimitUse

_LEASE = "SELECT granted FROM policies_lease(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
# Behind the key of a rate's count: that of its approved calls.
APPROVED = " approved"


class _NoRoom(Exception):
    """A limit has no room; says which."""


class ApprovedCall(NamedTuple):
    id: UUID
    arguments: bytes


def take(call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes) -> str:
    """In the caller's transaction takes what the call needs of all of them, or nothing: then says
    which limit has no room."""
    call = ApprovedCall(call_id, arguments)
    try:
        with transaction.atomic():
            for limit, key in hard(subject, parties, Limit.Kind.CONCURRENCY):
                _take_place(call, limit, key)
            for limit, key in hard(subject, parties, *Limit.RATES):
                _take_uses(call, limit, key)
    except _NoRoom as error:
        return str(error)
    return ""


def find_full(call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes) -> str:
    """Which limit has no room for the call now. Keeps nothing: pages only look."""
    with transaction.atomic():
        why = take(call_id, subject, parties, arguments)
        transaction.set_rollback(True)
    return why


def _take_place(call: ApprovedCall, limit: CompiledLimit, key: CounterKey) -> None:
    counter = lock_counter(limit, key)
    if counter.spent + 1 > limit.amount:
        raise _NoRoom(limit.reached)
    LimitUse.objects.create(counter=counter, call_id=call.id, amount=1)
    LimitCounter.objects.filter(pk=counter.pk).update(spent=counter.spent + 1)


def _take_uses(call: ApprovedCall, limit: CompiledLimit, key: CounterKey) -> None:
    label = _("%(who)s, after approval") % {"who": key.label}
    sent = replace(key, key=key.key + APPROVED, label=label)
    uses = float(len(call.arguments) if limit.counts_bytes else 1)
    counted: list[Any] = [limit.id, sent.key, sent.label, sent.agent_id, sent.person_id]
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, [*counted, uses, uses, limit.emission_s, float(limit.burst)])
        (granted,) = cursor.fetchone()
    if not granted:
        raise _NoRoom(limit.reached)
