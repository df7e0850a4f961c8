"""Entries as they are sealed, exported and checked: their rows, the names in them, their leaves."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from audit.models import EntryRow, Name
from audit.verify import (
    DETAILS_FORGOTTEN,
    HASH,
    Form2,
    canonical,
    commitment_of,
    commitment_of_name,
    leaf_hash,
    microseconds,
    moment,
    salt_of,
)

# Where a name was (audit/sql/entries.sql says it too).
FORGOTTEN = "(forgotten)"
# Columns of a row that hold the number of a name.
NAMED = ("action", "actor", "agent", "person", "tool", "context", "reason")


class StoredName(NamedTuple):
    """A row of Name. Once it is forgotten, `salt` is None, and nothing is left but its kind."""

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
            # A commitment of any other length could stand for more fields than its own.
            if len(self.commitment) != HASH:
                return False
            return (self.subject, self.text, self.server, self.definition) == (None, "", "", "")
        said = self.kind, self.subject, self.text, self.server, self.definition
        return commitment_of_name(bytes(self.salt), *said) == bytes(self.commitment)


NOBODY = StoredName("", None, "", "", "", None, b"")


class StoredEntry(NamedTuple):
    """A row of EntryRow; what NAMED says are numbers of `names`."""

    id: int
    at: datetime
    transaction: int
    format: int
    # None once the details were forgotten: then they are what `forgotten_details` made of them.
    salt: bytes | None
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

    def shown(self, number: int | None) -> StoredName:
        """What is said of it: of one that was forgotten nothing, whatever its row says."""
        name = self.name(number)
        return NOBODY if name.salt is None else name

    @property
    def did(self) -> str:
        return self.shown(self.action).text


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

    def of_call(self, call_id: UUID) -> dict[int, StoredEntry]:
        return self._named(EntryRow.objects.filter(call_id=call_id))

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
    actor, agent = row.shown(row.agent if row.actor is None else row.actor), row.shown(row.agent)
    person, tool = row.shown(row.person), row.shown(row.tool)
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
        "reason": row.shown(row.reason).text,
        "details": _context(row) | _own_details(row),
    }


def readable(row: StoredEntry) -> dict[str, Any]:
    """The same for people: what was forgotten says so."""
    named = {
        "actor": row.agent if row.actor is None else row.actor,
        "agent": row.agent,
        "person": row.person,
        "reason": row.reason,
    }
    gone = {
        column: FORGOTTEN
        for column, number in named.items()
        if number is not None and row.name(number).salt is None
    }
    return body(row) | gone


def _own_details(row: StoredEntry) -> dict[str, Any]:
    return dict(DETAILS_FORGOTTEN) if row.salt is None else row.details or {}


def _context(row: StoredEntry) -> dict[str, Any]:
    text = row.shown(row.context).text
    return dict(json.loads(text)) if text else {}


def leaf(row: StoredEntry) -> bytes:
    """Of a format that is not ours nothing is a leaf."""
    match row.format:
        case 1:
            return leaf_hash(bytes(row.salt or b""), canonical(body(row)))
        case 2:
            return leaf_hash(b"", _form_2(row))
        case _:
            return b""


def _form_2(row: StoredEntry) -> bytes:
    form = Form2()
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
        form.add(name, commitment_of(_salt(row, name), bytes(digest)) if digest else None)
    form.add("details", _of_details(row))
    return form.written


def _salt(row: StoredEntry, field: str) -> bytes:
    if row.salt is not None:
        return salt_of(bytes(row.salt), field)
    return bytes.fromhex((row.details or {}).get(field, ""))


def _of_details(row: StoredEntry) -> bytes | None:
    if row.salt is None:
        return bytes.fromhex((row.details or {}).get("commitment", ""))
    return commitment_of(_salt(row, "details"), canonical(row.details)) if row.details else None


def forgotten_details(row: StoredEntry) -> dict[str, str]:
    """What stays in the place of its details: their commitment, and the salts of the others."""
    kept = {field: _salt(row, field).hex() for field in ("arguments", "result")}
    return {**kept, "commitment": (_of_details(row) or b"").hex()}


def opening(row: StoredEntry) -> dict[str, Any]:
    """What a stranger needs besides the body to compute the leaf (audit/verify.py)."""
    if row.format == 1:
        return {"salt": bytes(row.salt or b"").hex()}
    numbers = {name: getattr(row, name) for name in NAMED}
    names = {name: _opened(row.name(n)) for name, n in numbers.items() if n is not None}
    if row.context is not None:
        names["context"]["text"] = row.shown(row.context).text
    made = {"salt": bytes(row.salt).hex()} if row.salt is not None else {"salts": row.details}
    return {"format": row.format, **made, "names": names}


def _opened(name: StoredName) -> dict[str, Any]:
    if name.salt is None:
        return {"commitment": bytes(name.commitment).hex()}
    return {"salt": bytes(name.salt).hex()}
