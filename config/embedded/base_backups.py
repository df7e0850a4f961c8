"""Base backups of the embedded PostgreSQL and its archived log: which moments they reach, and which
files of them nobody needs any more.

A folder made by pg_basebackup has `backup_label`, with the place in the log where its recovery
begins, and gets `backup_manifest` last, with the place from which on it is whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.errors import CountersignError

SEGMENT = re.compile(r"[0-9A-F]{24}")
# Also of parts, and the note of a base backup, which name a segment first.
NAMED_BY_SEGMENT = re.compile(r"([0-9A-F]{24})(\.[0-9A-F]{8}\.backup|\.partial)?")
HISTORY = re.compile(r"([0-9A-F]{8})\.history")
START = re.compile(r"^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$", re.MULTILINE)
# Files of 16 MB: so many have the same middle part of their name.
IN_A_LOG = 256
LABEL = "backup_label"
GOING = ".removing"


class CannotRecover(CountersignError):
    """The moment is not reached, or the files cannot be judged; says why."""


class TooEarly(CannotRecover):
    """Each base backup was finished later."""


@dataclass(frozen=True, slots=True)
class BaseBackup:
    """`first` is the number of the segment where its recovery begins, `end` the byte in the log
    from which on it is whole. Of one that was not finished, `finished_at` is None."""

    path: Path
    timeline: int
    first: int
    end: int
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Archive:
    """The archived log: numbers of its segments, and the byte where each timeline but the newest
    ended."""

    path: Path
    segments: frozenset[int]
    timeline: int
    ends: dict[int, int]

    def reaches(self, backup: BaseBackup) -> bool:
        """Was it made before the newest timeline left its own?"""
        if backup.timeline == self.timeline:
            return True
        return backup.end <= self.ends.get(backup.timeline, -1)

    def first_missing(self, backup: BaseBackup) -> int | None:
        """A gap behind it ends every recovery; None if there is none."""
        wanted = range(backup.first, max(self.segments, default=-1) + 1)
        return next((number for number in wanted if number not in self.segments), None)


def number_of(segment: str) -> int:
    """Its place in the log, whatever the timeline."""
    return int(segment[8:16], 16) * IN_A_LOG + int(segment[16:], 16)


def name_of(number: int) -> str:
    return f"{number // IN_A_LOG:08X}{number % IN_A_LOG:08X}"


def read_archive(path: Path) -> Archive:
    """Raises OSError."""
    names = os.listdir(path)
    segments = [name for name in names if SEGMENT.fullmatch(name)]
    timelines = [int(name[:8], 16) for name in segments]
    histories = {int(found[1], 16): found[0] for found in map(HISTORY.fullmatch, names) if found}
    newest = max([*timelines, *histories], default=1)
    ends = _ends(path / histories[newest]) if newest in histories else {}
    return Archive(path, frozenset(map(number_of, segments)), newest, ends)


def _ends(history: Path) -> dict[int, int]:
    """The end of each timeline that came before."""
    lines = (line.split() for line in history.read_text().splitlines())
    return {int(line[0]): _byte(line[1]) for line in lines if len(line) > 1}


def _byte(place: str) -> int:
    high, _, low = place.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def read_backups(folder: Path) -> list[BaseBackup]:
    """Oldest first; one that is being made is the last. Raises CannotRecover or OSError."""
    found = [_read_backup(path) for path in folder.iterdir() if _is_cluster(path)]
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda backup: backup.finished_at or never)


def _is_cluster(path: Path) -> bool:
    """Whatever else is there, such as `lost+found`, is not ours to judge."""
    if path.name.endswith(GOING):
        return False
    return (path / LABEL).exists() or (path / "PG_VERSION").exists()


def _read_backup(path: Path) -> BaseBackup:
    try:
        label = START.search((path / LABEL).read_text())
    except FileNotFoundError:
        label = None
    if label is None:
        raise CannotRecover(f"{path} is no base backup: it has no {LABEL} that can be read.")
    timeline, first = int(label[1][:8], 16), number_of(label[1])
    manifest = path / "backup_manifest"
    if not manifest.exists():
        return BaseBackup(path, timeline, first, 0, None)
    # Of a copy it may be later: then the backup counts for fewer moments.
    finished_at = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
    return BaseBackup(path, timeline, first, _end_in(manifest), finished_at)


def _end_in(manifest: Path) -> int:
    try:
        ranges = json.loads(manifest.read_text())["WAL-Ranges"]
        return max(_byte(one["End-LSN"]) for one in ranges)
    except (ValueError, LookupError, TypeError) as error:
        raise CannotRecover(f"{manifest} cannot be read: it may be being written.") from error


def backup_for(moment: datetime, backups: Iterable[BaseBackup], archive: Archive) -> BaseBackup:
    """The newest from which the moment is reached. Raises CannotRecover."""
    usable = [one for one in backups if one.finished_at and archive.reaches(one)]
    before = [one for one in usable if one.finished_at and one.finished_at <= moment]
    if not usable:
        raise CannotRecover("No moment can be recovered: there is no finished base backup.")
    if not before:
        raise TooEarly(_too_early(moment, usable))
    require_whole(before[-1], archive)
    return before[-1]


def _too_early(moment: datetime, usable: list[BaseBackup]) -> str:
    earliest = min(one.finished_at for one in usable if one.finished_at)
    return (
        f"{moment:%Y-%m-%d %H:%M:%S} UTC cannot be recovered: the oldest base backup was finished "
        f"at {earliest:%Y-%m-%d %H:%M:%S} UTC."
    )


def require_whole(backup: BaseBackup, archive: Archive) -> None:
    """Raises CannotRecover."""
    missing = archive.first_missing(backup)
    if missing is not None:
        raise CannotRecover(
            f"From {backup.path} nothing is recovered beyond the file of the log that ends with "
            f"{name_of(missing)}, which is missing in {archive.path}: make a new base backup."
        )


@dataclass(frozen=True, slots=True)
class Pruned:
    backups: list[Path]
    segments: int

    def __bool__(self) -> bool:
        return bool(self.backups or self.segments)

    def __str__(self) -> str:
        gone = "".join(f" {path}," for path in self.backups)
        return f"Removed{gone} {self.segments} files of the log."


def prune(archive_folder: Path, backup_folder: Path, *, keep: timedelta, now: datetime) -> Pruned:
    """Removes what no moment since `now - keep` needs: base backups first, and then what is older
    in the log than each that is left. Raises CannotRecover or OSError, with nothing removed."""
    archive, backups = read_archive(archive_folder), read_backups(backup_folder)
    anchor = backup_for(now - keep, backups, archive)
    old = [one for one in backups if _is_older(one, anchor)]
    for backup in old:
        _remove(backup.path)
    for path in backup_folder.glob(f"*{GOING}"):
        # An earlier attempt broke off.
        shutil.rmtree(path)
    first = min(one.first for one in backups if one not in old)
    return Pruned([one.path for one in old], _remove_older(archive_folder, first))


def _is_older(backup: BaseBackup, anchor: BaseBackup) -> bool:
    finished, kept = backup.finished_at, anchor.finished_at
    return finished is not None and kept is not None and finished < kept


def _remove(path: Path) -> None:
    # Half of one must not be taken for a whole one.
    going = path.with_name(f"{path.name}{GOING}")
    path.rename(going)
    shutil.rmtree(going)


def _remove_older(folder: Path, first: int) -> int:
    old = list(_older(folder, first))
    for path in old:
        path.unlink()
    return sum(1 for path in old if SEGMENT.fullmatch(path.name))


def _older(folder: Path, first: int) -> Iterator[Path]:
    for path in folder.iterdir():
        found = NAMED_BY_SEGMENT.fullmatch(path.name)
        if found and number_of(found[1]) < first:
            yield path
