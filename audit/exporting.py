"""Exactly the entries that fit, as a file: written as they are read, a thousand at a time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from audit.bodies import EntryReader, StoredEntry, body, opening, readable
from audit.demo import is_demo
from audit.filters import Filters
from audit.finding import Containing, bounds, containing, every
from audit.leaves import in_order, places
from audit.models import Checkpoint, Entry, Export
from audit.names import changed
from audit.services import Actor, record
from audit.tree import Tree
from audit.verify import COLUMNS, DEMO_NOTE
from core.english import gettext as _
from core.text import revealed

# What a spreadsheet takes for a formula, also in the wide forms that some of them read alike.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")


@transaction.atomic
def begin(filters: Filters, form: Export.Format, *, by: Actor, person_id: int) -> Export:
    """Fix the set: which filters, and up to which entry."""
    newest, oldest = Entry.objects.order_by("-pk").first(), Entry.objects.order_by("pk").first()
    # Relative times are made absolute: "the last hour" of a download is that of its making.
    query = dict(filters.given)
    if query.pop("range", "") and (since := filters.since()):
        query["since"] = since.isoformat()
        if until := filters.until():
            query["until"] = until.isoformat()
    made = Export.objects.create(
        person_id=person_id,
        query=query,
        format=form,
        first_id=oldest.pk if oldest else 0,
        last_id=newest.pk if newest else 0,
        size=Checkpoint.objects.values_list("size", flat=True).first() or 0,
    )
    record("audit.exported", actor=by, export=made.pk, format=form, filters=query)
    return made


class ExportWriter:
    """One download: rows go out as they come in, and how far it is stands in the export."""

    def __init__(self, export: Export, *, by: Actor, has: Containing) -> None:
        self.export, self.by, self.has = export, by, has
        self.filters = Filters.read(export.query, ZoneInfo("UTC"))
        self.digest = hashlib.sha256()
        self.reader = EntryReader()
        self.rows = 0
        self.changed = 0

    def __iter__(self) -> Iterator[bytes]:
        Export.objects.filter(pk=self.export.pk).update(
            rows=0, reached_id=None, finished_at=None, digest=""
        )
        if head := self._head():
            yield self._out(head)
        within = bounds(self.filters.since(), self.filters.until())
        for chunk in every(self.filters.without_text(), within, last=self.export.last_id):
            self.changed += len(changed([entry.pk for entry in chunk]))
            rows = containing(chunk, self.filters.text, self.has) if self.filters.text else chunk
            self.rows += len(rows)
            if rows:
                yield self._out(self._format(rows))
            self._note(chunk[-1].pk)
        self._end()

    def _out(self, text: str) -> bytes:
        content = text.encode()
        self.digest.update(content)
        return content

    def _head(self) -> str:
        match self.export.format:
            case Export.Format.CSV:
                # Spreadsheets read UTF-8 only when told so.
                return "\ufeff" + csv_text([*([[DEMO_NOTE]] if is_demo() else []), list(COLUMNS)])
            case Export.Format.PROOF:
                # That of its time may have been thinned since: a later one proves it as well.
                later = Checkpoint.objects.filter(size__gte=self.export.size)
                note = later.order_by("size", "-id").first()
                self.tree = Tree(note.size if note else self.export.size)
                return _line({"checkpoint": note.note}) if note else ""
            case _:
                return _line({"demo": DEMO_NOTE}) if is_demo() else ""

    def _format(self, entries: list[Entry]) -> str:
        rows = list(self.reader.rows([entry.pk for entry in entries]).values())
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

    def _note(self, reached: int) -> None:
        Export.objects.filter(pk=self.export.pk).update(rows=self.rows, reached_id=reached)

    @transaction.atomic
    def _end(self) -> None:
        digest = self.digest.hexdigest()
        Export.objects.filter(pk=self.export.pk).update(
            rows=self.rows, finished_at=timezone.now(), digest=digest
        )
        record(
            "audit.export_written",
            actor=self.by,
            reason=_("%(rows)d entries, SHA-256 %(digest)s.")
            % {"rows": self.rows, "digest": digest},
            export=self.export.pk,
            rows=self.rows,
            sha256=digest,
            # Entries with a name that was changed: others may be missing here.
            **({"changed": self.changed} if self.changed else {}),
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
