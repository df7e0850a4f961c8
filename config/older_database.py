"""Has the database gone back in time, as far as what lies outside of it says?

Asked by each process before its first connection, since whatever it served or sent could have been
erased or sent before. Nothing goes on until `manage.py restore --declare` has run.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial

import psycopg
from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection

from approvals import payload_erasure
from audit import erasure_ledger, forgetting, origins, position, rollback
from audit.erasure_ledger import Erasures
from audit.rollback import PositionKeeper
from config.readiness import say_refused
from config.session_check import require_session
from core.postgresql.base import first_look

UNDECLARED = "it was restored from a backup or copied."
NOT_ERASED = "it has what the ledger of erasures {} says was erased."


def require_database(*, with_calls: bool = True) -> None:
    """Ends this process where it must not go on with its database. Where the database does not
    answer, it starts, and looks before it uses the first connection. `with_calls`: it may read
    calls."""
    require_session()
    first_look.require(partial(_look, with_calls=with_calls))
    with suppress(psycopg.OperationalError):
        psycopg.connect(settings.DATABASE_URL, connect_timeout=10).close()
        with suppress(DatabaseError):
            connection.ensure_connection()
        connection.close()


def keep_position() -> None:
    """So that the next start has something to compare with."""
    PositionKeeper().start()


def _look(*, with_calls: bool) -> bool:
    """False where there is nothing to look at yet."""
    try:
        why = find_refusal(with_calls=with_calls)
    except ProgrammingError:
        # Before it is migrated.
        return False
    finally:
        connection.close()
    if why:
        sys.stderr.write(f"{why}\n")
        sys.stderr.flush()
        say_refused()
        # From whichever thread, and with nothing to end well: it has not begun.
        os._exit(1)
    return True


def find_refusal(*, with_calls: bool = True) -> str:
    """A sentence with what is wrong and what to run; empty for a database to go on with."""
    why = rollback.why_noticed() or _find_fault(with_calls=with_calls)
    return position.REFUSED.format(why) if why else ""


def _find_fault(*, with_calls: bool) -> str:
    if not origins.is_at_home():
        return UNDECLARED
    if rollback.has_gone_back():
        return rollback.why_noticed()
    if _lacks_erasures(with_calls=with_calls):
        why = NOT_ERASED.format(erasure_ledger.location())
        rollback.notice(why)
        return why
    return ""


def _lacks_erasures(*, with_calls: bool) -> bool:
    def lacks(erased: Erasures) -> bool:
        return bool(forgetting.still_there(erased)) or (
            with_calls and payload_erasure.is_still_there(erased)
        )

    lines = erasure_ledger.newest()
    # Also of an erasure that was committed just now.
    if lacks(erasure_ledger.joined(line.erased for line in lines)) and any(
        line.took_place() and lacks(line.erased) for line in lines
    ):
        return True
    # Their processes ended before they could write that they took place.
    for line in lines:
        if with_calls and not line.is_committed and not lacks(line.erased):
            line.confirm()
    return False
