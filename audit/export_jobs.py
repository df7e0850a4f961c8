"""Exports that workers prepare: requested, taken by one worker at a time, ended.

A worker holds a lease, and each part is kept in one transaction with the place that it reached. A
worker that is killed leaves whole parts; the next one goes on after the last of them. Whoever lost
the lease, or whose export was cancelled, keeps nothing any more, since the row has another claim
or state.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, OperationalError, connection, models, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone
from psycopg.errors import DiskFull

from audit.export_file import ContentChanged, PreparedFile, PreparedPart
from audit.exporting import begin, note_written
from audit.filters import Filters
from audit.finding import Containing
from audit.models import Export, ExportPart
from audit.services import SYSTEM, Actor, record
from core.english import english
from core.english import gettext as _
from core.errors import CountersignError

log = logging.getLogger(__name__)

State, Fault = Export.State, Export.Fault
# Longer than any part takes.
LEASE = timedelta(seconds=60)
# After so many workers that stopped, were killed or failed, it is not tried again.
CLAIMS = 50
# So long the page lists what ended; entries have it for good.
LISTED = timedelta(days=90)
# PostgreSQL's advisory lock for the quota of one user.
QUOTA_LOCK = 0x65787074

# English, as entries are.
REASONS = {
    State.CANCELLED: _("Cancelled before it was ready."),
    State.DELETED: _("Deleted by its user."),
    State.CHANGED: _("Entries in it were forgotten, erased or archived after it was requested."),
}


class TooManyExports(CountersignError):
    """The user has as many exports as one may have."""


class _NotOurs(Exception):
    """Another worker has the export, or it ended."""


class _Leaving(Exception):
    """This worker is asked to stop."""


class _TooLarge(Exception):
    """The user's exports would have more bytes than they may."""


@transaction.atomic
def request(filters: Filters, form: Export.Format, *, by: Actor, person_id: int) -> Export:
    """Raises TooManyExports."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [QUOTA_LOCK, person_id])
    if Export.objects.of(person_id).counted().count() >= settings.EXPORTS_PER_USER:
        said = _("You have %d exports, as many as one user may have. Delete one first.")
        raise TooManyExports(said % settings.EXPORTS_PER_USER)
    return begin(filters, form, by=by, person_id=person_id, state=State.WAITING)


def end(export: Export, *, by: Actor) -> bool:
    """Cancels it, or deletes it once it is ready; False if it had ended before."""
    return _end(export, State.CANCELLED, Export.UNFINISHED, by=by) or _end(
        export, State.DELETED, (State.READY,), by=by
    )


def end_changed(export: Export) -> None:
    """Its bytes cannot be made again."""
    _end(export, State.CHANGED, (*Export.UNFINISHED, State.READY), by=SYSTEM)


@transaction.atomic
def _end(
    export: Export,
    state: Export.State,
    before: tuple[Export.State, ...],
    *,
    by: Actor,
    fault: str = "",
) -> bool:
    rows = Export.objects.filter(pk=export.pk, state__in=before)
    if not rows.update(state=state, fault=fault, leased_until=None):
        return False
    ExportPart.objects.filter(export=export.pk).delete()
    reason = english(Fault(fault).label) if fault else REASONS[state]
    record("audit.export_ended", actor=by, reason=reason, export=export.pk, state=state)
    return True


def remove_old() -> None:
    """Parts of what expired, and rows of what ended long ago."""
    now = timezone.now()
    expired = Export.objects.filter(state=State.READY, expires_at__lte=now)
    for export in expired:
        with transaction.atomic():
            Export.objects.filter(pk=export.pk, state=State.READY).update(state=State.EXPIRED)
            ExportPart.objects.filter(export=export.pk).delete()
    ended = Export.objects.exclude(state__in=[*Export.UNFINISHED, State.READY])
    ended.filter(at__lt=now - LISTED).delete()


def take() -> Export | None:
    """The oldest export that waits, or whose worker is gone: nobody else takes it meanwhile."""
    export = _take()
    if export is None or export.claim <= CLAIMS:
        return export
    log.error("%s: %d workers gave up", export, CLAIMS)
    _fail(export, Fault.BROKEN)
    return None


@transaction.atomic
def _take() -> Export | None:
    now = timezone.now()
    free = Q(state=State.WAITING) | Q(state=State.PREPARING, leased_until__lt=now)
    rows = Export.objects.select_for_update(skip_locked=True).filter(free)
    if (export := rows.order_by("pk").first()) is None:
        return None
    export.state, export.claim, export.leased_until = State.PREPARING, export.claim + 1, now + LEASE
    export.save(update_fields=["state", "claim", "leased_until"])
    return export


def prepare(export: Export, has: Containing, is_leaving: Callable[[], bool]) -> None:
    """Works on an export that was taken, up to its end; a worker that leaves gives it back."""
    try:
        _Preparation(export, has, is_leaving).run()
    except _NotOurs:
        log.info("%s: another worker has it, or it ended", export)
    except _Leaving:
        _claimed_row(export).update(state=State.WAITING, leased_until=None)
    except ContentChanged:
        end_changed(export)
    except _TooLarge:
        _fail(export, Fault.TOO_LARGE)
    except OperationalError as error:
        if not isinstance(error.__cause__, DiskFull):
            # The next worker goes on once the lease has ended.
            raise
        log.error("%s: the database has no space left: %s", export, error)
        _fail(export, Fault.NO_SPACE)
    except Exception:
        log.exception("%s was not prepared", export)
        _fail(export, Fault.BROKEN)


def _fail(export: Export, fault: Export.Fault) -> None:
    """Where not even that can be written, a worker tries again once the lease has ended."""
    with suppress(DatabaseError):
        _end(export, State.FAILED, (State.PREPARING,), by=SYSTEM, fault=fault)


class _Preparation:
    def __init__(self, export: Export, has: Containing, is_leaving: Callable[[], bool]) -> None:
        self.export, self.is_leaving = export, is_leaving
        self.file = PreparedFile(export, has)

    def run(self) -> None:
        last = self.export.parts.last()
        # A worker that began alone need not read again what it made.
        digest = None if last else hashlib.sha256()
        parts = self.file.prepare(last.last_id if last else None)
        for number, part in enumerate(parts, last.number + 1 if last else 0):
            self._keep(number, part)
            if digest:
                digest.update(part.content)
        self._finish(digest or self._read_again())

    @transaction.atomic
    def _keep(self, number: int, part: PreparedPart) -> None:
        size = len(part.content)
        self._update(
            reached_id=part.last_id,
            rows=F("rows") + part.rows,
            changed=F("changed") + part.changed,
            bytes=F("bytes") + size,
        )
        if _bytes_of(self.export.person_id) > settings.EXPORT_BYTES:
            raise _TooLarge
        ExportPart.objects.create(
            export=self.export,
            number=number,
            offset=self.export.bytes,
            size=size,
            above=part.above,
            last_id=part.last_id,
            digest=hashlib.sha256(part.content).digest(),
        )
        self.export.bytes += size

    def _read_again(self) -> Any:
        """The digest of a file whose first parts another worker made. Raises ContentChanged."""
        digest = hashlib.sha256()
        for piece in self.file.read(0, self.export.bytes - 1):
            digest.update(piece)
            self._update()
        return digest

    @transaction.atomic
    def _finish(self, digest: Any) -> None:
        now, hexadecimal = timezone.now(), digest.hexdigest()
        expires_at = now + timedelta(days=settings.EXPORT_DAYS)
        self._update(state=State.READY, digest=hexadecimal, finished_at=now, expires_at=expires_at)
        made = Export.objects.get(pk=self.export.pk)
        note_written(made, made.rows, hexadecimal, made.changed, by=SYSTEM)

    def _update(self, **values: object) -> None:
        """Writes to the export, and renews the lease. Raises _NotOurs."""
        if self.is_leaving():
            raise _Leaving
        lease = {"leased_until": timezone.now() + LEASE}
        if not _claimed_row(self.export).update(**lease, **values):
            raise _NotOurs


def _claimed_row(export: Export) -> models.QuerySet[Export]:
    return Export.objects.filter(pk=export.pk, state=State.PREPARING, claim=export.claim)


def _bytes_of(person_id: int) -> int:
    exports = Export.objects.of(person_id).counted()
    return int(exports.aggregate(sum=Sum("bytes"))["sum"] or 0)
