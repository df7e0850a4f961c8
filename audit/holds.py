"""Legal holds: while one is in force, nothing that it covers is forgotten.

A hold is an entry, and so is its end, so no table could say otherwise. It names calls, and agents
and people by their ids, which stay when names are forgotten. Only the database's owner places one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from audit.models import Entry
from audit.services import Actor, record
from core.errors import CountersignError

PLACED, LIFTED = "record.hold_placed", "record.hold_lifted"
EVERYTHING = "everything"

# An entry that is to lose names or details, and that a hold covers.
COVERED = """
    SELECT r.id FROM audit_entryrow r
    WHERE (r.id = ANY(%(entries)s) OR r.reason = ANY(%(names)s) OR r.actor = ANY(%(names)s)
        OR r.agent = ANY(%(names)s) OR r.person = ANY(%(names)s))
      AND (%(everything)s OR r.call_id = %(call)s::uuid OR EXISTS (
        SELECT FROM audit_name n WHERE n.id IN (r.actor, r.agent, r.person)
          AND n.kind = %(kind)s AND n.subject = ANY(%(subjects)s)))
    ORDER BY 1 LIMIT 1
"""


class OnHold(CountersignError):
    """A hold covers what is to be forgotten."""


@dataclass(frozen=True, slots=True)
class Hold:
    """`number` is that of its entry. `kind`: "everything", "call", "agent" or "person"."""

    number: int
    kind: str
    call: UUID | None
    subjects: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        what = self.call or ", ".join(map(str, self.subjects))
        return f"{self.number}: {self.kind} {what}".rstrip() + f". {self.reason}"


def place(
    kind: str, *, by: Actor, reason: str, call: UUID | None = None, subjects: Collection[int] = ()
) -> int:
    """Returns the hold's number. Only the database's owner may place one."""
    known = {"call": str(call)} if call else {}
    made = record(PLACED, actor=by, reason=reason, kind=kind, subjects=sorted(subjects), **known)
    return int(made.pk)


def lift(number: int, *, by: Actor, reason: str) -> bool:
    """False where no such hold is in force."""
    if number not in [hold.number for hold in in_force()]:
        return False
    record(LIFTED, actor=by, reason=reason, hold=number)
    return True


def in_force() -> list[Hold]:
    ended = set(Entry.objects.filter(action=LIFTED).values_list("details__hold", flat=True))
    placed = Entry.objects.filter(action=PLACED).order_by("id")
    return [_hold(entry) for entry in placed if entry.pk not in ended]


def _hold(entry: Entry) -> Hold:
    said = entry.details
    call = UUID(said["call"]) if "call" in said else None
    return Hold(entry.pk, said["kind"], call, tuple(said["subjects"]), entry.reason)


def check(names: Collection[int], entries: Collection[int]) -> None:
    """Raises OnHold where a hold covers an entry that would lose these names or details."""
    for hold in in_force():
        values: dict[str, Any] = {
            "names": list(names),
            "entries": list(entries),
            "everything": hold.kind == EVERYTHING,
            "call": hold.call,
            "kind": hold.kind,
            "subjects": list(hold.subjects),
        }
        with connection.cursor() as cursor:
            cursor.execute(COVERED, values)
            if row := cursor.fetchone():
                raise OnHold(f"Entry {row[0]} is under legal hold {hold}")
