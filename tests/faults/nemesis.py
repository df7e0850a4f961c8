"""Whoever wishes the house ill: seeded, each deed written down with its beginning and end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
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
STOP_WITHIN_S = 20.0


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
            "kill upstream": lambda: self.kill(self._upstream(), what="kill upstream"),
            "pause upstream": lambda: self.pause(
                self._upstream(), self._some(0.5, 4), what="pause upstream"
            ),
            "kill sealer": lambda: self.kill(house.sealer, what="kill sealer"),
            "hang database": lambda: self.hang_database(answers_only=False),
            "hang answers": lambda: self.hang_database(answers_only=True),
            "hang broker": self.hang_broker,
            "lose cancels": self.lose_cancels,
            "kill supervisor": self.kill_supervisor,
            "restart supervisor": self.restart_supervisor,
        }
        if house.mounted:
            self.deeds["fill disk"] = self.fill_disk

    def _upstream(self) -> Child:
        return self.chance.choice([self.house.mock, self.house.misbehaving])

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

    async def kill(self, child: Child, *, tree: bool = False, what: str = "") -> None:
        await child.up.wait()
        async with self.deed(what or f"kill {child.name.rstrip('12')}"):
            starts = child.starts
            child.signal(signal.SIGKILL, tree=tree)
            while child.starts == starts:
                await asyncio.sleep(0.05)
            await child.up.wait()

    async def kill_database(self) -> None:
        await self.kill(self.house.database, tree=True)

    async def pause(self, child: Child, seconds: float, *, what: str = "") -> None:
        await child.up.wait()
        async with self.deed(what or f"pause {child.name.rstrip('12')}"):
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

    async def hang_database(self, *, answers_only: bool) -> None:
        """For one process: it hears nothing more, or it is not heard either."""
        name = self.chance.choice(sorted(self.house.wires))
        wire = self.house.wires[name]
        async with self.deed("hang answers" if answers_only else "hang database"):
            if answers_only:
                wire.hold_answers()
            else:
                wire.hold()
            await asyncio.sleep(self._some(0.5, 6))
            wire.let_go()

    async def hang_broker(self) -> None:
        async with self.deed("hang broker"):
            self.house.broker_wire.hold()
            await asyncio.sleep(self._some(0.5, 4))
            self.house.broker_wire.let_go()

    async def lose_cancels(self) -> None:
        """Nobody hears of a cancellation: neither those who run a call, by their listeners, nor a
        server, which loses some by itself."""
        async with self.deed("lose cancels"):
            for _ in range(15):
                with contextlib.suppress(psycopg.Error):
                    await asyncio.to_thread(self._cut_listeners)
                await asyncio.sleep(0.2)

    def _cut_listeners(self) -> None:
        with self.house.databases._connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'countersign listener%'"
            )

    async def kill_supervisor(self) -> None:
        """With it goes at once whatever dies with its parent, the database by its own signal."""
        house = self.house
        async with self._supervised("kill supervisor") as everybody:
            for child in everybody:
                database = child is house.database
                child.signal(signal.SIGINT if database else signal.SIGKILL)
            await self._gone(everybody)

    async def restart_supervisor(self) -> None:
        """Those that take orders first, those that carry them out next, what all need last."""
        house = self.house
        async with self._supervised("restart supervisor"):
            for together in ([house.web, house.gateway], house.workers, [house.sealer]):
                for child in together:
                    child.signal(signal.SIGTERM)
                await self._gone(together)
            house.broker.signal(signal.SIGTERM)
            house.database.signal(signal.SIGINT)
            await self._gone([house.broker, house.database])

    @asynccontextmanager
    async def _supervised(self, what: str) -> AsyncIterator[list[Child]]:
        """All that `up` keeps running; afterwards it is started as `up` does it."""
        house = self.house
        services = [house.database, house.broker]
        others = [house.web, house.gateway, *house.workers, house.sealer]
        async with self._door, self.deed(what):
            for child in [*services, *others]:
                child.held = True
            try:
                yield [*others, *services]
            finally:
                for together in (services, others):
                    for child in together:
                        child.held = False
                    await asyncio.gather(*(child.up.wait() for child in together))

    async def _gone(self, children: list[Child]) -> None:
        """Whoever takes longer than `up` gives it is killed."""
        deadline = time.monotonic() + STOP_WITHIN_S
        while any(child.up.is_set() for child in children):
            if time.monotonic() > deadline:
                for child in children:
                    child.signal(signal.SIGKILL, tree=True)
            await asyncio.sleep(0.05)

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
