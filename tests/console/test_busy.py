"""The queue's page with two thousand pending calls."""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import crowd, pages
from tests.database import Cleaner

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def busy(django_db_setup: None, django_db_blocker: Any, cleaner: Cleaner) -> Iterator[None]:
    with django_db_blocker.unblock():
        try:
            cleaner.reclaim()
            crowd.fill(cleaner.connection, servers=5, tools=50, calls=6_000, held=2_000)
            yield
        finally:
            cleaner.reclaim()


@pytest.mark.parametrize("query", ["", "?sort=risk&group=agent", "?sort=newest&agent=agent-1"])
def test_the_queue_asks_little(busy: None, db: None, query: str) -> None:
    client = pages.visitor()

    assert "2,000 pending" in client.get("/queue/").text
    seen = pages.look(client, f"/queue/{query}")
    assert seen.queries <= pages.QUERIES_MAX, seen.asked
