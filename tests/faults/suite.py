"""One run: a house, a crowd, a nemesis, and then the truth."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import psycopg

from tests.faults import truth
from tests.faults.clients import Crowd, Member, long_errands
from tests.faults.counters import miscounted
from tests.faults.house import House, WiredHouse
from tests.faults.nemesis import Deed, Nemesis
from tests.faults.paper import Paper
from tests.faults.plan import Plan


@dataclass
class Report:
    plan: Plan
    asked: int = 0
    seconds: float = 0.0
    received: int = 0
    settled_s: float = 0.0
    deeds: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        of = lambda counts: ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))  # noqa: E731
        lines = [
            f"seed {self.plan.seed}: {self.asked} calls asked in {self.seconds:.0f} s, "
            f"{self.received} received, settled {self.settled_s:.1f} s after the last fault",
            f"faults: {of(self.deeds)}",
            f"told: {of(self.told)}",
            f"record: {of(self.states)}",
            *self.notes,
        ]
        if not self.violations:
            return [*lines, "no violation"]
        return [*lines, f"{len(self.violations)} violations, the first: {self.violations[0]}"]


async def run(plan: Plan, *, home: Path | None = None) -> Report:
    home = home or Path(tempfile.mkdtemp(prefix="countersign-faults-", dir="/tmp"))
    home.chmod(0o711)
    async with WiredHouse(
        home, broken=plan.broken, COUNTERSIGN_LEASE_S=f"{plan.lease_s:g}"
    ) as house:
        await house.count_moves()
        report = await _run(house, plan)
    if not report.violations:
        shutil.rmtree(home, ignore_errors=True)
    else:
        report.notes.append(f"records and logs: {home}")
    return report


async def _run(house: House, plan: Plan) -> Report:
    report, began = Report(plan), time.monotonic()
    if not house.mounted:
        report.notes.append("the disk was not filled: only root may mount one small enough")
    await _calm(house, plan)
    crowd = Crowd(house, plan)
    running = asyncio.create_task(crowd.run())
    nemesis = Nemesis(house, seed=plan.seed, cut_s=plan.cut_s)
    await asyncio.gather(*_tracks(nemesis, plan))
    until = time.monotonic() + plan.calls_within_s
    while not crowd.is_through(plan.calls) and time.monotonic() < until:
        await asyncio.sleep(0.2)
    ended = time.monotonic()
    crowd.enough.set()
    rows_live = await _settled(house, plan.settle_s)
    report.settled_s = time.monotonic() - ended
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running, 10 if rows_live else 30)
    if not rows_live:
        # What was approved since.
        await _settled(house, plan.settle_s)
    report.asked, report.deeds = crowd.asked, nemesis.count
    if plan.misbehaving:
        dealt = "every case" if crowd.pack.through else f"{crowd.pack.done} cases"
        report.notes.append(f"{dealt} of misbehaviour, of {crowd.pack.size}, was asked for")
    report.seconds = time.monotonic() - began
    wrong = await _verified(house, plan, report) + await miscounted(house)
    _judge(house, plan, report, wrong)
    return report


async def _calm(house: House, plan: Plan) -> None:
    """Nobody does any harm, and calls last longer than a lease."""
    async with aiohttp.ClientSession() as http:
        member = Member(house, http)
        errands = long_errands(3, int(plan.lease_s * 1600))
        most_s = plan.lease_s * 1.6 + plan.settle_s

        async def one(number: int) -> None:
            errand = errands[number]
            house.told.write(**errand.asked)
            told = {"told": "nothing", "why": "did not end"}
            with contextlib.suppress(TimeoutError):
                told = await asyncio.wait_for(member.run(errand), most_s)
            house.told.write(nonce=errand.nonce, **told)

        await asyncio.gather(*map(one, range(len(errands))))


def _tracks(nemesis: Nemesis, plan: Plan) -> list[asyncio.Task[None]]:
    house = nemesis.house
    tracks = []
    if plan.only:
        for name in plan.only.split(","):
            deed = nemesis.deeds[name]
            tracks.append(nemesis.track(name, deed, times=plan.rounds, every_s=2.0))
        return [asyncio.create_task(track) for track in tracks]
    # A worker takes longer to start than it then lives; others are up again at once.
    each = -(-plan.workers // len(house.workers))
    deeds: list[tuple[str, Deed, int, float]] = [
        (worker.name, partial(nemesis.kill, worker), each, 0.3) for worker in house.workers
    ]
    deeds.append(("gateways", partial(nemesis.kill, house.gateway), plan.gateways, 0.9))
    deeds.append(("databases", nemesis.kill_database, plan.databases, 0.9))
    for name, deed, times, pace in deeds:
        if times:
            every_s = plan.seconds * pace / times
            tracks.append(nemesis.track(name, deed, times=times, every_s=every_s))
    if plan.rounds:
        every_s = plan.seconds / plan.rounds / len(nemesis.deeds)
        tracks.append(nemesis.everything(rounds=plan.rounds, every_s=every_s, at_once=plan.at_once))
    return [asyncio.create_task(track) for track in tracks]


async def _settled(house: House, within_s: float) -> bool:
    """Until nothing is live any more, or the time for that is over: then True."""
    live = "SELECT count(*) FROM calls_call WHERE state = ANY(%s)"
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg.Error):
            admin = await asyncio.to_thread(house.databases.superuser, house.urls)
            with admin:
                # What is held waits for people, who come when its agent tells them.
                row = admin.execute(live, [list(truth.LIVE - {"held"})]).fetchone()
            spooled = list((house.home / "data").glob("spool/*/*.reply"))
            if row == (0,) and not spooled:
                return False
        await asyncio.sleep(0.5)
    return True


async def _verified(house: House, plan: Plan, report: Report) -> list[str]:
    """What `audit_verify` finds wrong, once the sealer has sealed all there is."""
    deadline = time.monotonic() + plan.settle_s
    while True:
        code, said = await house.verify()
        if code != 0 or " 0 are not sealed yet" in said or time.monotonic() > deadline:
            break
        await asyncio.sleep(1)
    report.notes.append(f"audit_verify: {said.splitlines()[-1] if said else 'nothing'}")
    if code == 0 and " 0 are not sealed yet" in said:
        return []
    return [f"audit_verify ended with {code}: {said}"]


def _judge(house: House, plan: Plan, report: Report, wrong: list[str]) -> None:
    with house.databases.superuser(house.urls) as admin:
        found = truth.gather(house.home, admin, lease_s=plan.lease_s, crowd=plan.crowd)
    report.received = sum(map(len, found.received.values()))
    report.states = Counter(row.state for row in found.rows)
    report.told = Counter(lines[-1].get("told", "nothing") for lines in found.told.values())
    late = sum(map(len, found.late.values()))
    report.notes.append(f"kept in the spool: {len(found.kept)} replies; late replies: {late}")
    unknown = truth.count_unknown(found)
    report.notes.append(
        f"unknown: {unknown.by_servers} by what servers did, {unknown.let_go} let go by clients, "
        f"{unknown.by_faults} by faults, which may explain {unknown.most}"
    )
    report.violations = truth.check(found) + wrong
    violations = Paper(house.home / "violations.jsonl")
    for violation in report.violations:
        violations.write(violation=violation)
