"""The primary of a synchronous pair is lost under load and its standby takes over: what an agent
was told stays true, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.embedded.service import CannotStart
from config.installation import check_position
from tests.database import Databases
from tests.faults.conftest import House, furnished
from tests.faults.pair import Pair
from tests.faults.test_kills import BROKEN, check, settled
from tests.gateway.agent import Agent, Reply
from tests.processes import ROOT, Stack

AGENTS = 8
BETWEEN_S = 1.0
# One call of so many is run by a worker.
LATER = 4
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


@pytest.mark.long
def test_nothing_starts_on_a_standby(
    pair: Pair, fresh_database: dict[str, str], tmp_path: Path
) -> None:
    name = conninfo_to_dict(fresh_database["DATABASE_URL"])["dbname"]
    standby = make_conninfo(**pair.standby.admin | {"dbname": str(name)})

    with pytest.raises(CannotStart, match="is a standby, which takes no writes"):
        check_position(standby, tmp_path)

    done = subprocess.run(
        [sys.executable, "manage.py", "prepare", "--only-migrate"],
        env=os.environ | dict.fromkeys(URLS, standby),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: The database is a standby")


class Load:
    """Agents that call and call; `told` has each answer, or None where there was none, `seconds`
    how long each took. `name` tells its calls from those of others."""

    def __init__(self, house: House, name: str = "") -> None:
        self._url, self._token = f"{house.stack.agents_url}/mcp/desk", house.token
        self._numbers, self._name = itertools.count(), name
        self.told: dict[str, Reply | None] = {}
        self.seconds: list[float] = []
        # When the last call was asked for that succeeded.
        self.succeeded_at = 0.0
        # The same of calls that workers run.
        self.worked_at = 0.0

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

    async def until_worked(self, since: float) -> None:
        async with asyncio.timeout(60):
            while self.worked_at < since:
                await asyncio.sleep(0.01)

    async def _call_on(self) -> None:
        agent = Agent(self._http, self._url, self._token)
        while not self._is_over.is_set():
            number, asked_at = next(self._numbers), time.monotonic()
            reply = await self._call(agent, number)
            self.told[f"{self._name}{number}"] = reply
            self.seconds.append(time.monotonic() - asked_at)
            if succeeded(reply):
                self.succeeded_at = max(asked_at, self.succeeded_at)
                if number % LATER == 0:
                    self.worked_at = max(asked_at, self.worked_at)
            else:
                await asyncio.sleep(0.05)

    async def _call(self, agent: Agent, number: int) -> Reply | None:
        tool = "up.later" if number % LATER == 0 else "up.now"
        with suppress(*BROKEN):
            return await agent.call(tool, {"nonce": f"{self._name}{number}"})
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
