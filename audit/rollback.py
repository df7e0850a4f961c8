"""Noticing that the database's files are older than what this host has seen of them."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import (
    InternalError,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    connection,
    transaction,
)
from psycopg.errors import ReadOnlySqlTransaction

from audit import origins, position
from audit.anchors import kept_in, remembered_in
from audit.leaves import sealed_size
from audit.models import Rollback
from audit.position import NEXT, NOTICE, PLACE, KnownPosition
from audit.signing import keys
from audit.verify import Broken, Root, read_trusted
from core.outage import is_outage

log = logging.getLogger(__name__)

OWN = f"SELECT {PLACE}, pg_current_xact_id()::text FROM pg_control_system()"
LOOK = f"SELECT n.*, (SELECT max(id) FROM audit_entryrow) FROM ({NEXT}) n"
# A transaction that writes nothing is not waited for, on the disk or a standby: this writes a few
# bytes. Which others were under way when it began is its third value.
MARK = f"""
    SELECT {PLACE}, pg_current_xact_id()::text, pg_snapshot_xmin(pg_current_snapshot())::text
    FROM pg_control_system(), pg_logical_emit_message(true, 'countersign', '')
"""
EVERY_S = 1.0
_anchors_agree = threading.Event()


def has_gone_back() -> bool:
    """Also says so in the database, for everybody. Not within a repeatable read: it compares with
    what was seen up to now."""
    # Before the database is asked, since others go on meanwhile.
    seen = position.read()
    with connection.cursor() as cursor:
        cursor.execute(NEXT)
        return is_older_than(seen, *cursor.fetchone())


def is_older_than(seen: KnownPosition, place: str, following: str) -> bool:
    """has_gone_back, for who has read the row of NEXT by itself, and `seen` before it."""
    why = position.say_behind(seen, place, following)
    why = why or ("" if _anchors_agree.is_set() else _older_than_anchors())
    if not why:
        _anchors_agree.set()
        return False
    notice(why)
    return True


class LaggingStandby(OperationalError):
    """It follows a primary that is further on, and takes no writes: no database to go on with yet,
    and none that went back for good."""


def notice(why: str) -> None:
    """For everybody: until `restore --declare` this is no database to go on with. Raises
    LaggingStandby."""
    try:
        _write_notice(why)
    except InternalError as error:
        if isinstance(error.__cause__, ReadOnlySqlTransaction):
            raise LaggingStandby(f"{position.STANDBY} It lags behind: {why}") from error
        raise
    log.error("The database went back in time: %s Nothing is sent.", why)


def _write_notice(why: str) -> None:
    # The sealer's role may not; whoever else compares finds the same.
    with suppress(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(NOTICE, [why])


def why_noticed() -> str:
    """Empty where nobody noticed anything, or it was declared since."""
    reasons = Rollback.objects.filter(origin=origins.current())
    return reasons.values_list("reason", flat=True).first() or ""


class PositionKeeper:
    """Remembers once a second how far the database has come, if anything was recorded since.

    So a call that was answered is covered a second later, and nobody's call waits for it.
    """

    def __init__(self) -> None:
        self._newest: int | None = None
        # The last mark had others under way, whose numbers are smaller.
        self._has_older = True
        # What kept it from that since it last succeeded, each said once.
        self._failures: set[type[Exception]] = set()

    def start(self) -> None:
        threading.Thread(target=self._run, name="position", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.attempt()
            time.sleep(EVERY_S)

    def attempt(self) -> None:
        """`look`, which an outage may keep from it."""
        try:
            self.look()
        except Exception as error:
            self._say(error)
        else:
            self._say_over()
        finally:
            close_old_connections()

    def _say(self, error: Exception) -> None:
        if type(error) not in self._failures:
            self._failures.add(type(error))
            trace = None if is_outage(error) else error
            log.error(
                "How far the database has come cannot be noted, and is tried each second: %s",
                error,
                exc_info=trace,
            )

    def _say_over(self) -> None:
        if self._failures:
            self._failures.clear()
            log.warning("How far the database has come is noted again.")

    def look(self) -> None:
        # Before the database is asked, since others go on meanwhile.
        seen = position.read()
        with connection.cursor() as cursor:
            cursor.execute(LOOK)
            place, following, newest = cursor.fetchone()
            if is_older_than(seen, place, following):
                return
            if newest == self._newest and not self._has_older:
                return
            cursor.execute(MARK)
            place, number, oldest = cursor.fetchone()
        position.note(KnownPosition(place, int(number)))
        self._newest, self._has_older = newest, int(oldest) < int(number)


def note_position(own: KnownPosition | None = None) -> None:
    """In the transaction that takes a call to send: once it is durable, this host remembers it.
    `own`: this transaction's, where it is known."""
    if own is None:
        with connection.cursor() as cursor:
            cursor.execute(OWN)
            place, number = cursor.fetchone()
        own = KnownPosition(place, int(number))
    transaction.on_commit(partial(position.note, own))


def _older_than_anchors() -> str:
    """Once in a process: files are not replaced under a server that runs."""
    kept = [_newest(Path(settings.ANCHOR_FILE)), _newest(remembered_in())]
    # After them: others seal meanwhile.
    sealed, origin = sealed_size(), origins.current()
    for read in filter(None, kept):
        if read.origin >= origin and read.size > sealed:
            return f"{read.size} entries were signed at {read.time}, and {sealed} are sealed."
    return ""


def _newest(path: Path) -> Root | None:
    trusted = keys()
    for note in kept_in(path):
        with suppress(Broken):
            return read_trusted(note, trusted)
    return None
