"""What the agent sees while a person decides, by what its client understands.

The table of that name is in docs/en/guides/connect-clients.md. Each client waits for several
calls at once, and all clients at the same time: every story is told in the fixtures, and the
tests look at how it went.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async

from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from tests.database import Cleaner
from tests.flows.house import House, decide, open_house, rule
from tests.flows.servers import Server
from tests.flows.tasks import visiting_with_tasks
from tests.flows.visitors import Json, Visitor, visiting
from tests.gateway.conftest import until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.long

# 2026-07-28: those that can show their user a page, and those that declare nothing.
OPENS = ("python-opens", "typescript-opens")
PLAIN = ("python", "typescript")
LEGACY = ("python-legacy", "typescript-legacy", "typescript-v1", "typescript-v1.22")
CLIENTS = ("tasks", *OPENS, *PLAIN, *LEGACY)
# A moment, and longer than a client's patience of 60 s.
SOON, LATE = 2.0, 70.0
WAITING = "Pending approval."
TOOL = "rec.erase"
COME_BACK = re.compile(r"call (countersign[._-]\w+) with (\{.*?\})")


@dataclass
class Story:
    text: str
    call_id: UUID
    steps: list[Json]
    result: Json = field(default_factory=dict)
    asked: list[Json] = field(default_factory=list)
    # How often it was told to ask again for the outcome.
    sent_back: int = 0
    sent_early: int = 0
    sent: int = 0
    state: str = ""


Ending = Callable[[Visitor, Story, "asyncio.Task[Json]"], Coroutine[Any, Any, Json]]
Told = dict[tuple[str, str], Story | BaseException]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder


@pytest.fixture(scope="module")
def house(lasting_database: None, stack: Stack, upstream: Recorder) -> House:
    assert stack.worker
    house = open_house(stack, [Server("rec", url=upstream.url)])
    rule(Effect.ALLOW, "*", position=900)
    rule(Effect.ASK, "erase", position=100)
    return house


@pytest.fixture(scope="module")
def told(house: House, upstream: Recorder, cleaner: Cleaner) -> Told:
    """By client and ending, where the decision comes soon."""
    endings: dict[str, Ending] = {
        "approved": partial(decided, house, approve=True),
        "refused": partial(decided, house, approve=False),
        "expired": partial(expired, cleaner),
        "left": partial(left, house),
    }
    return asyncio.run(tell(house, upstream, endings, after=SOON))


@pytest.fixture(scope="module")
def told_late(house: House, upstream: Recorder) -> Told:
    endings: dict[str, Ending] = {
        "approved late": partial(decided, house, approve=True),
        "approved late, silent": partial(decided, house, approve=True),
        "refused late": partial(decided, house, approve=False),
    }
    return asyncio.run(tell(house, upstream, endings, after=LATE))


async def tell(
    house: House, upstream: Recorder, endings: dict[str, Ending], *, after: float
) -> Told:
    by_client = await asyncio.gather(
        *(tell_all(client, house, upstream, endings, after=after) for client in CLIENTS)
    )
    return {key: story for stories in by_client for key, story in stories.items()}


async def tell_all(
    client: str, house: House, upstream: Recorder, endings: dict[str, Ending], *, after: float
) -> Told:
    keys = [(client, ending) for ending in endings]
    try:
        async with visitor_of(client, house) as visitor:
            stories = await asyncio.gather(
                *(
                    tell_one(visitor, upstream, " ".join(key), endings[key[1]], after)
                    for key in keys
                ),
                return_exceptions=True,
            )
    except Exception as error:
        stories = [error] * len(keys)
    return dict(zip(keys, stories, strict=True))


@asynccontextmanager
async def visitor_of(client: str, house: House) -> AsyncIterator[Visitor]:
    if client == "tasks":
        async with visiting_with_tasks(house.url(), house.token) as tasks:
            yield tasks
        return
    async with visiting(client, house.url(), house.token) as visitor:
        yield visitor


async def tell_one(
    visitor: Visitor, upstream: Recorder, text: str, ending: Ending, after: float
) -> Story:
    steps: list[Json] = []
    listens = None if "silent" in text else steps.append
    call = asyncio.create_task(visitor.call(TOOL, {"text": text}, listens))
    try:
        held = await until(partial(find_held, text), seconds=60)
        story = Story(text, held.pk, steps)
        # The time that a person takes.
        await asyncio.sleep(after)
        story.sent_early = sent(upstream, story.text)
        result = await ending(visitor, story, call)
    finally:
        call.cancel()
        await asyncio.wait([call])
    story.result = await told_in_the_end(visitor, story, result)
    story.asked = [each for each in visitor.asked if str(story.call_id) in json.dumps(each)]
    story.sent = sent(upstream, story.text)
    story.state = (await Call.objects.aget(pk=story.call_id)).state
    return story


says = sync_to_async(decide)


@sync_to_async
def find_held(text: str) -> Call | None:
    held = Call.objects.filter(state=State.HELD)
    return next((call for call in held if json.loads(bytes(call.arguments))["text"] == text), None)


def sent(upstream: Recorder, text: str) -> int:
    asked = [received.message["params"]["arguments"] for received in upstream.calls]
    return asked.count({"text": text})


async def told_in_the_end(visitor: Visitor, story: Story, result: Json) -> Json:
    """As a model does it: it reads what it is told, and calls what it is told to call."""
    while result and (
        told := re.search(r"call (countersign[._-]\w+) with (\{.*?\})", text_of(result))
    ):
        assert result["isError"]
        story.sent_back += 1
        result = await visitor.call(told[1], json.loads(told[2]))
    return result


def text_of(result: Json) -> str:
    return str(result["content"][0]["text"])


async def decided(
    house: House, visitor: Visitor, story: Story, call: "asyncio.Task[Json]", *, approve: bool
) -> Json:
    reason = "" if approve else "Not on a Friday."
    await says(story.call_id, by=house.alice, approve=approve, reason=reason)
    return await call


async def expired(
    cleaner: Cleaner, visitor: Visitor, story: Story, call: "asyncio.Task[Json]"
) -> Json:
    """An hour goes by."""
    statement = "UPDATE approvals_approval SET decide_by = now() WHERE call_id = %s"
    await asyncio.to_thread(cleaner.connection.execute, statement, [story.call_id])
    return await call


async def left(house: House, visitor: Visitor, story: Story, call: "asyncio.Task[Json]") -> Json:
    """Its user presses Stop; where that leaves the call waiting, the agent asks again."""
    call.cancel()
    await asyncio.wait([call])
    if story.text.split()[0] in ("tasks", *LEGACY):
        await until(partial(is_over, story))
        return {}
    again = asyncio.create_task(visitor.call(TOOL, {"text": story.text}))
    await until(Entry.objects.filter(call_id=story.call_id, action="call.joined").aexists)
    await says(story.call_id, by=house.alice, approve=True)
    return await again


async def is_over(story: Story) -> bool:
    return (await Call.objects.aget(pk=story.call_id)).state != State.HELD


def story_of(told: Told, client: str, ending: str) -> Story:
    story = told[client, ending]
    if isinstance(story, BaseException):
        raise story
    return story


def is_the_servers(story: Story) -> bool:
    given = {"content": [{"type": "text", "text": story.text}]}
    return {name: story.result.get(name) for name in given} == given and not story.result.get(
        "isError"
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_it_gets_the_servers_answer_once_a_person_says_yes(client: str, told: Told) -> None:
    story = story_of(told, client, "approved")

    assert is_the_servers(story), story.result
    assert (story.sent_early, story.sent) == (0, 1)
    assert story.state == State.SUCCEEDED
    assert not story.sent_back


@pytest.mark.parametrize("client", CLIENTS)
def test_it_hears_who_said_no_and_why(client: str, told: Told) -> None:
    story = story_of(told, client, "refused")

    assert story.result["isError"]
    assert "Denied by alice. Not on a Friday." in text_of(story.result)
    assert story.sent == 0
    assert story.state == State.DENIED


@pytest.mark.parametrize("client", CLIENTS)
def test_it_hears_that_nobody_decided(client: str, told: Told) -> None:
    story = story_of(told, client, "expired")

    assert story.result["isError"]
    assert "Nobody decided in time." in text_of(story.result)
    assert story.sent == 0
    assert story.state == State.EXPIRED


@pytest.mark.parametrize("client", ["tasks", *LEGACY])
def test_it_can_withdraw_what_it_asked(client: str, told: Told) -> None:
    story = story_of(told, client, "left")

    assert story.state == State.WITHDRAWN
    assert story.sent == 0


@pytest.mark.parametrize("client", [*OPENS, *PLAIN])
def test_it_may_break_off_and_come_back_for_the_same_call(client: str, told: Told) -> None:
    # To these each round of waiting is a request: one that is cut off says nothing about the call.
    story = story_of(told, client, "left")

    assert is_the_servers(story), story.result
    assert (story.sent_early, story.sent) == (0, 1)
    assert story.state == State.SUCCEEDED


@pytest.mark.parametrize("client", OPENS)
def test_its_user_is_asked_once_to_open_the_page_of_the_call(
    client: str, told: Told, stack: Stack
) -> None:
    (asked,) = story_of(told, client, "approved").asked

    assert asked["mode"] == "url"
    assert asked["url"].startswith(f"{stack.web_url}/")
    assert TOOL in asked["message"]


@pytest.mark.parametrize("client", PLAIN)
def test_its_user_is_asked_nothing(client: str, told: Told) -> None:
    assert not story_of(told, client, "approved").asked


@pytest.mark.parametrize("client", LEGACY)
def test_it_hears_that_the_call_waits_for_a_person(client: str, told: Told) -> None:
    steps = story_of(told, client, "approved").steps

    assert steps[0]["message"] == WAITING
    assert sorted(step["progress"] for step in steps) == [step["progress"] for step in steps]


def test_a_task_works_and_says_where_a_person_decides(told: Told, stack: Stack) -> None:
    story = story_of(told, "tasks", "approved")

    assert {task["status"] for task in story.asked} == {"working"}
    assert story.asked[0]["statusMessage"].startswith("Not executed: pending approval.")
    assert f"{stack.web_url}/calls/{story.call_id}/" in story.asked[0]["statusMessage"]


async def test_rounds_end_in_an_answer_before_the_client_gives_up(
    house: House, own_stack: Stack
) -> None:
    own_stack.env["COUNTERSIGN_HOLD_S"] = "0.1"
    assert own_stack.agents

    async def told(client: str) -> Json:
        url = house.url().replace(house.stack.agents_url, own_stack.agents_url)
        async with visiting(client, url, house.token) as visitor:
            return await visitor.call(TOOL, {"text": f"{client} in vain"})

    for result in await asyncio.gather(*map(told, [*OPENS, *PLAIN, *LEGACY])):
        assert result["isError"]
        assert text_of(result).startswith("Not executed: pending approval.")
        assert COME_BACK.search(text_of(result))


@pytest.mark.parametrize("ending", ["approved late", "approved late, silent"])
@pytest.mark.parametrize("client", CLIENTS)
def test_it_waits_for_a_person_longer_than_its_own_patience(
    client: str, ending: str, told_late: Told
) -> None:
    story = story_of(told_late, client, ending)

    assert is_the_servers(story), story.result
    assert (story.sent_early, story.sent) == (0, 1)
    assert story.state == State.SUCCEEDED
    # Only those that can be told nothing better are told to ask again.
    assert story.sent_back == (client in LEGACY)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_late_no_is_a_no(client: str, told_late: Told) -> None:
    story = story_of(told_late, client, "refused late")

    assert "Denied by alice." in text_of(story.result)
    assert story.sent == 0
    assert story.state == State.DENIED
