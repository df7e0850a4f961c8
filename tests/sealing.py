"""Sealing in the middle of a test, as the sealer's role and with its key."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from audit import sealing
from audit.sealing import BATCH, Sealing
from tests.database import SEAL


@contextmanager
def sealer() -> Iterator[None]:
    """This connection is the sealer's meanwhile: what the test wrote need not be committed."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {SEAL}")
        try:
            yield
        finally:
            cursor.execute("RESET ROLE")


def batch(sealing: Sealing, most: int = BATCH) -> int:
    with sealer():
        return sealing.batch(most)


def seal(most: int = BATCH) -> int:
    with sealer():
        return sealing.seal(most)


def seal_all() -> int:
    with sealer():
        return sealing.seal_all()
