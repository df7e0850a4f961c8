"""Of a test with many cases that need a database, the short command takes the first, one from the
middle and the last; `--long` and whoever names a file take all."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

KEPT = 3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in spare(items):
        item.add_marker("long")


def spare(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Those that the short command leaves out."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if needs_database(item):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in cases.values():
        last = len(of_one_test) - 1
        kept = {round(n * last / (KEPT - 1)) for n in range(KEPT)}
        yield from (item for n, item in enumerate(of_one_test) if n not in kept)


def needs_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return "_django_db_helper" in fixtures or item.get_closest_marker("django_db") is not None
