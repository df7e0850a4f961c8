"""Does the database keep the state of a session? Behind a connection pooler it may not.

Listeners, advisory locks and the group commit need it. Without it calls would fail here and there,
under load, and not at the start. What pages and workers ask for does not, where the pooler keeps
prepared statements and PostgreSQL itself can be reached beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings

from audit.position import STANDBY
from core.connections import PAGES_SETTINGS, PLANS

RECOVERING = "SELECT pg_is_in_recovery()"
UNKNOWN = "unsupported startup parameter"
PID = "SELECT pg_backend_pid()"
REMEDY = "Let it name PostgreSQL itself: Countersign has connection pools of its own."
POOLED = "DATABASE_URL"
TRANSACTIONS = (
    "{} leads to a connection pooler that keeps no session between transactions, such as "
    "PgBouncer with pool_mode=transaction. {}"
)
OPTIONS = "{} leads to a connection pooler that takes or passes on no options of a session. {}"
# Of DATABASE_URL alone.
BESIDE = (
    f"{REMEDY} Or let DATABASE_DIRECT_URL name PostgreSQL, and DATABASE_URL a PgBouncer from 1.21."
)
STATEMENTS = (
    "DATABASE_URL leads to a connection pooler that keeps no prepared statements. It takes "
    "PgBouncer from 1.21, with max_prepared_statements above 0."
)
APART = "DATABASE_URL and DATABASE_DIRECT_URL lead to different databases, or as different roles."
LACKING = (
    "DATABASE_URL leads to a connection pooler, which passes on no options of a session: its role "
    "needs them. Run {}, and let the pooler connect anew."
)
WHERE = "SELECT current_database(), current_user, pg_postmaster_start_time()"
# Each prepared by the same name. Enough of them that a pooler which takes turns is found as well.
LOOKS = 4


def require_session() -> None:
    """Ends this process where the session's state would be lost; where the database does not
    answer, it starts and waits for it."""
    if wrong := check_session(settings.DATABASE_URL, settings.DATABASE_DIRECT_URL):
        sys.exit(wrong)


def check_session(url: str, direct: str) -> str:
    """The problem as a sentence; "" if there is none, or if the database does not answer. `direct`
    is the same address as `url` where there is no pooler."""
    name, remedy = ("DATABASE_DIRECT_URL", REMEDY) if direct != url else (POOLED, BESIDE)
    try:
        with _connected(direct, options=PLANS) as (one, other):
            if wrong := _session_problem(one, other):
                return wrong.format(name, remedy)
        return _pooler_problem(url, direct) if direct != url else ""
    except psycopg.OperationalError as error:
        return OPTIONS.format(name, remedy) if UNKNOWN in str(error) else ""


def _pooler_problem(url: str, direct: str) -> str:
    with _connected(direct) as (here, _), _connected(url) as (one, other):
        if here.execute(WHERE).fetchone() != one.execute(WHERE).fetchone():
            return APART
        if not _keeps_statements(one, other):
            return STATEMENTS
        lacking = [
            name for name in PAGES_SETTINGS if _value(one, f"SHOW {name}") != PAGES_SETTINGS[name]
        ]
        role = here.info.user
    orders = [f'"ALTER ROLE {role} SET {name} = {PAGES_SETTINGS[name]};"' for name in lacking]
    return LACKING.format(" and ".join(orders)) if orders else ""


def _keeps_statements(*links: psycopg.Connection[Any]) -> bool:
    """Prepared by several on what may be one session of the server: each has its own."""
    try:
        for _ in range(LOOKS):
            for number, link in enumerate(links):
                row = link.execute(
                    f"SELECT {number}::int + %s::int".encode(), [1], prepare=True
                ).fetchone()
                if row != (number + 1,):
                    return False
    except psycopg.ProgrammingError:
        return False
    return True


def check_primary(url: str) -> str:
    """The problem as a sentence where migrations are to be made: a standby takes none."""
    try:
        with psycopg.connect(url, connect_timeout=10, autocommit=True) as link:
            return STANDBY if _value(link, RECOVERING) else ""
    except psycopg.OperationalError:
        return ""


@contextmanager
def _connected(
    url: str, **options: Any
) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    # One after the other: a pooler hands on what it has just got back.
    with (
        psycopg.connect(url, connect_timeout=10, autocommit=True, **options) as one,
        psycopg.connect(url, connect_timeout=10, autocommit=True, **options) as other,
    ):
        yield one, other


def _session_problem(one: psycopg.Connection[Any], other: psycopg.Connection[Any]) -> str:
    process = _value(one, PID)
    with other.transaction():
        if _value(other, PID) == process or _value(one, PID) != process:
            return TRANSACTIONS
    return "" if _value(one, "SHOW plan_cache_mode") == "force_generic_plan" else OPTIONS


def _value(link: psycopg.Connection[Any], query: str) -> Any:
    row = link.execute(query.encode()).fetchone()
    return row and row[0]
