"""Entries as they are sealed, exported and checked: their rows, the names in them, their leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from audit.clock import as_datetime
from audit.models import Name
from audit.verify import (
    DETAILS_FORGOTTEN,
    HASH,
    Form2,
    canonical,
    commitment_of,
    commitment_of_name,
    leaf_hash,
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


class NameCache(dict[int, StoredName]):
    """Names by their numbers, as far as they were read; and what was made of them."""

    def __init__(self) -> None:
        super().__init__()
        # Numbers that entries bear, and that nobody gave.
        self.absent: set[int] = set()
        # The bytes of a leaf's fields that many entries have in common (`_common_fields`).
        self.fields: dict[tuple[Any, ...], bytes] = {}


class StoredEntry(NamedTuple):
    """A row of EntryRow; what NAMED says are numbers of `names`."""

    id: int
    # In microseconds since 1970; a time that no clock shows is the nearest that one could.
    written: int
    # A number, as text.
    transaction: str
    format: int
    # None once the details were forgotten: then they are what `forgotten_details` made of them.
    salt: bytes | None
    # 16 bytes.
    call: bytes | None
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
    # JSON, as PostgreSQL writes it.
    details_text: str | None
    names: NameCache

    @property
    def at(self) -> datetime:
        return as_datetime(self.written)

    @property
    def call_id(self) -> UUID | None:
        return UUID(bytes=self.call) if self.call else None

    @property
    def details(self) -> dict[str, Any] | None:
        said: dict[str, Any] | None = json.loads(self.details_text or "null")
        return said

    def numbers(self) -> Iterable[int]:
        return (number for number in _numbers(self) if number is not None)

    def name(self, number: int | None) -> StoredName:
        """The name with this number; NOBODY for no number, or an unknown one."""
        return NOBODY if number is None else self.names.get(number, NOBODY)

    def shown(self, number: int | None) -> StoredName:
        """The name to show; of a forgotten one nothing, whatever its row says."""
        name = self.name(number)
        return NOBODY if name.salt is None else name

    @property
    def did(self) -> str:
        return self.shown(self.action).text


_FIELDS = StoredEntry._fields
_LAST = _FIELDS.index(NAMED[-1]) + 1
_numbers: Callable[[StoredEntry], tuple[int | None, ...]]
_numbers = itemgetter(slice(_FIELDS.index(NAMED[0]), _LAST))
_common: Callable[[StoredEntry], tuple[Any, ...]]
_common = itemgetter(slice(_FIELDS.index("seq"), _LAST))

# Times as numbers, calls as bytes, details as text: what most readers need is quick to make.
READ = """
    SELECT id,
        (extract(epoch FROM greatest(least(at, '9999-12-31Z'), '0001-01-02Z')) * 1000000)::bigint,
        transaction::text, format, salt, uuid_send(call_id), seq, from_state, to_state,
        action, actor, agent, person, tool, context, reason, arguments, result, details::text
    FROM audit_entryrow WHERE {} ORDER BY id
"""


class EntryReader:
    """Reads entries by their ids, and remembers the names in them."""

    # So many names, or kinds of entries, are remembered: a sentence that one entry alone has is no
    # reason to.
    CACHED_MAX = 100_000

    def __init__(self) -> None:
        self.names = NameCache()

    def rows(self, ids: Collection[int]) -> dict[int, StoredEntry]:
        """The existing entries among these ids, by id and in their order."""
        return self._named("id = ANY(%s)", [list(ids)])

    def of_call(self, call_id: UUID) -> dict[int, StoredEntry]:
        return self._named("call_id = %s", [call_id])

    def _named(self, those: str, values: list[Any]) -> dict[int, StoredEntry]:
        if max(len(self.names), len(self.names.fields)) > self.CACHED_MAX:
            self.names = NameCache()
        with connection.cursor() as cursor:
            cursor.execute(READ.format(those), values)
            read = {row[0]: StoredEntry._make((*row, self.names)) for row in cursor.fetchall()}
        self._read_names({number for row in read.values() for number in _numbers(row)})
        return read

    def _read_names(self, numbers: set[int | None]) -> None:
        given = {number for number in numbers if number is not None}
        if unknown := given - self.names.keys() - self.names.absent:
            found = Name.objects.filter(pk__in=unknown).values_list("pk", *StoredName._fields)
            self.names.update((pk, StoredName(*name)) for pk, *name in found)
            self.names.absent |= unknown
            self.names.absent -= self.names.keys()


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
    """The leaf of an entry; empty for an unknown format."""
    match row.format:
        case 1:
            return leaf_hash(bytes(row.salt or b""), canonical(body(row)))
        case 2:
            return leaf_hash(b"", _form_2(row))
        case _:
            return b""


def _tagged(name: str, length: int) -> bytes:
    """How a field begins whose value has so many bytes."""
    return Form2.TAGS[name] + length.to_bytes(4, "big")


# Form2 with the fields that each entry has, in one go: a million entries are a million leaves.
_INTEGERS = Struct(">5sq5sq5sq")
_ID, _AT, _TRANSACTION = (_tagged(name, 8) for name in ("id", "at", "transaction"))
_CALL = _tagged("call_id", 16)
_ARGUMENTS, _RESULT, _DETAILS = (_tagged(name, HASH) for name in ("arguments", "result", "details"))


def _form_2(row: StoredEntry) -> bytes:
    fields = row.names.fields
    if (common := fields.get(key := _common(row))) is None:
        common = fields[key] = _common_fields(row)
    form = _INTEGERS.pack(_ID, row.id, _AT, row.written, _TRANSACTION, int(row.transaction))
    form = Form2.HEAD + form + (_CALL + row.call if row.call else b"") + common
    if row.arguments:
        form += _ARGUMENTS + commitment_of(_salt(row, "arguments"), row.arguments)
    if row.result:
        form += _RESULT + commitment_of(_salt(row, "result"), row.result)
    details = _of_details(row)
    if details is None:
        return form
    if len(details) == HASH:
        return form + _DETAILS + details
    return form + _tagged("details", len(details)) + details


def _common_fields(row: StoredEntry) -> bytes:
    form = Form2()
    form.add_integer("seq", row.seq)
    form.add_text("from_state", row.from_state)
    form.add_text("to_state", row.to_state)
    for name in NAMED:
        number = getattr(row, name)
        form.add(name, None if number is None else bytes(row.name(number).commitment))
    return form.written.removeprefix(Form2.HEAD)


@lru_cache(4096)
def _canonical(details: str) -> bytes:
    """Canonical bytes of stored JSON; cached where many entries share it."""
    return canonical(json.loads(details))


def _salt(row: StoredEntry, field: str) -> bytes:
    if row.salt is not None:
        return salt_of(bytes(row.salt), field)
    return bytes.fromhex((row.details or {}).get(field, ""))


def _of_details(row: StoredEntry) -> bytes | None:
    if row.salt is None:
        return bytes.fromhex((row.details or {}).get("commitment", ""))
    text = row.details_text
    if not text or text == "{}":
        return None
    return commitment_of(_salt(row, "details"), _canonical(text))


def forgotten_details(row: StoredEntry) -> dict[str, str]:
    """The details that remain of forgotten ones: their commitment, and the salts of the other
    fields."""
    kept = {field: _salt(row, field).hex() for field in ("arguments", "result")}
    return {**kept, "commitment": (_of_details(row) or b"").hex()}


def opening(row: StoredEntry) -> dict[str, Any]:
    """The salts and commitments that a stranger needs, besides the body, to compute the leaf
    (audit/verify.py)."""
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
