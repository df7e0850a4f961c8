"""Nothing is sent: because whoever owns the host said so, or because this database is a copy.

As those see it who would take or start a call, whichever process they are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import connection, transaction

from audit import origins
from audit.models import ClockTime
from audit.services import Actor, record
from calls import freezes
from calls.freezes import FreezeBook, wait_for_starts
from calls.models import Pause
from core.english import gettext as _
from core.live import notify_on_commit

# One row, which other reads of every page take along: at home or not, and the pause that holds.
STATE = f"""
    SELECT ({origins.AT_HOME}) IS TRUE, p.began_at, p.by, p.reason
    FROM (VALUES (1)) AS one(row)
    LEFT JOIN LATERAL (
        SELECT began_at, by, reason FROM calls_pause WHERE ended_at IS NULL ORDER BY id DESC LIMIT 1
    ) p ON true
"""

# As part of a statement: is nothing sent, for the reasons here? Is anything stopped at all?
IS_PAUSED = f"""
    (({origins.AT_HOME}) IS NOT TRUE
     OR EXISTS (SELECT FROM calls_pause WHERE ended_at IS NULL))
"""
IS_ANYTHING_STOPPED = f"""
    ({IS_PAUSED}
     OR EXISTS (SELECT FROM calls_freeze WHERE ended_at IS NULL))
"""


def why_paused() -> str:
    """A sentence for agents and people; empty if calls may be sent."""
    with connection.cursor() as cursor:
        cursor.execute(STATE)
        return say_why(*cursor.fetchone())


def say_why(is_at_home: bool, began_at: datetime | None, by: str, reason: str) -> str:
    """The sentence for a row of STATE."""
    if not is_at_home:
        return _not_declared()
    if began_at is None:
        return ""
    return _("Paused since %(when)s by %(who)s: %(why)s") % {
        "when": f"{began_at:%Y-%m-%d %H:%M} UTC",
        "who": by,
        "why": reason,
    }


def why_undeclared() -> str:
    """Also nobody decides then: what stands here as pending may have been decided and sent."""
    return "" if origins.is_at_home() else _not_declared()


def _not_declared() -> str:
    return _(
        "This database was restored from a backup or copied, and nobody has declared it yet "
        "(manage.py restore --declare): calls that wait in it may have been sent before."
    )


def load() -> FreezeBook:
    """Everything that is stopped, whoever stopped it."""
    book, why = freezes.load(), why_paused()
    return replace(book, everything=why, is_empty=False) if why else book


@transaction.atomic
def begin(reason: str, *, by: Actor) -> bool:
    """Once this is committed no call starts; False if it was paused already."""
    wait_for_starts()
    if Pause.objects.holding().exists():
        return False
    Pause.objects.create(reason=reason[:300], by=by.name)
    record("pause.began", actor=by, reason=reason[:300])
    notify_on_commit("frozen", "queue", "calls")
    return True


@transaction.atomic
def end(*, by: Actor) -> bool:
    """Ends the pause, as the database's owner; False if nothing was paused."""
    ended = Pause.objects.holding().update(ended_at=ClockTime(), ended_by=by.name)
    if ended:
        record("pause.ended", actor=by)
        notify_on_commit("frozen", "queue", "calls")
    return bool(ended)
