"""What one endpoint begins and the other goes on with, whatever is in front of both: streams,
cancellations and subscriptions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

from tests.faults.clients import BROKEN
from tests.faults.test_restore import until
from tests.gateway.agent import TASKS, Agent
from tests.gateway.test_listening import CHANGED, following, get_stream, listening
from tests.gateway.test_resuming import Event, back, events
from tests.gateway.test_streams import cancelled
from tests.gateway.test_task_news import told

STREAMS, STEPS = 12, 6
CANCELS = 8
LISTENERS = 4
MINUTES_MS = 120_000
TAKEN_OUT = """
import django; django.setup()
from accounts.models import User
from registry import services
from registry.models import Server, Toolset
bob = User.objects.get(username="bob")
services.{verb}_server(Toolset.objects.get(slug="desk"), Server.objects.get(slug="up"), by=bob)
"""


class Endpoints(Protocol):
    """Two of them, at one address for agents; and what else there is of their installation."""

    def agent(self, revision: str = ..., **capabilities: Any) -> Agent: ...

    async def approve(self, call_id: str) -> None: ...

    async def elsewhere(self, program: str) -> None: ...

    @property
    def received(self) -> Counter[str]: ...


async def streams_go_on(here: Endpoints, lose_one: Callable[[], None]) -> None:
    """Those of the lost endpoint break, and the other one tells the rest of the same calls."""
    agent = here.agent("2025-11-25")
    await agent.begin()
    streams = [Stream(agent, f"stream {n}") for n in range(STREAMS)]
    answers = [asyncio.create_task(stream.read()) for stream in streams]
    await asyncio.gather(*(stream.begun.wait() for stream in streams))
    lose_one()
    async with asyncio.timeout(120):
        ended = await asyncio.gather(*answers)

    assert {event.data["result"]["content"][0]["text"] for event in ended} == {"done"}
    assert [event.data["id"] for event in ended] == [stream.nonce for stream in streams]
    assert 0 < sum(stream.breaks for stream in streams) < STREAMS
    for stream in streams:
        assert stream.steps == sorted(set(stream.steps)), "nothing twice, and in order"
        assert here.received[stream.nonce] == 1


class Stream:
    """One call's, taken up again wherever it breaks."""

    def __init__(self, agent: Agent, nonce: str) -> None:
        self.agent, self.nonce = agent, nonce
        self.begun = asyncio.Event()
        self.breaks = 0
        self.steps: list[int] = []
        self._last = ""

    async def read(self) -> Event:
        """Its answer."""
        arguments = {"nonce": self.nonce, "ms": 0, "steps": STEPS}
        message = await self.agent.message(
            "tools/call",
            {"name": "up.later", "arguments": arguments, "_meta": {"progressToken": self.nonce}},
            request_id=self.nonce,
        )
        answer = await self._hear(self.agent.open(message))
        while answer is None:
            self.breaks += 1
            answer = await self._hear(back(self.agent, self._last))
        return answer

    async def _hear(self, opened: Any) -> Event | None:
        try:
            async with opened as response:
                async for event in events(response):
                    self._last = event.id or self._last
                    self.begun.set()
                    if event.step is not None:
                        self.steps.append(event.step)
                    elif event.data:
                        return event
        except BROKEN:
            pass
        return None


async def cancellations_arrive(here: Endpoints) -> None:
    """Each at whichever endpoint, about a call that runs in whichever."""
    agent = here.agent("2025-06-18")
    await agent.begin()
    names = [f"cancelled {n}" for n in range(CANCELS)]

    async def ask(name: str) -> Any:
        params = {"name": "up.now", "arguments": {"nonce": name, "ms": MINUTES_MS}}
        message = await agent.message("tools/call", params, request_id=name)
        return await agent.post(message, headers=agent.headers(message))

    asked = [asyncio.create_task(ask(name)) for name in names]
    await until(lambda: all(here.received[name] for name in names))
    for name in names:
        reply = await agent.post(cancelled(name), headers=agent.headers({}))
        assert reply.status == 202
    async with asyncio.timeout(20):
        replies = await asyncio.gather(*asked)
    assert all(reply.result["isError"] for reply in replies)
    assert all("ancelled" in reply.text for reply in replies), replies[0].text


async def listeners_hear(here: Endpoints) -> None:
    """At both endpoints: of a person's decision, and of a list that changed."""
    agent, earlier = here.agent(**TASKS), here.agent("2025-11-25")
    await earlier.begin()
    held = await agent.call("up.held", {"nonce": "heard of", "ms": 0})
    wanted = {"taskIds": [held.result["taskId"]], "toolsListChanged": True}
    async with AsyncExitStack() as on:
        listens = [await listening(agent, on, wanted) for _ in range(LISTENERS)]
        beside = [await get_stream(earlier, on) for _ in range(LISTENERS)]
        for one in listens:
            await following(one)
        await here.approve(held.call_id)
        for one in listens:
            await told(one, "completed")
        await here.elsewhere(TAKEN_OUT.format(verb="remove"))
        for one in [*listens, *beside]:
            assert (await following(one))["method"] == CHANGED
        await here.elsewhere(TAKEN_OUT.format(verb="add"))
