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
from audit.position import KnownPosition
from audit.signing import keys
from audit.verify import Broken, Root, read_trusted

log = logging.getLogger(__name__)

# After a declared restore everything is compared anew: with a place of its own.
PLACE = "system_identifier || '/' || (SELECT max(number) FROM audit_origin)"
NEXT = f"SELECT {PLACE}, pg_snapshot_xmax(pg_current_snapshot())::text FROM pg_control_system()"
OWN = f"SELECT {PLACE}, pg_current_xact_id()::text FROM pg_control_system()"
_anchors_agree = threading.Event()


def has_gone_back() -> bool:
    """Also says so in the database, for everybody. Not within a repeatable read: it compares with
    what was seen up to now."""
    why = _older_transactions() or ("" if _anchors_agree.is_set() else _older_than_anchors())
    if not why:
        _anchors_agree.set()
        return False
    log.error("The database went back in time: %s Nothing is sent.", why)
    Rollback.objects.get_or_create(origin=origins.current(), defaults={"reason": why})
    return True


def note_position() -> None:
    """In the transaction that takes a call to send: once it is durable, this host remembers it."""
    with connection.cursor() as cursor:
        cursor.execute(OWN)
        place, number = cursor.fetchone()
    transaction.on_commit(partial(position.note, KnownPosition(place, int(number))))


def _older_transactions() -> str:
    # Before the database is asked, since others go on meanwhile.
    seen = position.read()
    with connection.cursor() as cursor:
        cursor.execute(NEXT)
        place, following = cursor.fetchone()
    if seen.place != place or int(following) > seen.transaction:
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
