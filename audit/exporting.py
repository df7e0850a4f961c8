"""Exactly the entries that fit, as a file: written as they are read, a thousand at a time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.utils import timezone

from audit.bodies import EntryReader, StoredEntry, body, opening, readable
from audit.demo import is_demo
from audit.filters import Filters
from audit.finding import Containing, bounds, every
from audit.leaves import in_order, places
from audit.models import Checkpoint, Entry, Export
from audit.names import changed
from audit.services import Actor, record
from audit.tree import Tree
from audit.verify import COLUMNS, DEMO_NOTE
from core.english import gettext as _
from core.text import revealed

SNAPSHOT = "SELECT concat_ws(':', pg_current_snapshot(), pg_current_xact_id_if_assigned())"
# What a spreadsheet takes for a formula, also in the wide forms that some of them read alike.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")


@dataclass(frozen=True, slots=True)
class TransactionSnapshot:
    """The transactions that had ended: PostgreSQL's pg_snapshot, and behind it the transaction that
    asked, if it had written before."""

    ended_below: int
    begun_below: int
    open: frozenset[int]
    own: int

    @classmethod
    def parse(cls, text: str) -> TransactionSnapshot:
        ended_below, begun_below, running, *own = text.split(":")
        return cls(
            int(ended_below),
            int(begun_below),
            frozenset(int(one) for one in running.split(",") if one),
            int(own[0]) if own else 0,
        )

    def has(self, number: int) -> bool:
        if number == self.own or number < self.ended_below:
            return True
        return number < self.begun_below and number not in self.open


@transaction.atomic
def begin(
    filters: Filters,
    form: Export.Format,
    *,
    by: Actor,
    person_id: int,
    state: Export.State = Export.State.DIRECT,
) -> Export:
    """Fix the set: which filters, up to which entry, and of which transactions."""
    query = _absolute(filters)
    within = bounds(filters.since(), filters.until())
    oldest = Entry.objects.order_by("pk").values_list("pk", flat=True).first() or 0
    signed = Checkpoint.objects.first()
    made = Export.objects.create(
        person_id=person_id,
        query=query,
        format=form,
        first_id=max(oldest, within.first),
        last_id=within.newest if within.last is None else min(within.newest, within.last),
        snapshot=_snapshot(),
        size=signed.size if signed else 0,
        checkpoint=signed.note if signed else "",
        state=state,
    )
    record("audit.exported", actor=by, export=made.pk, format=form, filters=query)
    return made


def _absolute(filters: Filters) -> dict[str, str]:
    """Relative times are made absolute: "the last hour" of a download is that of its making."""
    query = dict(filters.given)
    if query.pop("range", "") and (since := filters.since()):
        query["since"] = since.isoformat()
        if until := filters.until():
            query["until"] = until.isoformat()
    return query


def _snapshot() -> str:
    with connection.cursor() as cursor:
        cursor.execute(SNAPSHOT)
        return str(cursor.fetchone()[0])


class Chunk(NamedTuple):
    """The text of some entries; `last_id` is the last that was looked at, `ids` are all of them."""

    last_id: int
    ids: list[int]
    rows: int
    text: str


class ExportContent:
    """The content of an export's file: the same whenever it is made, as long as nothing that is
    in it was forgotten, erased or archived."""

    def __init__(self, export: Export, has: Containing) -> None:
        self.export, self.has = export, has
        self.filters = Filters.read(export.query, ZoneInfo("UTC"))
        self.snapshot = TransactionSnapshot.parse(export.snapshot) if export.snapshot else None
        self.reader = EntryReader()
        self.note, size = export.checkpoint, export.size
        if not self.note and (later := _later_checkpoint(size)):
            self.note, size = later.note, later.size
        self.tree = Tree(size)

    def head(self) -> str:
        match self.export.format:
            case Export.Format.CSV:
                # Spreadsheets read UTF-8 only when told so.
                return "\ufeff" + csv_text([*([[DEMO_NOTE]] if is_demo() else []), list(COLUMNS)])
            case Export.Format.PROOF:
                return _line({"checkpoint": self.note}) if self.note else ""
            case _:
                return _line({"demo": DEMO_NOTE}) if is_demo() else ""

    def chunks(self, *, above: int = -1, last: int | None = None) -> Iterator[Chunk]:
        """A thousand entries at a time, after one id and up to another."""
        within = bounds(self.filters.since(), self.filters.until())
        last = self.export.last_id if last is None else last
        for ids in every(self.filters.without_text(), within, above=above, last=last):
            rows = self._fitting(list(self.reader.rows(ids).values()))
            yield Chunk(ids[-1], ids, len(rows), self._format(rows))

    def _fitting(self, rows: list[StoredEntry]) -> list[StoredEntry]:
        if snapshot := self.snapshot:
            rows = [row for row in rows if snapshot.has(int(row.transaction))]
        if text := self.filters.text:
            calls = self.has({row.call_id for row in rows if row.call_id}, text)
            rows = [row for row in rows if row.call_id in calls]
        return rows

    def _format(self, rows: list[StoredEntry]) -> str:
        match self.export.format:
            case Export.Format.CSV:
                return csv_text([defused(readable(row)) for row in rows])
            case Export.Format.PROOF:
                return "".join(_line(proof) for proof in self._proofs(rows))
            case _:
                return "".join(_line(readable(row)) for row in rows)

    def _proofs(self, rows: list[StoredEntry]) -> Iterator[dict[str, Any]]:
        leaves = places([row.id for row in rows])
        for row in rows:
            index = leaves.get(row.id)
            if index is not None and index < self.export.size:
                yield proof(row, index, self.tree)


def _later_checkpoint(size: int) -> Checkpoint | None:
    """Exports of earlier releases have none of their own. That of their time may have been thinned
    since: a later one proves as well."""
    return Checkpoint.objects.filter(size__gte=size).order_by("size", "-id").first()


class ExportWriter:
    """One download: rows go out as they come in, and how far it is stands in the export."""

    def __init__(self, export: Export, *, by: Actor, has: Containing) -> None:
        self.export, self.by = export, by
        self.content = ExportContent(export, has)
        self.digest = hashlib.sha256()
        self.rows = 0
        self.changed = 0

    def __iter__(self) -> Iterator[bytes]:
        Export.objects.filter(pk=self.export.pk).update(
            rows=0, reached_id=None, finished_at=None, digest=""
        )
        if head := self.content.head():
            yield self._out(head)
        for chunk in self.content.chunks():
            self.changed += len(changed(chunk.ids))
            self.rows += chunk.rows
            if chunk.text:
                yield self._out(chunk.text)
            self._note(chunk.last_id)
        self._end()

    def _out(self, text: str) -> bytes:
        content = text.encode()
        self.digest.update(content)
        return content

    def _note(self, reached: int) -> None:
        Export.objects.filter(pk=self.export.pk).update(rows=self.rows, reached_id=reached)

    @transaction.atomic
    def _end(self) -> None:
        digest = self.digest.hexdigest()
        Export.objects.filter(pk=self.export.pk).update(
            rows=self.rows, finished_at=timezone.now(), digest=digest
        )
        note_written(self.export, self.rows, digest, self.changed, by=self.by)


def note_written(export: Export, rows: int, digest: str, changed: int, *, by: Actor) -> None:
    """`changed`: entries with a name that was changed: others may be missing here."""
    record(
        "audit.export_written",
        actor=by,
        reason=_("%(rows)d entries, SHA-256 %(digest)s.") % {"rows": rows, "digest": digest},
        export=export.pk,
        rows=rows,
        sha256=digest,
        **({"changed": changed} if changed else {}),
    )


def proof(row: StoredEntry, index: int, tree: Tree) -> dict[str, Any]:
    """All that verify.py needs besides the checkpoint of `tree.size`."""
    return {
        "index": index,
        "size": tree.size,
        **opening(row),
        "path": [sibling.hex() for sibling in tree.path(index)],
        "entry": body(row),
    }


def whole_record() -> Iterator[str]:
    """Every checkpoint, then every leaf with its entry, in the order of sealing."""
    size = Checkpoint.objects.values_list("size", flat=True).first() or 0
    for note in Checkpoint.objects.filter(size__lte=size).order_by("id").iterator():
        yield _line({"checkpoint": note.note})
    yield from rest_of_record(0, size)


def rest_of_record(first: int, size: int) -> Iterator[str]:
    """The leaves from `first` on, of a record of `size`."""
    for _ids, lines in chunks_of_record(first, size):
        yield from lines


def chunks_of_record(first: int, size: int) -> Iterator[tuple[list[int], list[str]]]:
    """The same, a thousand at a time: ids of entries, and their lines."""
    tree, leaves, reader = Tree(size), in_order(first, size), EntryReader()
    while chunk := list(islice(leaves, 1000)):
        rows = reader.rows([pk for _, pk in chunk])
        lines = [_line(_whole(index, pk, rows.get(pk), tree)) for index, pk in chunk]
        yield [pk for _, pk in chunk], lines


def _whole(index: int, pk: int, row: StoredEntry | None, tree: Tree) -> dict[str, Any]:
    """One that is gone has its leaf all the same: whoever checks sees which, and the rest holds."""
    if row is None:
        return {"index": index, "entry": None, "gone": pk, "hash": tree.leaf(index).hex()}
    return {"index": index, **opening(row), "entry": body(row)}


def _line(content: dict[str, Any]) -> str:
    # In ASCII: whatever an agent wrote, a terminal that shows this file obeys none of it.
    return json.dumps(content, separators=(",", ":")) + "\n"


def defused(row: dict[str, Any]) -> list[str]:
    return [_cell(value) for value in row.values()]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        # Numbers of ours; and JSON, which begins with a brace.
        return json.dumps(value) if isinstance(value, dict) else str(value)
    shown = revealed(value)
    return f"'{shown}" if shown.lstrip(" ").startswith(FORMULA) else shown


def csv_text(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue()
