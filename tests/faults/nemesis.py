"""Whoever wishes the house ill: seeded, each deed written down with its beginning and end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
import redis.asyncio
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.faults.house import Child, House, now
from tests.faults.spool_disk import power_cut

Deed = Callable[[], Awaitable[None]]


class Nemesis:
    def __init__(self, house: House, *, seed: int, cut_s: float = 5.0) -> None:
        self.house, self._cut_s = house, cut_s
        self._seed = seed
        self.count: Counter[str] = Counter()
        # Two cuts at once would end with the shorter one.
        self._door = asyncio.Lock()
        self.chance = random.Random(f"{seed} nemesis")
        self.deeds: dict[str, Deed] = {
            "pause worker": self.pause_worker,
            "pause gateway": lambda: self.pause(house.gateway, self._some(0.5, 7)),
            "kill web": lambda: self.kill(house.web),
            "pause web": lambda: self.pause(house.web, self._some(0.5, 4)),
            "kill broker": lambda: self.kill(house.broker),
            "pause broker": lambda: self.pause(house.broker, self._some(0.5, 4)),
            "wipe broker": self.wipe_broker,
            "pause database": lambda: self.pause(house.database, self._some(0.5, 5)),
            "cut database": lambda: self.cut_database(self._cut_s),
            "shift clock": self.shift_clock,
            "power cut": self.power_cut,
        }
        if house.mounted:
            self.deeds["fill disk"] = self.fill_disk

    def _some(self, least: float, most: float) -> float:
        return self.chance.uniform(least, most)

    async def track(self, name: str, deed: Deed, *, times: int, every_s: float) -> None:
        """The same deed over and over, at times of its own."""
        chance = random.Random(f"{self._seed} {name}")
        for _ in range(times):
            await asyncio.sleep(chance.uniform(0.5, 1.5) * every_s)
            await deed()

    async def everything(self, *, rounds: int, every_s: float, at_once: int = 1) -> None:
        """All deeds in a shuffled order, so many times; `at_once` of them go on side by side."""
        for _ in range(rounds):
            names = sorted(self.deeds)
            self.chance.shuffle(names)
            lanes = [names[n::at_once] for n in range(at_once)]
            await asyncio.gather(*(self._one_by_one(lane, every_s * at_once) for lane in lanes))

    async def _one_by_one(self, names: list[str], every_s: float) -> None:
        for name in names:
            await asyncio.sleep(self._some(0.5, 1.5) * every_s)
            await self.deeds[name]()

    @asynccontextmanager
    async def deed(self, what: str) -> AsyncIterator[None]:
        began = now()
        self.count[what] += 1
        self.house.faults.write(began=began, what=what)
        try:
            yield
        finally:
            self.house.faults.write(began=began, ended=now(), what=what)

    async def kill(self, child: Child, *, tree: bool = False) -> None:
        await child.up.wait()
        async with self.deed(f"kill {child.name.rstrip('12')}"):
            starts = child.starts
            child.signal(signal.SIGKILL, tree=tree)
            while child.starts == starts:
                await asyncio.sleep(0.05)
            await child.up.wait()

    async def kill_database(self) -> None:
        await self.kill(self.house.database, tree=True)

    async def pause(self, child: Child, seconds: float) -> None:
        await child.up.wait()
        async with self.deed(f"pause {child.name.rstrip('12')}"):
            child.signal(signal.SIGSTOP, tree=True)
            await asyncio.sleep(seconds)
            child.signal(signal.SIGCONT, tree=True)

    async def pause_worker(self) -> None:
        """Longer than a lease: it wakes up as one that was given up for dead."""
        await self.pause(self.chance.choice(self.house.workers), self._some(3, 9))

    async def wipe_broker(self) -> None:
        async with self.deed("wipe broker"):
            client = redis.asyncio.from_url(self.house.env["REDIS_URL"])
            with contextlib.suppress(redis.RedisError, OSError):
                await client.flushall()
            await client.aclose()

    async def cut_database(self, seconds: float) -> None:
        """No connection is left, and none is let in."""
        async with self._door, self.deed("cut database"):
            await self._admit(False)
            await asyncio.sleep(seconds)
            await self._admit(True)

    async def _admit(self, admit: bool) -> None:
        name = str(conninfo_to_dict(self.house.urls["DATABASE_URL"])["dbname"])
        while True:
            try:
                await asyncio.to_thread(self._say, name, admit)
                return
            except psycopg.Error:
                await asyncio.sleep(0.5)

    def _say(self, name: str, admit: bool) -> None:
        statement = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        with self.house.databases._connect() as admin:
            admin.execute(statement.format(sql.Identifier(name), sql.Literal(admit)))
            if not admit:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    [name],
                )

    async def fill_disk(self) -> None:
        """Not a byte is left where the database writes."""
        async with self.deed("fill disk"):
            balloon = self.house.home / "disk" / "balloon"
            await asyncio.to_thread(_fill, balloon)
            await asyncio.sleep(self._some(2, 5))
            balloon.unlink()
            await self.house.database.up.wait()

    async def shift_clock(self) -> None:
        """One process believes it is another hour."""
        child = self.chance.choice([self.house.web, self.house.gateway, *self.house.workers])
        async with self.deed("shift clock"):
            clock = self.house.home / f"{child.name}.clock"
            clock.write_text(str(self.chance.choice([-3600, -30, 30, 3600])))
            await asyncio.sleep(self._some(3, 6))
            clock.write_text("0")

    async def power_cut(self) -> None:
        """The database is away, and then gateway and workers lose their power: what they wrote
        and did not force to the disk is gone."""
        house = self.house
        async with self._door, self.deed("power cut"):
            await self._admit(False)
            await asyncio.sleep(self._some(2, 3))
            victims = [house.gateway, *house.workers]
            starts = [child.starts for child in victims]
            for child in victims:
                child.signal(signal.SIGKILL)
            power_cut(house.home / "data" / "spool", house.home / "synced.jsonl")
            await self._admit(True)
            for child, before in zip(victims, starts, strict=True):
                while child.starts == before:
                    await asyncio.sleep(0.05)
                await child.up.wait()


def _fill(balloon: os.PathLike[str]) -> None:
    with contextlib.suppress(OSError), open(balloon, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
