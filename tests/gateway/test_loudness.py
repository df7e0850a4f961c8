"""From where on a server of an earlier revision logs: as its agents wish, who share it."""

import asyncio
from typing import Any

import pytest

from tests.gateway.agent import LEGACY, META, Agent, Reply
from tests.gateway.conftest import Play, until
from tests.gateway.test_hearing import LINES, heard
from tests.upstreams.loud import Loud
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)

running_recorder = running(Loud)


async def say(agent: Agent, level: str = "", **more: Any) -> Reply:
    meta = {f"{META}logLevel": level} if level else {}
    return await agent.call("rec.say", {"lines": LINES, **more}, _meta=meta)


async def test_it_is_told_once_what_its_agent_wishes(play: Play, upstream: Loud) -> None:
    agent = play(LEGACY[0])
    await agent.ask("logging/setLevel", {"level": "debug"})

    replies = [await agent.call("rec.say", {"lines": LINES}) for _ in range(2)]

    assert [heard(reply) for reply in replies] == [LINES, LINES]
    assert upstream.told == ["debug"]


async def test_one_agents_wish_is_no_other_agents(play: Play, upstream: Loud) -> None:
    curious = asyncio.create_task(say(play(), "debug", wait=True))
    await until(lambda: told(upstream, ["debug"]))

    calm = await say(play(), "warning")
    silent = await say(play())

    assert upstream.told == ["debug"]
    assert (heard(calm), heard(silent)) == (LINES[1:], [])
    upstream.release()
    assert heard(await curious) == LINES


async def told(upstream: Loud, levels: list[str]) -> bool:
    return upstream.told == levels


async def test_it_need_not_say_more_than_anybody_wants(play: Play, upstream: Loud) -> None:
    agent = play()

    for level in ("debug", "error", "warning"):
        await say(agent, level)

    assert upstream.told == ["debug", "error", "warning"]


async def test_a_server_is_told_nothing_where_nobody_wishes_or_it_has_no_log(
    play: Play, upstream: Loud
) -> None:
    await say(play())
    assert upstream.told == []

    upstream.logs = False
    upstream.greeted.clear()
    assert (await say(play(), "debug")).text == "done"
    assert upstream.told == []
