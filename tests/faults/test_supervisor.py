"""`up` itself is killed, stopped and renewed in the middle of forty calls, and goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter

import psutil
import pytest

from config.rolling_restart import RENEW
from tests.config.up import all_gone
from tests.faults.test_restore import (
    APPROVED,
    HELD,
    OPEN,
    QUEUED,
    Scene,
    forty_calls,
    scene,
    until,
)

AT_A_TIME = 4
NONCES = """
    SELECT convert_from(c.arguments, 'UTF8')::json->>'nonce', c.state, c.executed,
        (SELECT count(*) FROM approvals_vote v WHERE v.approval_id = c.id AND v.approve)
    FROM calls_call c
"""


@pytest.mark.alone
@pytest.mark.long
async def test_a_supervisor_that_is_killed_stopped_and_renewed_sends_nothing_twice(folder):
    async with scene(folder, COUNTERSIGN_LEASE_S="5") as here:
        held = await forty_calls(here)

        await killed(here)
        await until(lambda: here.received.total() >= 8)
        await stopped(here)
        for call_id in held[:APPROVED]:
            await here.approve(call_id)
        await until(lambda: here.received.total() >= 16)
        os.kill(here.up.process.pid, RENEW)
        await until(lambda: here.up.says("every process was restarted"))
        await until(lambda: len(here.read(OPEN)) == HELD - APPROVED)

        assert set(here.received.values()) == {1}
        check(here)
        assert "entries hold" in await here.manage("audit_verify")


async def killed(here: Scene) -> None:
    """With it goes what it started; the next start finds what was left."""
    family = here.up.family()
    assert len(family) > 5
    here.up.process.send_signal(signal.SIGKILL)
    here.up.process.wait()
    assert await asyncio.to_thread(all_gone, family, seconds=30)
    await asyncio.to_thread(here.up.start)


async def stopped(here: Scene) -> None:
    family: list[psutil.Process] = here.up.family()
    here.up.process.terminate()
    assert await asyncio.to_thread(here.up.ends) == 0
    assert await asyncio.to_thread(all_gone, family)
    await asyncio.to_thread(here.up.start)


def check(here: Scene) -> None:
    received, states = here.received, Counter[str]()
    for nonce, state, executed, votes in here.read(NONCES):
        states[state] += 1
        if state == "succeeded":
            assert received[nonce] == 1, nonce
        if executed == "no" or state == "held":
            assert received[nonce] == 0, nonce
        if nonce.startswith("held") and received[nonce]:
            assert votes == 1, nonce
    assert states["held"] == HELD - APPROVED
    # Only what was under way as it was killed, and what could not wait to end.
    assert states["unknown"] <= 2 * AT_A_TIME
    assert states["succeeded"] + states["unknown"] == QUEUED + APPROVED, states
