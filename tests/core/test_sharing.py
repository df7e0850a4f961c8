"""One look for many, and never one that began before it was asked for."""

import asyncio

from core import sharing


async def test_who_asks_together_shares_one_answer() -> None:
    asked: list[int] = []

    async def look() -> int:
        asked.append(1)
        await asyncio.sleep(0)
        return len(asked)

    answers = await asyncio.gather(*(sharing.here().ask("key", look) for _ in range(5)))

    assert (answers, len(asked)) == ([1] * 5, 1)


async def test_who_comes_later_gets_a_later_answer() -> None:
    go = asyncio.Event()
    world = {"state": "old"}

    async def look() -> str:
        seen = world["state"]
        await go.wait()
        return seen

    first = asyncio.create_task(sharing.here().ask("key", look))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    world["state"] = "new"
    later = [asyncio.create_task(sharing.here().ask("key", look)) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()

    assert await first == "old"
    assert await asyncio.gather(*later) == ["new"] * 3


async def test_who_leaves_takes_nothing_from_the_others() -> None:
    go = asyncio.Event()

    async def look() -> str:
        await go.wait()
        return "seen"

    leaving = asyncio.create_task(sharing.here().ask("key", look))
    staying = asyncio.create_task(sharing.here().ask("key", look))
    await asyncio.sleep(0)
    leaving.cancel()
    go.set()

    assert await staying == "seen"
