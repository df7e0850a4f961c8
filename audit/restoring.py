"""The record after a restore: what was kept, what the earlier one had come to, and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from audit import origins
from audit.models import Checkpoint, Entry
from audit.sealing import seal_declaration
from audit.services import Actor, record
from audit.signing import keys
from audit.verify import RESTORED, Broken, Root, read_known


@dataclass(frozen=True, slots=True)
class Ends:
    """The last checkpoint known under each name that the record ever had."""

    notes: Mapping[int, str]

    @classmethod
    def of(cls, notes: Iterable[str]) -> Ends:
        """The longest of each; what no key of ours signed says nothing."""
        trusted = keys()
        longest: dict[int, tuple[Root, str]] = {}
        for note in notes:
            try:
                read = read_known(note, trusted)
            except Broken:
                continue
            if read.origin not in longest or read.size > longest[read.origin][0].size:
                longest[read.origin] = (read, note)
        return cls({origin: note for origin, (_read, note) in sorted(longest.items())})

    @property
    def origin(self) -> int:
        return max(self.notes, default=0)


def known_ends() -> list[str]:
    """This database's own last checkpoints, and those that its restores declared."""
    notes = [note for (note,) in Checkpoint.objects.order_by("-id").values_list("note")[:1]]
    for details in Entry.objects.filter(action=RESTORED).values_list("details", flat=True):
        notes += details.get("ends", [])
    return notes


def begin_origin(
    notes: Iterable[str], *, by: Actor, backup_at: datetime | None, reason: str, **details: Any
) -> None:
    """In one transaction of the database's owner, who alone may begin one.

    What the backup held and had not sealed gets its leaves first, unsigned; the declaration is
    the next leaf, and the first checkpoint under the new name is of both. `notes` are all that
    say what the record had come to.
    """

    def declare(kept: int, index: int) -> int:
        # The key that signs the declaration is known by now: it may be younger than the backup.
        ends = Ends.of(notes)
        number = max(origins.current(), ends.origin) + 1
        origins.begin(number, index=index, kept=kept)
        declared = record(
            RESTORED,
            actor=by,
            reason=reason,
            origin=number,
            kept=kept,
            ends=list(ends.notes.values()),
            backup_at=backup_at.isoformat() if backup_at else None,
            **details,
        )
        return declared.pk

    seal_declaration(declare)
