"""Statements of hot paths that are planned once for each connection of Django's.

Django's cursors put parameters into the text, so that each statement is parsed and planned anew,
with all months of a table: longer than it takes to run. What runs for every call is bound by the
server here, and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection
from django.db.transaction import TransactionManagementError

# To select in a transaction before `execute`; otherwise each is planned anew, as settings say.
# Joins are as PostgreSQL likes them: a long queue may meet many live calls.
KEEP_PLANS = (
    "set_config('plan_cache_mode', 'force_generic_plan', true),"
    " set_config('enable_seqscan', 'off', true),"
    " set_config('max_parallel_workers_per_gather', '0', true)"
)
# Nothing else is prepared by itself.
_NEVER = 1 << 30


def execute(
    query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
) -> psycopg.Cursor[Any]:
    """Runs it in the transaction of this thread's connection, which must be under way: what a
    change of the schema made void is forgotten when that is rolled back."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("kept plans need a transaction")
    connection.ensure_connection()
    link = connection.connection
    link.prepare_threshold = _NEVER
    with connection.wrap_database_errors:
        return psycopg.Cursor(link).execute(query, parameters, prepare=True)
