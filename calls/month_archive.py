"""A month of calls as a file: zstd, JSONL, with the entries that prove it.

The file is a part of the record, from one checkpoint to another, as audit/verify.py reads it; each
call's row and result stand behind the entries that have their digests. Only a month in which
nothing can happen any more is archived. Removing it drops its two partitions; importing it makes
them again. Entries stay where they are.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import zstandard
from django.db import connection, transaction
from django.utils import timezone

from audit import holds, origins
from audit.exporting import chunks_of_record
from audit.leaves import places
from audit.models import Checkpoint
from audit.services import Actor, record
from audit.signing import keys
from audit.tree import Tree
from audit.verify import check_export, peaks
from calls.record.states import LIVE, State
from core.errors import CountersignError
from core.private_files import sync_folder

FORMAT = 1
ARCHIVED, IMPORTED = "record.archived", "record.imported"
# Calls with their results, and the keys that say of which month a row is.
TABLES = {"calls_call": "id", "calls_result": "call_id"}
# So many rows are put back by one statement.
BATCH = 500

BOUNDS = "SELECT core_first_id(%s), core_first_id(%s)"
OPEN = "SELECT count(*) FROM calls_call WHERE id >= %s AND id < %s AND state = ANY(%s)"
COUNT = "SELECT count(*) FROM calls_call WHERE id >= %s AND id < %s"
# Entries with a digest of a call's content.
WITH_DIGEST = "e.seq IS NOT NULL AND (e.seq = 1 OR e.result IS NOT NULL)"
SPAN = f"""
    SELECT min(e.id), max(e.id) FROM audit_entryrow e
    WHERE e.call_id >= %s AND e.call_id < %s AND {WITH_DIGEST}
"""
# Of these entries those with a digest, and how many such entries their call has.
DIGESTS = f"""
    SELECT o.id, o.call_id,
        (SELECT count(*) FROM audit_entryrow e WHERE e.call_id = o.call_id AND {WITH_DIGEST})
    FROM audit_entryrow o
    WHERE o.id = ANY(%s) AND o.call_id >= %s AND o.call_id < %s
        AND o.seq IS NOT NULL AND (o.seq = 1 OR o.result IS NOT NULL)
"""
CONTENT = """
    SELECT c.id, to_jsonb(c)::text, to_jsonb(r)::text, (
        SELECT min(e.id) FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
        WHERE e.call_id = c.id AND e.seq IS NULL
          AND a.kind = 'action' AND a.text = 'payload.erased')
    FROM calls_call c LEFT JOIN calls_result r ON r.call_id = c.id WHERE c.id = ANY(%s)
"""
# The partition of these ids alone: of the month, or the first one, if it has no earlier rows.
PARTITION = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = %(table)s::regclass
      AND strpos(pg_get_expr(c.relpartbound, c.oid), format('TO (%%L)', %(last)s::text)) > 0
      AND NOT EXISTS (SELECT FROM {table} WHERE {key} < %(first)s)
"""


# A call of the month that a legal hold covers: by its row, or by the names in its entries.
HELD = """
    SELECT c.id FROM calls_call c
    WHERE c.id >= %(first)s AND c.id < %(last)s AND (%(kind)s = 'everything' OR c.id = %(call)s
        OR CASE %(kind)s WHEN 'agent' THEN c.agent_id WHEN 'person' THEN c.person_id END
            = ANY(%(subjects)s))
    UNION ALL
    SELECT e.call_id FROM audit_name n
    JOIN audit_entryrow e ON n.id IN (e.actor, e.agent, e.person)
    WHERE n.kind = %(kind)s AND n.subject = ANY(%(subjects)s)
        AND e.call_id >= %(first)s AND e.call_id < %(last)s
    LIMIT 1
"""


class CannotArchive(CountersignError):
    """Nothing was changed; says why."""


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC, and the ids of its calls."""

    name: str
    first: UUID
    last: UUID
    end: datetime

    @classmethod
    def parse(cls, name: str) -> Month:
        """Raises CannotArchive unless it reads YYYY-MM."""
        try:
            begin = datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC)
        except ValueError as error:
            raise CannotArchive(f"{name} is no month: write YYYY-MM.") from error
        end = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
        first, last = _row(BOUNDS, [begin, end])
        return cls(name, first, last, end)

    @property
    def ids(self) -> list[UUID]:
        return [self.first, self.last]

    def partition(self, table: str) -> str:
        return f"{table}_{self.name.replace('-', '_')}"


def write(month: Month, path: Path) -> dict[str, Any]:
    """Writes and verifies the archive; its facts. Raises CannotArchive or FileExistsError."""
    _check_ended(month)
    first, size = _span(month)
    calls = int(_row(COUNT, month.ids)[0])
    facts = {
        "format": FORMAT,
        "record": origins.name(),
        "month": month.name,
        "first": str(month.first),
        "last": str(month.last),
        "calls": calls,
    }
    if path.exists():
        raise FileExistsError(path)
    draft = path.with_name(f".{path.name}")
    try:
        _pack(draft, _lines(month, facts, first, size))
        check(draft)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return {**facts, "from": first, "to": size, "sha256": digest(path), "file": path.name}


def _pack(path: Path, lines: Iterable[str]) -> None:
    compressor = zstandard.ZstdCompressor(level=9)
    with path.open("wb") as file:
        path.chmod(0o600)
        with compressor.stream_writer(file, closefd=False) as packed:
            for line in lines:
                packed.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def _check_ended(month: Month) -> None:
    if month.end > timezone.now():
        raise CannotArchive(f"{month.name} is not over.")
    waiting = [state.value for state in (*LIVE, State.UNKNOWN)]
    (count,) = _row(OPEN, [*month.ids, waiting])
    if count:
        raise CannotArchive(f"{count} calls of {month.name} are open or unresolved.")


def _check_holds(month: Month) -> None:
    for hold in holds.in_force():
        values: dict[str, Any] = {
            "first": month.first,
            "last": month.last,
            "kind": hold.kind,
            "call": hold.call,
            "subjects": list(hold.subjects),
        }
        with connection.cursor() as cursor:
            cursor.execute(HELD, values)
            if row := cursor.fetchone():
                raise CannotArchive(f"Call {row[0]} is under legal hold {hold}")


def _span(month: Month) -> tuple[int, int]:
    """From the last checkpoint before the month's entries to the first one after them."""
    low, high = _row(SPAN, month.ids)
    if low is None:
        raise CannotArchive(f"There are no calls of {month.name}.")
    found = places([low, high])
    if len(found) < 2:
        raise CannotArchive(f"Entries of {month.name} are not sealed yet.")
    signed = Checkpoint.objects.order_by("size").values_list("size", flat=True)
    before = signed.filter(size__lte=found[low]).last() or 0
    after = signed.filter(size__gt=found[high]).first()
    if after is None:
        raise CannotArchive(f"Entries of {month.name} are not signed yet.")
    return before, after


def _lines(month: Month, facts: dict[str, Any], first: int, size: int) -> Iterator[str]:
    part = Checkpoint.objects.filter(size__gt=first, size__lte=size).order_by("id")
    yield _line(
        {
            "archive": facts,
            "start": first,
            "peaks": [peak.hex() for peak in _peaks(first)],
            "origin": origins.at(first),
        }
    )
    for note in part.values_list("note", flat=True):
        yield _line({"checkpoint": note})
    left: Counter[UUID] = Counter()
    for ids, lines in chunks_of_record(first, size):
        complete = dict(_complete(ids, month, left))
        contents = _contents(complete.values())
        for pk, line in zip(ids, lines, strict=True):
            yield line
            if pk in complete:
                yield contents[complete[pk]]


def _peaks(size: int) -> list[bytes]:
    levels = Tree(size).right_edge().levels
    return [peak for hashes in reversed(levels) for peak in peaks(hashes)]


def _complete(ids: list[int], month: Month, left: Counter[UUID]) -> Iterator[tuple[int, UUID]]:
    """The entries that are the last with a digest of their call. `left`: how many are to come."""
    with connection.cursor() as cursor:
        cursor.execute(DIGESTS, [ids, *month.ids])
        found = {pk: (call, count) for pk, call, count in cursor.fetchall()}
    for pk in ids:
        if pk in found:
            call, count = found[pk]
            left[call] = left.get(call, count) - 1
            if not left[call]:
                del left[call]
                yield pk, call


def _contents(calls: Iterable[UUID]) -> dict[UUID, str]:
    with connection.cursor() as cursor:
        cursor.execute(CONTENT, [list(calls)])
        return {
            pk: f'{{"call":{call},"result":{result or "null"}{_erased(entry)}}}\n'
            for pk, call, result, entry in cursor.fetchall()
        }


def _erased(entry: int | None) -> str:
    return f',"erased":{entry}' if entry else ""


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":")) + "\n"


def check(path: Path) -> dict[str, Any]:
    """The archive's facts, when it is this record's and verified. Raises CannotArchive."""
    try:
        facts = dict(json.loads(next(read(path)))["archive"])
        found = check_export(read(path), keys())
    except (OSError, ValueError, LookupError, TypeError, zstandard.ZstdError) as error:
        raise CannotArchive(f"{path} cannot be read as an archive: {error!r}") from error
    except StopIteration as error:
        raise CannotArchive(f"{path} is empty.") from error
    if found.wrong:
        raise CannotArchive(f"{path}: {found.wrong[0]}")
    if not found.checkpoints:
        raise CannotArchive(f"{path}: no checkpoint signs it.")
    return facts


def read(path: Path) -> Iterator[str]:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as packed:
        yield from io.TextIOWrapper(packed, "utf-8")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@transaction.atomic
def remove(month: Month, facts: dict[str, Any], *, by: Actor) -> None:
    """Drops the month's partitions, with an entry. As the database's owner; raises
    CannotArchive."""
    _check_ended(month)
    _check_holds(month)
    with connection.cursor() as cursor:
        for table in TABLES:
            part = _partition(cursor, month, table)
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {part}")
            cursor.execute(f"SELECT count(*) FROM {part}")
            (count,) = cursor.fetchone()
            if table == "calls_call" and count != facts["calls"]:
                raise CannotArchive(f"{part} has {count} calls, and the archive {facts['calls']}.")
            cursor.execute(f"DROP TABLE {part}")
    record(ARCHIVED, actor=by, **facts)


def _partition(cursor: Any, month: Month, table: str) -> str:
    values = {"table": table, "first": month.first, "last": str(month.last)}
    cursor.execute(PARTITION.format(table=table, key=TABLES[table]), values)
    if (row := cursor.fetchone()) is None:
        raise CannotArchive(f"{table} has no partition of {month.name} alone.")
    return str(row[0])


@transaction.atomic
def put_back(month: Month, path: Path, *, by: Actor) -> int:
    """Makes the partitions of an archive that was checked; how many calls they have. As the
    database's owner. Raises CannotArchive."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute("SELECT to_regclass(%s)", [month.partition(table)])
            if cursor.fetchone() != (None,):
                raise CannotArchive(f"{month.partition(table)} is there already.")
            cursor.execute(f"CREATE TABLE {month.partition(table)} (LIKE {table} INCLUDING ALL)")
        count = _put_rows(cursor, month, path)
        for table in TABLES:
            part = month.partition(table)
            cursor.execute("SELECT core_guard_partition(%s, %s)", [table, part])
            cursor.execute(
                f"ALTER TABLE {table} ATTACH PARTITION {part}"
                f" FOR VALUES FROM ('{month.first}') TO ('{month.last}')"
            )
    record(IMPORTED, actor=by, month=month.name, calls=count, sha256=digest(path))
    return count


def _put_rows(cursor: Any, month: Month, path: Path) -> int:
    waiting: dict[str, list[str]] = {table: [] for table in TABLES}
    count = 0
    for line in read(path):
        if not line.startswith('{"call":'):
            continue
        content, count = json.loads(line), count + 1
        for table, member in zip(TABLES, ("call", "result"), strict=True):
            if content[member] is not None:
                waiting[table].append(json.dumps(content[member]))
        if count % BATCH == 0:
            _insert(cursor, month, waiting)
    _insert(cursor, month, waiting)
    return count


def _insert(cursor: Any, month: Month, waiting: dict[str, list[str]]) -> None:
    for table, rows in waiting.items():
        part = month.partition(table)
        cursor.execute(
            f"INSERT INTO {part} SELECT (jsonb_populate_record(NULL::{part}, one)).*"
            " FROM unnest(%s::jsonb[]) one",
            [rows],
        )
        rows.clear()


def _row(query: str, values: list[Any]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return tuple(cursor.fetchone())
