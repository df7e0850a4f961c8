"""Plans over many recorded calls: time, and memory that does not grow with them.

`PLAN_CALLS=100000 python3 manage.py test tests/approvals/test_plan_large.py --log-cli-level=INFO`
says how long that many take. Of more, a plan replays a sample of 100,000.
"""

from __future__ import annotations

import logging
import os
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from approvals.policy_plans import planning
from benchmarks import crowd
from calls.replay import replaying
from policies import decide
from tests.database import Cleaner

pytestmark = pytest.mark.long
CALLS = int(os.environ.get("PLAN_CALLS", "12000"))
FILE = """\
version: 1
rules:
  - {name: rest, effect: allow}
  - {name: limits, effect: ask, when: 'args.limit > 10 && agent.name != ""'}
  - {name: sends, effect: deny, tool: "*send*"}
"""


@pytest.fixture(scope="module")
def house(django_db_setup: None, django_db_blocker: Any, cleaner: Cleaner) -> Iterator[None]:
    with django_db_blocker.unblock():
        try:
            cleaner.reclaim()
            crowd.fill(cleaner.connection, servers=20, tools=400, calls=CALLS)
            yield
        finally:
            cleaner.reclaim()


def test_a_plan_of_all_of_them(house: None, db: None) -> None:
    began = time.monotonic()

    result = planning.make_plan(FILE, by=None, calls=planning.CALLS_MAX).result

    read = result["replayed"] + result["unread"]
    log = logging.getLogger(__name__)
    log.info("%d of %d calls: %.1f s", read, CALLS, time.monotonic() - began)
    # Those that policy did not judge, or that are a few minutes from the edge, are no part of it;
    # of more than a plan replays it is a sample.
    assert result["is_sample"] is (result["calls"] > planning.CALLS_MAX)
    least, most = min(result["calls"], planning.CALLS_MAX * 0.99), planning.CALLS_MAX * 1.01
    assert least * 0.98 <= read <= min(result["calls"], most) <= CALLS
    assert result["unread"] == 0
    assert result["changed"] > 0


def test_a_sample_is_about_as_large_as_asked_and_says_its_bound(house: None, db: None) -> None:
    asked = min(CALLS, planning.CALLS_MAX) // 4

    result = planning.make_plan(FILE, by=None, calls=asked).result

    assert result["is_sample"]
    assert 0.8 * asked < result["replayed"] < 1.2 * asked
    assert result["bound_points"] == round(98 / result["replayed"] ** 0.5, 2)
    whole = planning.make_plan(f"{FILE}# again\n", by=None, calls=planning.CALLS_MAX).result
    shares = [100 * one["changed"] / one["replayed"] for one in (result, whole)]
    # Twice the bound: one sample of 20 may be beyond it.
    assert abs(shares[0] - shares[1]) < 2 * result["bound_points"]


def test_memory_does_not_grow_with_the_calls(
    house: None, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Bounds of what is kept however many calls there are: reached by few, too.
    monkeypatch.setattr(replaying, "NAMED_MAX", 100)
    monkeypatch.setattr(decide, "REMEMBERED", 100)
    few, many = (_peak(calls) for calls in (CALLS // 6, planning.CALLS_MAX))

    assert many < few + 2 * 1024 * 1024


def _peak(calls: int) -> int:
    tracemalloc.start()
    try:
        planning.make_plan(f"{FILE}# {calls}\n", by=None, calls=calls)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
