"""The ledger of erasures: a file beside the database, and in no backup of it.

A restore reads it and erases again what an older backup still has. It holds commitments and ids,
which disclose nothing. Each line is on the disk before the database commits the erasure, so the
ledger may be ahead of the database and is never behind it. A second line says that it committed.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import DataError, connection, transaction

from audit import origins, position
from core.errors import CountersignError
from core.private_files import sync_folder

log = logging.getLogger(__name__)

# The first line names the record that the ledger belongs to.
HEAD = "record"
# In which database it was erased, and by which attempt: a line of its own says that this committed.
# One that broke off, or that the database lost in a crash, erased nothing.
BEGUN = "begun"
COMMITTED = "committed"
# Lines of earlier releases name their transaction, whose number goes to another one after a crash.
WRITTEN_IN = "in"
PLACE = f"SELECT {position.PLACE} FROM pg_control_system()"
STATUS = "SELECT pg_xact_status(%s::xid8)"
# What an older database lacks stands at the end.
TAIL = 256 * 1024
NAMES = "SELECT encode(commitment, 'hex') FROM audit_name WHERE salt IS NULL"
DETAILS = "SELECT id, details ->> 'commitment' FROM audit_entryrow WHERE salt IS NULL"
# Entries of calls whose payload was erased.
ERASED = "payload.erased"
# Of calls that lost their result alone.
RESULT_ERASED = "result.erased"
CALLS = """
    SELECT DISTINCT e.call_id::text FROM audit_entryrow e
    WHERE e.action IN (SELECT id FROM audit_name WHERE kind = 'action' AND text = %s)
"""


class LedgerUnusable(CountersignError):
    """No ledger is there, it cannot be read, or it belongs to another record."""


@dataclass(slots=True)
class Erasures:
    """Commitments of names, those of details by the id of their entry, calls without their payload,
    and calls without their result."""

    names: set[str] = field(default_factory=set)
    details: dict[int, str] = field(default_factory=dict)
    payloads: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def without(self, known: Erasures) -> Erasures:
        new = {pk: one for pk, one in self.details.items() if known.details.get(pk) != one}
        return Erasures(
            self.names - known.names,
            new,
            self.payloads - known.payloads,
            self.results - known.results,
        )

    def __bool__(self) -> bool:
        return bool(self.names or self.details or self.payloads or self.results)


@dataclass(frozen=True, slots=True)
class Erasure:
    """One line of this database. `attempt` is a transaction's number where an earlier release wrote
    it, which did not write whether it committed."""

    place: str
    attempt: str | int
    erased: Erasures
    is_committed: bool

    def took_place(self) -> bool:
        return self.is_committed or (isinstance(self.attempt, int) and took_place(self.attempt))

    def confirm(self) -> None:
        if isinstance(self.attempt, str) and not self.is_committed:
            _confirm(location(), (self.place, self.attempt))


def joined(many: Iterable[Erasures]) -> Erasures:
    all_of_them = Erasures()
    for one in many:
        all_of_them.names |= one.names
        all_of_them.details |= one.details
        all_of_them.payloads |= one.payloads
        all_of_them.results |= one.results
    return all_of_them


def location() -> Path:
    return Path(settings.ERASURE_LEDGER)


def read(path: Path) -> Erasures:
    """Raises LedgerUnusable."""
    return joined(map(_erasures, _lines(path)))


def _erasures(line: Mapping[str, Any]) -> Erasures:
    return Erasures(
        names=set(line.get("names", ())),
        details={int(pk): one for pk, one in line.get("details", {}).items()},
        payloads=set(line.get("payloads", ())),
        results=set(line.get("results", ())),
    )


def newest() -> list[Erasure]:
    """The last erasures of this database; none without a ledger of its own. Raises
    LedgerUnusable."""
    path = location()
    if not path.exists() or record_of(path) != origins.name():
        return []
    ((place,),) = _rows(PLACE)
    return _of_place(place, [json.loads(line) for line in _last_lines(path)])


def _of_place(place: str, lines: Iterable[Mapping[str, Any]]) -> list[Erasure]:
    found, committed = [], set()
    for line in lines:
        for key in (COMMITTED, BEGUN, WRITTEN_IN):
            where, attempt = line.get(key, ("", 0))
            if where != place:
                continue
            if key == COMMITTED:
                committed.add(attempt)
            else:
                found.append((attempt, _erasures(line)))
    return [Erasure(place, one, erased, one in committed) for one, erased in found]


def _last_lines(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - TAIL)
        file.seek(begin)
        # The first is the head, or a part of a line; behind the last is nothing, or a torn one.
        return file.read().split(b"\n")[1:-1]


def took_place(number: int) -> bool:
    """By the database's own account: False for the transaction of an erasure that broke off, or is
    under way. Of an older database it may be one to come."""
    try:
        with transaction.atomic():
            ((status,),) = _rows(STATUS, [str(number)])
    except DataError:
        return True
    return status not in ("aborted", "in progress")


def record_of(path: Path) -> str:
    """The name of the record that it belongs to. Raises LedgerUnusable."""
    try:
        with path.open() as file:
            return str(_parsed(file.readline())[0][HEAD])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _unusable(path, error) from error


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        return iter(_parsed(path.read_text()))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _unusable(path, error) from error


def _parsed(text: str) -> list[dict[str, Any]]:
    whole, _, _torn = text.rpartition("\n")
    lines = [json.loads(line) for line in whole.splitlines()]
    if not lines[0][HEAD]:
        raise ValueError("its first line names no record")
    return lines


def _unusable(path: Path, error: Exception) -> LedgerUnusable:
    return LedgerUnusable(f"The ledger of erasures {path} cannot be read: {error}")


def add(erased: Erasures) -> None:
    """Appends what was erased just now: on the disk when this returns. Raises LedgerUnusable.

    The ledger is not read for it, which would cost the more the more was ever erased.
    """
    path = _own()
    if erased:
        ((place,),) = _rows(PLACE)
        where = (place, secrets.token_hex(8))
        _append(path, [_line(erased, {BEGUN: where})])
        transaction.on_commit(partial(_confirm, path, where))


def _confirm(path: Path, where: tuple[str, str]) -> None:
    """Once it is durable. The erasure took place: what fails here, the next start makes good."""
    try:
        _append(path, [json.dumps({COMMITTED: where})])
    except OSError as error:
        log.error("%s: that an erasure took place is not written: %s", path, error.strerror)


def _own() -> Path:
    """The ledger of this database's record, begun if there is none."""
    path = location()
    if path.exists() and (other := record_of(path)) != origins.name():
        # A new database in an old data directory. What the other record erased is kept.
        path.rename(path.with_name(f"{path.name}.{other.rpartition('/')[2]}"))
    if not path.exists():
        _begin(path, origins.name())
    return path


def _add(path: Path, erased: Erasures) -> None:
    """Appends what the ledger lacks."""
    if new := erased.without(read(path)):
        _append(path, [_line(new)])


def _line(erased: Erasures, where: Mapping[str, Any] | None = None) -> str:
    line = {
        **(where or {}),
        "names": sorted(erased.names),
        "details": erased.details,
        "payloads": sorted(erased.payloads),
        "results": sorted(erased.results),
    }
    return json.dumps({name: said for name, said in line.items() if said})


def keep_up() -> None:
    """Adds every erasure that the database declares; begins the ledger if there is none."""
    payloads, results = (
        {one for (one,) in _rows(CALLS, [action])} for action in (ERASED, RESULT_ERASED)
    )
    names = {one for (one,) in _rows(NAMES)}
    _add(_own(), Erasures(names, dict(_rows(DETAILS)), payloads, results))


def adopt(path: Path) -> None:
    """Adds the erasures of a ledger that was kept elsewhere. Raises LedgerUnusable."""
    own, erased = location(), read(path)
    if own.exists() and record_of(own) != record_of(path):
        if read(own):
            raise LedgerUnusable(f"{path} is the ledger of another record than {own}.")
        own.unlink()
    if not own.exists():
        _begin(own, record_of(path))
    _add(own, erased)


def _begin(path: Path, record: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _append(path, [json.dumps({HEAD: record})])
    sync_folder(path.parent)


def _append(path: Path, lines: Iterable[str]) -> None:
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND
    with os.fdopen(os.open(path, flags, 0o600), "r+b") as file:
        # What another process writes just now is no torn line.
        fcntl.flock(file, fcntl.LOCK_EX)
        # A line that was not written to its end was of an erasure that did not take place.
        if not _ends_with_line(file):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.writelines(line.encode() + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _ends_with_line(file: BinaryIO) -> bool:
    size = file.seek(0, os.SEEK_END)
    if size:
        file.seek(-1, os.SEEK_END)
    return file.read() in (b"", b"\n")


def _rows(query: str, values: Sequence[str] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())
