"""Results as servers sent them, where cleaning changed or blocked them: sealed, for some days."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from audit.services import SYSTEM, record
from calls.models import Call, ReceivedResult
from core import seal
from core.journal import Statement
from core.seal import Unsealable
from core.sealed_fields import SealedField
from inspection.json_text import strings

PURPOSE = "received result"
# The member of a line that ends a call.
MEMBER = "received"
# Of one page.
MOST_CHANGES, SHOWN, SAME_SHOWN = 200, 20_000, 200

# Before the move of the same transaction, as calls/content/large_results.py has it.
KEEP = Statement(
    "keep received",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, received text, kept_s float)
), running AS MATERIALIZED (
    SELECT c.id, decode(a.received, 'base64') AS sealed, a.kept_s
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence
    WHERE c.id BETWEEN %s AND %s AND c.state = 'running' FOR UPDATE OF c
)
INSERT INTO calls_receivedresult (call_id, sealed, kept_until)
SELECT id, sealed, clock_timestamp() + make_interval(secs => kept_s) FROM running
ON CONFLICT DO NOTHING
RETURNING call_id
""",
    order=1,
    bounded=True,
)
EXPIRE = """
DELETE FROM calls_receivedresult WHERE call_id IN (
    SELECT r.call_id FROM calls_receivedresult r
    WHERE r.kept_until < clock_timestamp() AND calls_hold_of(r.call_id) IS NULL
    ORDER BY r.kept_until LIMIT 1000)
"""


class TextChange(NamedTuple):
    """A text of the result. `name`: of its member; empty strings where one side has none.
    `skipped` and `rest`: characters that are not shown, before and after."""

    name: str
    received: str
    passed: str
    skipped: int = 0
    rest: int = 0

    def shortened(self) -> TextChange:
        """A part that begins shortly before the first difference."""
        longest = max(len(self.received), len(self.passed))
        if longest <= SHOWN:
            return self
        pairs = enumerate(zip_longest(self.received, self.passed))
        differs_at = next((n for n, (came, went) in pairs if came != went), 0)
        start = max(differs_at - SAME_SHOWN, 0)
        end = start + SHOWN
        received, passed = self.received[start:end], self.passed[start:end]
        return TextChange(self.name, received, passed, start, max(longest - end, 0))


def sealed(call_id: UUID, body: bytes) -> str:
    """The sealed result in base 64, for a line of the journal."""
    return b64encode(seal.seal(PURPOSE, body, place=_place_of(call_id))).decode()


def lines_of(line: Mapping[str, Any]) -> list[tuple[Statement, dict[str, Any]]]:
    """A line beside the one that ends the call; none where nothing is to be kept."""
    if MEMBER not in line:
        return []
    kept = {name: line[name] for name in ("id", "fence", MEMBER)}
    return [(KEEP, kept | {"kept_s": settings.RECEIVED_RESULTS_DAYS * 86400})]


def is_kept(call: Call) -> bool:
    return ReceivedResult.objects.filter(pk=call.pk, kept_until__gt=timezone.now()).exists()


def look_at(call: Call, *, by: User) -> bytes | None:
    """The result as its server sent it; each look is an entry. None when it is no longer kept."""
    row = ReceivedResult.objects.filter(pk=call.pk, kept_until__gt=timezone.now()).first()
    if row is None:
        return None
    try:
        body = seal.unseal(PURPOSE, bytes(row.sealed), place=_place(row))
    except Unsealable:
        return None
    record(
        "received_result.viewed",
        actor=by.actor,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        server=call.server.slug if call.server else "",
        tool=call.tool_name,
    )
    return body


def changes(received: bytes, passed: bytes) -> Iterator[TextChange]:
    """The texts that differ, in the order of the document. Cleaning leaves their number."""
    # A text that is bytes before may be none after, and a skipped one would shift all that follow.
    both = [strings(body.decode(), with_bytes=True) for body in (received, passed)]
    pairs = zip_longest(*both)
    for came, went in pairs:
        before, after = came.text if came else "", went.text if went else ""
        if before != after:
            yield TextChange((went or came).name, before, after)


def may_expire() -> bool:
    """Has this process's database role that right?"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('calls_receivedresult', 'DELETE')")
        return bool(cursor.fetchone() == (True,))


@transaction.atomic
def expire() -> int:
    """Removes those past their time, at most a thousand, and returns their number."""
    with connection.cursor() as cursor:
        cursor.execute(EXPIRE)
        count = int(cursor.rowcount)
    if count:
        record("received_results.expired", actor=SYSTEM, count=count)
    return count


def _place(row: Any) -> str:
    return _place_of(row.pk)


def _place_of(call_id: UUID) -> str:
    return f"calls_receivedresult|{call_id}"


SEALED = (SealedField(ReceivedResult, "sealed", PURPOSE, _place),)
