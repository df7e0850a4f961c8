"""Somebody is killed in the middle of fifty calls. What the record says afterwards must be true of
what the server received, and nothing may have been sent twice."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from tests.faults.conftest import Database, House, moved_in
from tests.gateway.agent import Agent, Reply
from tests.processes import Stack

CALLS = 50
LEASE_S = "2"
# Written for a running call whose end nobody saw: these alone may stand beside any receipt.
UNSURE = {"unknown"}
SENT = {"succeeded", "tool_error"}
# What a client may see of a process that dies under it.
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, json.JSONDecodeError)


@pytest.fixture
def house(own_stack: Stack, database: Database, tmp_path: Path) -> Iterator[House]:
    yield from moved_in(own_stack, database, tmp_path, LEASE_S)


async def call(agent: Agent, number: int) -> Reply | None:
    """None when the process died under the request."""
    tool = "up.now" if number % 2 else "up.later"
    with suppress(*BROKEN):
        return await agent.call(tool, {"nonce": str(number)})
    return None


async def fifty_calls_and(house: House, fault: Any) -> dict[str, Reply | None]:
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        agent = Agent(http, f"{house.stack.agents_url}/mcp/desk", house.token)
        calls = [asyncio.ensure_future(call(agent, number)) for number in range(CALLS)]
        # In the middle: some have arrived and wait for their answer, others are on their way.
        await asyncio.to_thread(house.witness.wait_for_each, 5)
        await asyncio.to_thread(fault)
        house.witness.answer()
        replies = await asyncio.gather(*calls)
    return {str(number): reply for number, reply in enumerate(replies)}


async def settled(house: House) -> list[Any]:
    async with asyncio.timeout(60):
        while True:
            with suppress(psycopg.OperationalError):
                rows = house.rows()
                if not {row.state for row in rows} & {"queued", "running", "approved", "held"}:
                    return rows
            await asyncio.sleep(0.1)


def check(house: House, rows: list[Any], told: dict[str, Reply | None]) -> None:
    receipts = house.witness.receipts
    recorded = {row.nonce: row for row in rows}

    assert len(recorded) == len(rows), "one call was opened twice"
    assert max(receipts.values()) == 1, "one call was sent twice"
    assert set(receipts) <= set(recorded), "a call was sent without a record"
    for row in rows:
        assert row.entries >= row.seq, f"a move of {row.nonce} has no entry"
        if row.state in SENT:
            assert receipts[row.nonce] == 1, f"{row} was never received"
        elif row.state not in UNSURE and row.executed == "no":
            assert receipts[row.nonce] == 0, f"{row}, and yet it was received"
        else:
            assert row.state in UNSURE, row
    for nonce, reply in told.items():
        if reply is not None and reply.status == 200 and not reply.result.get("isError"):
            assert recorded[nonce].state == "succeeded", f"the agent was told otherwise of {nonce}"


@pytest.mark.parametrize("victim", ["worker", "agents", "postgres"])
async def test_the_record_stays_true(house: House, database: Database, victim: str) -> None:
    def fault() -> None:
        killed = database if victim == "postgres" else getattr(house.stack, victim)
        killed.restart()

    told = await fifty_calls_and(house, fault)
    rows = await settled(house)

    check(house, rows, told)
    states = [row.state for row in rows]
    # The fault was felt, and it was not the end of everything.
    assert victim == "postgres" or "unknown" in states
    assert "succeeded" in states


async def test_without_the_record_nothing_is_sent(house: House, database: Database) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as http:
        agent = Agent(http, f"{house.stack.agents_url}/mcp/desk", house.token)
        house.witness.answer()
        assert (await agent.call("up.now", {"nonce": "before"})).status == 200

        # At once, while what the gateway holds in memory is still fresh enough to let them in.
        database.kill()
        meanwhile = await asyncio.gather(
            *(agent.call("up.now", {"nonce": f"meanwhile {n}"}) for n in range(5))
        )
        database.restart()
        async with asyncio.timeout(30):
            while (await agent.call("up.now", {"nonce": "after"})).status != 200:
                await asyncio.sleep(0.1)

    assert {reply.status for reply in meanwhile} == {503}
    assert set(house.witness.receipts) == {"before", "after"}


async def test_without_a_fault_every_call_succeeds(house: House) -> None:
    """The other tests would pass on a house in which nothing works."""
    told = await fifty_calls_and(house, lambda: None)
    rows = await settled(house)

    check(house, rows, told)
    assert [row.state for row in rows] == ["succeeded"] * CALLS
    assert house.witness.receipts.total() == CALLS
