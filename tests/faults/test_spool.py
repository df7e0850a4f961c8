"""A reply that comes while the database is away outlives the process that received it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from tests.faults.conftest import Database, House, moved_in
from tests.faults.test_kills import BROKEN, settled
from tests.gateway.agent import Agent
from tests.processes import Running, Stack

KEPT = "its reply is kept in the spool"
# Nobody is given up while this test does its harm.
LEASE_S = "20"


@pytest.fixture
def house(own_stack: Stack, database: Database, tmp_path: Path) -> Iterator[House]:
    yield from moved_in(own_stack, database, tmp_path, LEASE_S)


@pytest.fixture
async def agent(house: House) -> AsyncIterator[Agent]:
    async with aiohttp.ClientSession() as http:
        yield Agent(http, f"{house.stack.agents_url}/mcp/desk", house.token)


async def says(process: Running, words: str) -> None:
    async with asyncio.timeout(30):
        while words not in process.text():
            await asyncio.sleep(0.05)


async def ask(agent: Agent) -> None:
    with suppress(*BROKEN):
        await asyncio.gather(*(agent.call(f"up.{t}", {"nonce": t}) for t in ("now", "later")))


async def test_it_is_written_down_by_whoever_comes_next(
    house: House, database: Database, agent: Agent
) -> None:
    asking = asyncio.create_task(ask(agent))
    await asyncio.to_thread(house.witness.wait_for_each, 1)
    database.kill()
    house.witness.answer()
    for process in (house.stack.agents, house.stack.worker):
        await says(process, KEPT)
        process.kill()
    spool = Path(house.stack.env["COUNTERSIGN_DATA"]) / "spool"
    (sealed, _other) = sorted(spool.glob("*/*.reply"))
    assert b"nonce" not in sealed.read_bytes()
    forged = sealed.with_name("01890000-0000-7000-8000-000000000000.1.reply")
    forged.write_bytes(sealed.read_bytes())

    database.restart()
    await asyncio.to_thread(house.stack.worker.start)

    rows = await settled(house)
    assert {(row.nonce, row.state) for row in rows} == {
        ("now", "succeeded"),
        ("later", "succeeded"),
    }
    async with asyncio.timeout(20):
        while list(spool.glob("*/*.reply")) != [spool / "aside" / forged.name]:
            await asyncio.sleep(0.05)
    assert "is set aside" in house.stack.worker.text()
    await asking


async def test_who_outlives_the_outage_leaves_nothing_there(
    house: House, database: Database, agent: Agent
) -> None:
    asking = asyncio.create_task(ask(agent))
    await asyncio.to_thread(house.witness.wait_for_each, 1)
    database.kill()
    house.witness.answer()
    await says(house.stack.agents, KEPT)
    await says(house.stack.worker, KEPT)

    database.restart()

    await asking
    rows = await settled(house)
    assert {row.state for row in rows} == {"succeeded"}
    spool = Path(house.stack.env["COUNTERSIGN_DATA"]) / "spool"
    async with asyncio.timeout(10):
        while list(spool.glob("*/*.reply")):
            await asyncio.sleep(0.05)
