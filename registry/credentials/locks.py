"""One process at a time, where a transaction must not stay open: another host is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings

RENEWAL, REGISTRATION = 71004, 71005


@contextmanager
def alone(what: int, pk: int) -> Iterator[None]:
    with psycopg.connect(
        settings.DATABASE_DIRECT_URL,
        autocommit=True,
        connect_timeout=5,
        application_name="countersign credentials",
    ) as link:
        link.execute("SELECT pg_advisory_lock(%s, %s)", [what, pk % 2**31])
        yield
