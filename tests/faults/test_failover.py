"""The primary of a synchronous pair is lost under load and its standby takes over: what an agent
was told stays true, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from tests.database import Databases
from tests.faults.conftest import House, furnished
from tests.faults.pair import Pair
from tests.faults.test_kills import BROKEN, check, settled
from tests.gateway.agent import Agent, Reply
from tests.processes import Stack

AGENTS = 8
BETWEEN_S = 1.0
LEASE_S = "20"
URLS = ("DATABASE_URL", "DATABASE_OWNER_URL")
log = logging.getLogger(__name__)


@pytest.fixture
def pair(databases: Databases, fresh_database: dict[str, str], folder: Path) -> Iterator[Pair]:
    """With the fresh database and all others of this run."""
    with Pair(databases.admin, folder) as pair:
        yield pair


@pytest.fixture
def house(
    own_stack: Stack, fresh_database: dict[str, str], pair: Pair, tmp_path: Path
) -> Iterator[House]:
    moved = {name: pair.url(fresh_database[name]) for name in URLS}
    yield from furnished(own_stack, fresh_database | moved, tmp_path, LEASE_S)


class Load:
    """Agents that call and call; `told` has each answer, or None where there was none."""

    def __init__(self, house: House) -> None:
        self._url, self._token = f"{house.stack.agents_url}/mcp/desk", house.token
        self._numbers = itertools.count()
        self.told: dict[str, Reply | None] = {}
        # When the last call was asked for that succeeded.
        self.succeeded_at = 0.0

    async def __aenter__(self) -> Load:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        self._is_over = asyncio.Event()
        self._agents = [asyncio.create_task(self._call_on()) for _ in range(AGENTS)]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._is_over.set()
        await asyncio.gather(*self._agents)
        await self._http.close()

    async def until_served(self, since: float) -> None:
        async with asyncio.timeout(60):
            while self.succeeded_at < since:
                await asyncio.sleep(0.01)

    async def _call_on(self) -> None:
        agent = Agent(self._http, self._url, self._token)
        while not self._is_over.is_set():
            number, asked_at = next(self._numbers), time.monotonic()
            reply = await self._call(agent, number)
            self.told[str(number)] = reply
            if succeeded(reply):
                self.succeeded_at = max(asked_at, self.succeeded_at)
            else:
                await asyncio.sleep(0.05)

    async def _call(self, agent: Agent, number: int) -> Reply | None:
        tool = "up.later" if number % 4 == 0 else "up.now"
        with suppress(*BROKEN):
            return await agent.call(tool, {"nonce": str(number)})
        return None


def succeeded(reply: Reply | None) -> bool:
    if reply is None or reply.status != 200:
        return False
    return "result" in reply.last and not reply.result.get("isError")


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.proof)])
async def test_a_standby_takes_over_and_nothing_acknowledged_is_lost(
    house: House, pair: Pair, times: int
) -> None:
    house.witness.answer()
    seconds: list[float] = []
    async with Load(house) as load:
        await load.until_served(time.monotonic())
        for _ in range(times):
            await asyncio.sleep(BETWEEN_S)
            began = time.monotonic()
            await asyncio.to_thread(pair.fail_over)
            await load.until_served(time.monotonic())
            seconds.append(time.monotonic() - began)
            await asyncio.to_thread(pair.follow)
    rows = await settled(house)

    check(house, rows, load.told)
    states = [row.state for row in rows]
    assert states.count("succeeded") > 100
    log.info("served again after %s s", ", ".join(f"{one:.2f}" for one in seconds))
    log.info("%s calls, %s", len(load.told), {one: states.count(one) for one in set(states)})
