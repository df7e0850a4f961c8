"""Calls under load behind PgBouncer in transaction mode, which is killed again and again: what an
agent was told stays true, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.test_pooler import give_settings
from tests.database import Databases
from tests.faults.conftest import House, furnished
from tests.faults.test_failover import Load
from tests.faults.test_kills import check, settled
from tests.pooler import Pooler, newer
from tests.processes import Stack

pytestmark = [pytest.mark.long, newer]

LEASE_S = "20"
CALLS = 200


@pytest.fixture
def pooler(fresh_database: dict[str, str], databases: Databases, folder: Path) -> Iterator[Pooler]:
    give_settings(databases, fresh_database)
    pooler = Pooler(folder, fresh_database["DATABASE_URL"], "transaction")
    yield pooler
    pooler.kill()


@pytest.fixture
def house(
    own_stack: Stack, fresh_database: dict[str, str], pooler: Pooler, tmp_path: Path
) -> Iterator[House]:
    direct = fresh_database["DATABASE_URL"]
    urls = fresh_database | {"DATABASE_URL": pooler.url, "DATABASE_DIRECT_URL": direct}
    yield from furnished(own_stack, urls, tmp_path, LEASE_S)


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.proof)])
async def test_a_pooler_that_is_killed_loses_no_call(
    house: House, pooler: Pooler, times: int
) -> None:
    house.witness.answer()
    async with Load(house) as load:
        await load.until_worked(time.monotonic())
        for _ in range(times):
            await asyncio.sleep(1)
            await asyncio.to_thread(pooler.kill)
            await asyncio.to_thread(pooler.start)
            await load.until_worked(time.monotonic())
    rows = await settled(house)

    check(house, rows, load.told)
    states = [row.state for row in rows]
    assert states.count("succeeded") > 50
    assert set(states) <= {"succeeded", "unknown"}


async def test_every_call_succeeds_behind_it(house: House) -> None:
    house.witness.answer()
    async with Load(house) as load:
        async with asyncio.timeout(120):
            while len(load.told) < CALLS:
                await asyncio.sleep(0.1)
    rows = await settled(house)

    check(house, rows, load.told)
    assert {row.state for row in rows} == {"succeeded"}
    assert all(reply is not None and reply.status == 200 for reply in load.told.values())
    for process in (house.stack.agents, house.stack.worker):
        assert "prepared statement" not in process.text()
        assert "Traceback" not in process.text()
