"""Noticing that the database's files are older than what this host has seen of them."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from audit import origins, position
from audit.anchors import kept_in, remembered_in
from audit.leaves import sealed_size
from audit.models import Rollback
from audit.position import NEXT, PLACE, KnownPosition
from audit.signing import keys
from audit.verify import Broken, Root, read_trusted

log = logging.getLogger(__name__)

OWN = f"SELECT {PLACE}, pg_current_xact_id()::text FROM pg_control_system()"
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
    why = _older_transactions(seen, place, following)
    why = why or ("" if _anchors_agree.is_set() else _older_than_anchors())
    if not why:
        _anchors_agree.set()
        return False
    log.error("The database went back in time: %s Nothing is sent.", why)
    Rollback.objects.get_or_create(origin=origins.current(), defaults={"reason": why})
    return True


def note_position(own: KnownPosition | None = None) -> None:
    """In the transaction that takes a call to send: once it is durable, this host remembers it.
    `own`: this transaction's, where it is known."""
    if own is None:
        with connection.cursor() as cursor:
            cursor.execute(OWN)
            place, number = cursor.fetchone()
        own = KnownPosition(place, int(number))
    transaction.on_commit(partial(position.note, own))


def _older_transactions(seen: KnownPosition, place: str, following: str) -> str:
    if not position.is_behind(seen, place, following):
        return ""
    return f"its next transaction is {following}, and this host has seen {seen.transaction}."


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
