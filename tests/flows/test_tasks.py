"""Tasks of others' servers, followed by others' clients, with Countersign between them.

All stories are told in a fixture, side by side, since most of it is waiting.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from audit.models import Entry
from audit.services import Actor
from calls import services as calls
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry.models import Tool
from registry.services import set_handling
from tests.flows.house import House, open_house, rule
from tests.flows.servers import Server
from tests.flows.task_programs import SERVERS, Following, Json, following, running_servers
from tests.gateway.conftest import until
from tests.processes import Stack

pytestmark = pytest.mark.long

# Each client at a server of its own kind, and most at one of the other era.
PAIRS = [
    ("fastmcp", "fastmcp"),
    ("fastmcp", "python-1"),
    ("python-1", "python-1"),
    ("python-1", "fastmcp"),
    ("typescript-1", "typescript-1"),
    ("typescript-1", "python-2"),
    ("typescript-2", "typescript-2"),
    ("typescript-2", "typescript-1"),
    ("typescript-2-legacy", "python-1"),
]
IDS = [" at ".join(pair) for pair in PAIRS]
# ext-tasks asks a server of 2025-11-25 for its result only once its task has ended, and on the way
# of the result is where such a server asks. So directly nothing is asked there either.
ASKED = [pair for pair in PAIRS if pair[0] != "typescript-2-legacy"]
PATIENCE_S = 420.0
# So many clients' programs at once.
AT_ONCE = 6

Pair = tuple[str, str]
Story = tuple[Json, list[Json], list[str]]
Told = dict[tuple[Pair, str], Story | BaseException]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Its worker is stopped, and killed."""
    with Stack(tmp_path_factory.mktemp("tasks")) as stack:
        stack.env |= {"COUNTERSIGN_LEASE_S": "5", "COUNTERSIGN_STOP_WITHIN_S": "0.5"}
        yield stack


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    with running_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="module")
def house(lasting_database: None, own: Stack, servers: dict[str, Server]) -> House:
    assert own.worker
    house = open_house(own, servers.values())
    rule(Effect.ALLOW, "*", position=900)
    for tool in Tool.objects.all():
        set_handling(
            tool, by=None, mode="background", timeout_s=900, safe_to_repeat=False, repeats="allow"
        )
    return house


Find = Callable[[], Awaitable[Call | None]]


async def goes_on(follower: Following, find: Find) -> None:
    """Its client waits for the end."""


async def cancelled_by_agent(follower: Following, find: Find) -> None:
    await is_under_way(find)
    await follower.until("status")
    await follower.cancel()


async def cancelled_by_person(follower: Following, find: Find) -> None:
    call = await is_under_way(find)
    await sync_to_async(calls.cancel)(call.pk, by=Actor("person", 1, "olga"))


async def is_under_way(find: Find) -> Call:
    """Its server has made a task of it."""

    async def made() -> Call | None:
        found = await find()
        return found if found and found.upstream_task else None

    found: Call = await until(made, seconds=PATIENCE_S)
    return found


STORIES = {
    "steps": ("steps", goes_on),
    "asks": ("asks", goes_on),
    "left": ("lasts", cancelled_by_agent),
    "stopped": ("lasts", cancelled_by_person),
}
KEYS = [(pair, story) for pair in PAIRS for story in STORIES]


@pytest.fixture(scope="module")
def told(house: House) -> Told:
    keys = [key for key in KEYS if key[1] != "asks" or key[0] in ASKED]

    async def tell_all() -> list[Story | BaseException]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, pair: Pair, story: str) -> Story:
            kind, act = STORIES[story]
            async with room, asyncio.timeout(PATIENCE_S):
                return await tell(house, pair, kind, number, act)

        telling = (one(KEYS.index(key), *key) for key in keys)
        return await asyncio.gather(*telling, return_exceptions=True)

    return dict(zip(keys, asyncio.run(tell_all()), strict=True))


async def tell(house: House, pair: Pair, kind: str, number: int, act: Any) -> Story:
    client, slug = pair
    tool, arguments = SERVERS[slug].asked(kind, number)
    url = house.url(slug)
    async with following(client, url, house.token, tool, arguments) as follower:
        await act(follower, partial(call_of, slug, tool, arguments))
        end = await follower.until("ended")
        return end, follower.said, follower.messages()


async def call_of(slug: str, tool: str, arguments: Json) -> Call | None:
    async for call in Call.objects.filter(tool_name=f"{slug}.{tool}"):
        if json.loads(bytes(call.arguments)) == arguments:
            return call
    return None


def story_of(told: Told, pair: Pair, story: str) -> Story:
    it = told[pair, story]
    if isinstance(it, BaseException):
        raise it
    return it


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_every_step_reaches_the_client_and_the_result(pair: Pair, told: Told) -> None:
    end, _, messages = story_of(told, pair, "steps")

    assert (end["status"], end["text"]) != ("failed", ""), end
    assert end["status"] == "completed", end
    steps = SERVERS[pair[1]].said
    seen = [step for step in steps if any(step in message for message in messages)]
    # Server Everything takes a second for each, so that a busy machine may miss one.
    assert seen == list(steps) or (pair[1] == "typescript-1" and seen[-1] == steps[-1]), messages


@pytest.mark.parametrize("pair", ASKED, ids=" at ".join)
def test_what_it_asks_reaches_the_client_and_the_answer_the_server(pair: Pair, told: Told) -> None:
    end, said, _ = story_of(told, pair, "asks")

    asked = [one["message"] for one in said if one["type"] == "asked"]
    assert len(asked) == 1, said
    assert SERVERS[pair[1]].question in asked[0]
    assert end["status"] == "completed", end
    assert SERVERS[pair[1]].answered in end["text"]


@pytest.mark.parametrize("story", ["left", "stopped"])
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
async def test_who_cancels_it_stops_it_at_its_server(pair: Pair, story: str, told: Told) -> None:
    end, _, _ = story_of(told, pair, story)

    assert end["status"] in ("cancelled", "failed"), end
    tool, arguments = SERVERS[pair[1]].asked("lasts", KEYS.index((pair, story)))
    call = await call_of(pair[1], tool, arguments)
    assert call is not None
    # Nobody has to find out: its server said that it stopped.
    assert call.state == State.CANCELLED, call.outcome


@pytest.mark.parametrize(("way", "first"), [("stopped", 600), ("killed", 500)])
async def test_a_worker_that_ends_loses_none(
    told: Told, house: House, own: Stack, way: str, first: int
) -> None:
    """Last: the next worker takes over whatever the one before had followed, in its sessions."""
    under_way: list[Call] = []

    async def replace_worker() -> None:
        end = own.worker.stop if way == "stopped" else own.worker.kill
        await asyncio.to_thread(end)
        # Here: a process does not outlive the thread that started it.
        own.worker.start()

    async def tell_one(number: int, pair: Pair) -> Json:
        client, slug = pair
        tool, arguments = SERVERS[slug].asked("steps", number)
        async with following(client, house.url(slug), house.token, tool, arguments) as follower:
            under_way.append(await is_under_way(partial(call_of, slug, tool, arguments)))
            if len(under_way) == len(chosen):
                await replace_worker()
            return await follower.until("ended")

    chosen = [pair for pair in PAIRS if pair[0] == pair[1]]
    async with asyncio.timeout(PATIENCE_S):
        ends = await asyncio.gather(
            *(tell_one(first + number, pair) for number, pair in enumerate(chosen))
        )

    assert [end["status"] for end in ends] == ["completed"] * len(chosen), ends
    for call in under_way:
        actions = Entry.objects.filter(call_id=call.pk).values_list("action", flat=True)
        seen = [action async for action in actions]
        assert seen.count("call.taken_over") <= 1, seen
        assert (await Call.objects.aget(pk=call.pk)).fence <= 2
    taken_over = Entry.objects.filter(
        action="call.taken_over", call_id__in=[call.pk for call in under_way]
    )
    assert await taken_over.acount() > 0
