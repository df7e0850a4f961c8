"""An older release and this one beside each other on one database, under load: no call fails, none
is sent twice.

OLD_RELEASE names the older one, as Git does; by default it is the commit before. Its migrations
must be this one's, or all that came since must be such that it goes on beside them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.conftest import House, furnished
from tests.faults.test_failover import Load, succeeded
from tests.faults.test_kills import check, settled
from tests.processes import ROOT, Stack

pytestmark = [pytest.mark.alone, pytest.mark.long]

OLD_RELEASE = os.environ.get("OLD_RELEASE", "HEAD~1")
EACH_S = 4.0
LEASE_S = "20"
log = logging.getLogger(__name__)


def git(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *argv], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    """The older release's files."""
    tree = tmp_path / "release"
    made = git("worktree", "add", "--detach", str(tree), OLD_RELEASE)
    if made.returncode:
        pytest.skip(f"needs a clone with {OLD_RELEASE}: {made.stderr.strip()[:100]}")
    yield tree
    git("worktree", "remove", "--force", str(tree))


@pytest.fixture
def house(own_stack: Stack, fresh_database: dict[str, str], tmp_path: Path) -> Iterator[House]:
    yield from furnished(own_stack, fresh_database, tmp_path, LEASE_S)


@pytest.fixture
def old(house: House, source: Path, tmp_path: Path) -> Iterator[House]:
    """The same house, as the older release's processes serve it."""
    folder = tmp_path / "old"
    folder.mkdir()
    with Stack(folder, root=source) as stack:
        stack.env = dict(house.stack.env)
        assert stack.agents
        yield replace(house, stack=stack)


async def served(load: Load, what: str) -> None:
    """For a while; what it took is logged, as nothing of it is a promise."""
    began, before = time.monotonic(), len(load.seconds)
    await load.until_worked(began)
    await asyncio.sleep(EACH_S)
    took = sorted(load.seconds[before:])
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    log.info("%s: %d calls, p50 %.0f ms, p99 %.0f ms", what, len(took), middle * 1e3, late * 1e3)


async def test_old_and_new_serve_each_other_and_no_call_fails(house: House, old: House) -> None:
    house.witness.answer()
    async with Load(house, "new") as new_load, Load(old, "old") as old_load:
        await served(old_load, "old endpoint, new worker")
        # A new process first, then the old one: as a rolling upgrade does, and its way back.
        assert await asyncio.to_thread(lambda: old.stack.worker)
        await asyncio.to_thread(house.stack.worker.stop, seconds=60)
        await served(new_load, "new endpoint, old worker")
        await asyncio.to_thread(house.stack.worker.start)
        await served(new_load, "new endpoint, both workers")
    rows = await settled(house)

    told = {**new_load.told, **old_load.told}
    check(house, rows, told)
    assert {row.state for row in rows} == {"succeeded"}
    assert all(map(succeeded, told.values()))
    assert len(told) > 100
