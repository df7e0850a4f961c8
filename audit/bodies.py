"""Entries as they are sealed, exported and checked: their rows, the names in them, their leaves."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from audit.models import EntryRow, Name
from audit.verify import Form2, canonical, commitment, commitment_of_name, leaf_hash, microseconds

COLUMNS = (
    "id",
    "at",
    "transaction",
    "action",
    "actor_kind",
    "actor_id",
    "actor",
    "call_id",
    "seq",
    "from_state",
    "to_state",
    "agent_id",
    "agent",
    "person_id",
    "person",
    "server",
    "tool",
    "definition_digest",
    "arguments_digest",
    "result_digest",
    "reason",
    "details",
)
# Columns of a row that hold the number of a name.
NAMED = ("action", "actor", "agent", "person", "tool", "context", "reason")


class StoredName(NamedTuple):
    """A row of Name. Once it is forgotten, `text` is empty and `salt` None."""

    kind: str
    subject: int | None
    text: str
    server: str
    definition: str
    salt: bytes | None
    commitment: bytes

    @property
    def holds(self) -> bool:
        """Is it what its commitment says?"""
        if self.salt is None:
            return True
        said = self.kind, self.subject, self.text, self.server, self.definition
        return commitment_of_name(bytes(self.salt), *said) == bytes(self.commitment)


NOBODY = StoredName("", None, "", "", "", None, b"")


class StoredEntry(NamedTuple):
    """A row of EntryRow; what NAMED says are numbers of `names`."""

    id: int
    at: datetime
    transaction: int
    format: int
    salt: bytes
    call_id: UUID | None
    seq: int | None
    from_state: str
    to_state: str
    action: int
    actor: int | None
    agent: int | None
    person: int | None
    tool: int | None
    context: int | None
    reason: int | None
    arguments: bytes | None
    result: bytes | None
    details: dict[str, Any] | None
    names: Mapping[int, StoredName]

    def numbers(self) -> Iterable[int]:
        return (number for name in NAMED if (number := getattr(self, name)) is not None)

    def name(self, number: int | None) -> StoredName:
        """Of a number that nobody gave: nobody, which is in no leaf."""
        return NOBODY if number is None else self.names.get(number, NOBODY)

    @property
    def did(self) -> str:
        return self.name(self.action).text


class EntryReader:
    """Reads entries by their ids, and remembers the names in them."""

    COLUMNS = StoredEntry._fields[:-1]

    def __init__(self) -> None:
        self.names: dict[int, StoredName] = {}

    def rows(self, ids: Collection[int]) -> dict[int, StoredEntry]:
        """Those that are there, by their ids and in the order of these."""
        return self._named(EntryRow.objects.filter(pk__in=ids))

    def between(self, first: int, last: int) -> dict[int, StoredEntry]:
        return self._named(EntryRow.objects.filter(pk__range=(first, last)))

    def _named(self, found: QuerySet[EntryRow]) -> dict[int, StoredEntry]:
        rows = found.order_by("pk").values_list(*self.COLUMNS)
        read = {row[0]: StoredEntry._make((*row, self.names)) for row in rows}
        wanted = {number for row in read.values() for number in row.numbers()}
        if missing := wanted - self.names.keys():
            names = Name.objects.filter(pk__in=missing).values_list("pk", *StoredName._fields)
            self.names |= {pk: StoredName(*name) for pk, *name in names}
        return read


def read(pk: int) -> StoredEntry:
    return EntryReader().rows([pk])[pk]


def body(row: StoredEntry) -> dict[str, Any]:
    """COLUMNS as plain JSON."""
    actor, agent = row.name(row.agent if row.actor is None else row.actor), row.name(row.agent)
    person, tool = row.name(row.person), row.name(row.tool)
    return {
        "id": row.id,
        "at": moment(row.at),
        # Wider than numbers of JSON that every language reads alike.
        "transaction": str(row.transaction),
        "action": row.did,
        "actor_kind": actor.kind,
        "actor_id": actor.subject,
        "actor": actor.text,
        "call_id": str(row.call_id) if row.call_id else None,
        "seq": row.seq,
        "from_state": row.from_state,
        "to_state": row.to_state,
        "agent_id": agent.subject,
        "agent": agent.text,
        "person_id": person.subject,
        "person": person.text,
        "server": tool.server,
        "tool": tool.text,
        "definition_digest": tool.definition,
        "arguments_digest": bytes(row.arguments or b"").hex(),
        "result_digest": bytes(row.result or b"").hex(),
        "reason": row.name(row.reason).text,
        "details": _context(row) | (row.details or {}),
    }


def _context(row: StoredEntry) -> dict[str, Any]:
    text = row.name(row.context).text
    return dict(json.loads(text)) if text else {}


def leaf(row: StoredEntry) -> bytes:
    """Of a format that is not ours nothing is a leaf."""
    match row.format:
        case 1:
            return leaf_hash(bytes(row.salt), canonical(body(row)))
        case 2:
            return leaf_hash(b"", _form_2(row))
        case _:
            return b""


def _form_2(row: StoredEntry) -> bytes:
    salt, form = bytes(row.salt), Form2()
    form.add_integer("id", row.id)
    form.add_integer("at", microseconds(row.at))
    form.add_integer("transaction", int(row.transaction))
    form.add("call_id", row.call_id.bytes if row.call_id else None)
    form.add_integer("seq", row.seq)
    form.add_text("from_state", row.from_state)
    form.add_text("to_state", row.to_state)
    for name in NAMED:
        number = getattr(row, name)
        form.add(name, None if number is None else bytes(row.name(number).commitment))
    for name, digest in (("arguments", row.arguments), ("result", row.result)):
        form.add(name, commitment(salt, name, bytes(digest)) if digest else None)
    own = commitment(salt, "details", canonical(row.details)) if row.details else None
    form.add("details", own)
    return form.written


def opening(row: StoredEntry) -> dict[str, Any]:
    """What a stranger needs besides the body to compute the leaf (audit/verify.py)."""
    if row.format == 1:
        return {"salt": bytes(row.salt).hex()}
    numbers = {name: getattr(row, name) for name in NAMED}
    names = {name: _opened(row.name(n)) for name, n in numbers.items() if n is not None}
    if row.context is not None:
        names["context"]["text"] = row.name(row.context).text
    return {"format": row.format, "salt": bytes(row.salt).hex(), "names": names}


def _opened(name: StoredName) -> dict[str, Any]:
    if name.salt is None:
        return {"commitment": bytes(name.commitment).hex()}
    return {"salt": bytes(name.salt).hex()}


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
