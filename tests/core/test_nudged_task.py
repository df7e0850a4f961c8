"""A task that works when it is nudged, and every so often."""

import asyncio

import pytest

from core.nudged_task import NudgedTask


@pytest.mark.parametrize("turns", range(6))
async def test_it_ends_when_it_is_closed_at_the_moment_of_a_nudge(turns: int) -> None:
    """`asyncio.wait_for` of Python 3.11 takes a cancellation for the event that came with it."""
    worked = asyncio.Event()

    async def work(_is_nudged: bool) -> None:
        worked.set()

    task = NudgedTask("a test's", work, every_s=lambda: 600)
    task.start()
    task.nudge()
    await worked.wait()
    for _ in range(3):
        await asyncio.sleep(0)

    task.nudge()
    for _ in range(turns):
        await asyncio.sleep(0)
    closing = asyncio.create_task(task.aclose())
    ended, _ = await asyncio.wait({closing}, timeout=5)
    assert ended
