"""Does the database keep the state of a session? Behind a connection pooler it may not.

Listeners, advisory locks, prepared statements and the group commit need it. Without it calls would
fail here and there, under load, and not at the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from core.connections import PLANS

PID = "SELECT pg_backend_pid()"
REMEDY = "Let it name PostgreSQL itself: Countersign has connection pools of its own."
TRANSACTIONS = (
    "DATABASE_URL leads to a connection pooler that keeps no session between transactions, such as "
    "PgBouncer with pool_mode=transaction. " + REMEDY
)
OPTIONS = (
    "DATABASE_URL leads to a connection pooler that takes or passes on no options of a session. "
    + REMEDY
)


def check_session(url: str) -> str:
    """The problem as a sentence; "" if there is none, or if the database does not answer."""
    try:
        with _connected(url) as (one, other):
            return _session_problem(one, other)
    except psycopg.OperationalError as error:
        return OPTIONS if "unsupported startup parameter" in str(error) else ""


@contextmanager
def _connected(url: str) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    # One after the other: a pooler hands on what it has just got back.
    with (
        psycopg.connect(url, connect_timeout=10, autocommit=True, options=PLANS) as one,
        psycopg.connect(url, connect_timeout=10, autocommit=True, options=PLANS) as other,
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
