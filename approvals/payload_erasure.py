"""Erasing what a call asked and got, so that every proof still holds.

Digests stay, and the entries with them; the bytes go, with every copy of them that the database
has, and the words that people and servers wrote about the call. The database does it by one
function (approvals/sql/erasing.sql), which heeds legal holds; the ledger of erasures is on the disk
before that commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext as _
from psycopg import errors
from psycopg.types.json import Jsonb

from approvals.models import Grant
from audit import erasure_ledger, forgetting
from audit.bodies import EntryReader, forgotten_details
from audit.erasure_ledger import ERASED, RESULT_ERASED, Erasures
from audit.forgetting import Forgettable
from audit.models import Entry, Name
from audit.services import Actor, entry, record_all
from calls.models import Call, Result
from calls.record.states import LIVE
from core.english import gettext as english_gettext
from core.errors import CountersignError

ERASE = """
    SELECT approvals_erase_payload(one.id, one.names, one.kept, %s)
    FROM jsonb_to_recordset(%s) AS one (id uuid, names int[], kept jsonb)
"""
ERASE_RESULTS = "SELECT approvals_erase_result(one, %s) FROM unnest(%s::uuid[]) one"
HOLD = "SELECT calls_hold_of(%s)"
# The call's arguments and its outcome afterwards, as the database writes them.
NOTHING = b"{}"
OUTCOME = english_gettext("Its payload was erased.")


class CannotErase(CountersignError):
    """Nothing was changed; has the reason."""


def is_erased(call_id: UUID) -> bool:
    return Entry.objects.of_call(call_id).filter(action=ERASED).exists()


def find_obstacle(call: Call) -> str:
    """The reason why its payload cannot be erased; "" if it can."""
    if call.state in LIVE:
        return _("The call has not ended.")
    if is_erased(call.pk):
        return _("The payload was erased already.")
    if hold := hold_of(call.pk):
        return _("The call is under legal hold %s.") % hold
    if Grant.objects.filter(call=call).not_ended().exists():
        return _("A standing approval has the arguments of this call: revoke it first.")
    return ""


def hold_of(call_id: UUID) -> int | None:
    """The number of a legal hold that covers the call."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [call_id])
        (hold,) = cursor.fetchone()
    return None if hold is None else int(hold)


def erase(call: Call, *, by: Actor, reason: str) -> None:
    """Raises CannotErase, or OSError or LedgerUnusable where the ledger cannot be written."""
    if obstacle := find_obstacle(call):
        raise CannotErase(obstacle)
    try:
        erase_all([call], by=by, reason=reason)
    except DatabaseError as error:
        # Somebody placed a hold at the same moment, say.
        if isinstance(error.__cause__, errors.RaiseException):
            raise CannotErase(str(error).partition("\n")[0]) from error
        raise


def erase_again(erased: Erasures, *, by: Actor, reason: str) -> int:
    """Repeats erasures of calls in a restored database, in the caller's transaction and as the
    database's owner; returns their number."""
    payloads = _unerased_calls(erased.payloads)
    _erase(payloads, by=by, reason=reason, heed=False)
    results = [
        call
        for call in _unerased_calls(erased.results)
        if Result.objects.filter(pk=call.pk).exists()
    ]
    erase_results(results, by=by, reason=reason, heed=False)
    return len(payloads) + len(results)


def is_still_there(erased: Erasures) -> bool:
    """Does an older database have any of what was erased of calls?"""
    payloads, results = (set(map(UUID, ids)) for ids in (erased.payloads, erased.results))
    kept = Result.objects.filter(pk__in=payloads | results).values_list("pk", flat=True)
    asked = Call.objects.filter(pk__in=payloads).exclude(arguments=NOTHING)
    return bool(_unerased_calls([*asked.values_list("pk", flat=True), *kept]))


def _unerased_calls(calls: Iterable[str | UUID]) -> list[Call]:
    """Those that are there with their payload."""
    found = Call.objects.select_related("agent", "server").filter(pk__in=[*calls])
    return [call for call in found.order_by("pk") if not is_erased(call.pk)]


@transaction.atomic
def erase_all(calls: Sequence[Call], *, by: Actor, reason: str) -> None:
    """Many at once, with one line in the ledger. None may have an obstacle: the database would
    cancel all."""
    _erase(calls, by=by, reason=reason, heed=True)


@transaction.atomic
def erase_results(calls: Sequence[Call], *, by: Actor, reason: str, heed: bool = True) -> None:
    """Erases results alone, as `erase_all` erases payloads."""
    if not calls:
        return
    record_all(_entry(RESULT_ERASED, call, by=by, reason=reason) for call in calls)
    with connection.cursor() as cursor:
        cursor.execute(ERASE_RESULTS, [heed, [call.pk for call in calls]])
    erasure_ledger.add(Erasures(results={str(call.pk) for call in calls}))


@transaction.atomic
def _erase(calls: Sequence[Call], *, by: Actor, reason: str, heed: bool) -> None:
    if not calls:
        return
    worded = forgetting.calls_with_words([call.pk for call in calls])
    words = {pk: forgetting.of_call(pk) for pk in worded}
    rows = EntryReader().rows([pk for one in words.values() for pk in one.entries])
    kept = {pk: forgotten_details(row) for pk, row in rows.items()}
    record_all(_entry(ERASED, call, by=by, reason=reason) for call in calls)
    lines = [_line(call.pk, words.get(call.pk), kept) for call in calls]
    with connection.cursor() as cursor:
        values: Any = [heed, Jsonb(lines)]
        cursor.execute(ERASE, values)
    erasure_ledger.add(
        Erasures(
            names=_commitments(pk for one in words.values() for pk in one.names),
            details={pk: one["commitment"] for pk, one in kept.items()},
            payloads={str(call.pk) for call in calls},
        )
    )


def _line(call_id: UUID, words: Forgettable | None, kept: dict[int, Any]) -> dict[str, Any]:
    """A call as the database's function takes it."""
    words = words or Forgettable()
    own = {str(pk): kept[pk] for pk in words.entries}
    return {"id": str(call_id), "names": list(words.names), "kept": own}


def _entry(action: str, call: Call, *, by: Actor, reason: str) -> Entry:
    return entry(
        action,
        actor=by,
        reason=reason,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        server=call.server.slug if call.server else "",
        tool=call.tool_name,
    )


def _commitments(numbers: Iterable[int]) -> set[str]:
    """Commitments of names that are forgotten by now: other entries contain some of them too."""
    gone = Name.objects.filter(pk__in=[*numbers], salt=None)
    return {bytes(one).hex() for one in gone.values_list("commitment", flat=True)}
