"""400 results that leak or attack and 400 that look like them, on every road that results take."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import cycle
from typing import Any, NamedTuple

import pytest
from asgiref.sync import sync_to_async

from calls.content.large_results import body_of
from calls.models import Call, Result
from registry.models import Tool
from tests.gateway.agent import LEGACY, TASKS, Agent
from tests.gateway.conftest import Play, until
from tests.gateway.test_rest import Rest, rest
from tests.gateway.test_result_rules import ALL, Choose, choose, last_entry
from tests.inspection.result_corpus import CorpusResult, harmless, hostile
from tests.processes import Stack
from tests.upstreams.library import Library
from tests.upstreams.library import text as resource
from tests.upstreams.recorder import Recorder

__all__ = ["choose", "rest"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

EACH = 400
# A larger one is given to agents as a link, and kept in parts.
FILLER = "so long a text " * 75_000
Ask = Callable[[], Awaitable[Any]]


class Road(NamedTuple):
    """`put` has the upstream answer with a result; `ask` returns all that its agent gets."""

    name: str
    share: int
    put: Callable[[CorpusResult], bytes]
    ask: Ask


@pytest.fixture
def roads(play: Play, rest: Rest, upstream: Recorder, library: Library) -> list[Road]:
    agent = play()

    def put(one: CorpusResult) -> bytes:
        upstream.results["say"] = one.tool_result
        return one.tool_result

    def put_large(one: CorpusResult) -> bytes:
        return put(one._replace(content="text", text=f"{one.text}\n\n{FILLER}"))

    def put_resource(one: CorpusResult) -> bytes:
        body = one.resource("notes://picture")
        library.shelf["notes://picture"] = body
        return body

    def put_prompt(one: CorpusResult) -> bytes:
        library.shelf["greet"] = one.prompt
        return one.prompt

    def call(caller: Agent, **options: Any) -> Ask:
        async def ask() -> Any:
            return (await caller.call("rec.say", **options)).result

        return ask

    async def ask_rest() -> Any:
        return (await rest.call("rec.say")).last["result"]

    async def read_large() -> Any:
        link = (await agent.call("rec.say")).result["content"][0]
        return (await agent.ask("resources/read", {"uri": link["uri"]})).result

    async def read() -> Any:
        return (await agent.ask("resources/read", {"uri": "notes://picture"})).result

    async def get_prompt() -> Any:
        return (await agent.ask("prompts/get", {"name": "lib.greet"})).result

    earlier = [Road(one, 30, put, call(play(one))) for one in LEGACY]
    return [
        Road("call", 60, put, call(agent)),
        *earlier,
        Road("stream", 40, put, call(play(LEGACY[0]), token="t")),
        Road("resource", 60, put_resource, read),
        Road("prompt", 60, put_prompt, get_prompt),
        Road("REST", 50, put, ask_rest),
        Road("large", 10, put_large, read_large),
    ]


@pytest.fixture
def task(play: Play, upstream: Recorder) -> Road:
    agent = play(capabilities=TASKS)

    async def ask() -> Any:
        task_id = (await agent.call("rec.say")).result["taskId"]

        async def ended() -> Any:
            return (await agent.ask("tasks/get", {"taskId": task_id})).result.get("result")

        return await until(ended)

    def put(one: CorpusResult) -> bytes:
        upstream.results["say"] = one.tool_result
        return one.tool_result

    return Road("task", 30, put, ask)


def shared(corpus: list[CorpusResult], roads: list[Road]) -> Iterator[tuple[CorpusResult, Road]]:
    places = [road for road in roads for _ in range(road.share)]
    # So that each road gets every kind and every content type.
    spread = [place for n in range(7) for place in places[n::7]]
    yield from zip(corpus, cycle(spread), strict=False)


async def came(corpus: list[CorpusResult], roads: list[Road]) -> AsyncIterator[tuple[Any, ...]]:
    """The result, its road, what the server sent, what the agent got, and its call."""
    for one, road in shared(corpus, roads):
        sent = road.put(one)
        got = json.dumps(await road.ask(), ensure_ascii=False)
        call = await Call.objects.exclude(result_size=None).order_by("-pk").afirst()
        assert call is not None
        yield one, road, sent, got, call


@sync_to_async
def stored(call: Call) -> bytes:
    body = body_of(Result.objects.get(pk=call.pk))
    assert body is not None
    return body


async def check_hostile(corpus: list[CorpusResult], roads: list[Road]) -> int:
    count = 0
    async for one, road, _sent, got, call in came(corpus, roads):
        about = one.kind, one.content, road.name, one.text
        leak = json.dumps(one.leak, ensure_ascii=False)[1:-1]
        escaped = json.dumps(one.leak)[1:-1]
        assert leak not in got, about
        body = (await stored(call)).decode()
        assert leak not in body, about
        assert escaped not in body, about
        found = ((await last_entry(str(call.pk))).details or {})["result"]["found"]
        assert one.kind in found, (*about, found)
        count += 1
    return count


async def check_harmless(corpus: list[CorpusResult], roads: list[Road]) -> int:
    count = 0
    async for one, road, sent, got, call in came(corpus, roads):
        about = one.content, road.name, one.text
        assert await stored(call) == sent, about
        assert json.dumps(one.text, ensure_ascii=False)[1:-1] in got, about
        assert "result" not in ((await last_entry(str(call.pk))).details or {}), about
        count += 1
    return count


async def test_what_leaks_passes_nowhere_and_what_looks_like_it_does_not_change(
    roads: list[Road],
    task: Road,
    stack: Stack,
    library: Library,
    choose: Choose,
) -> None:
    library.shelf["notes://picture"] = resource("notes://picture", "x")
    assert stack.worker
    for tool in ("say", "resources/read", "prompts/get"):
        await choose(ALL, tool)
    bad, good = hostile(EACH), harmless(EACH)
    most = sum(road.share for road in roads)
    assert most + task.share == EACH

    assert await check_hostile(bad[:most], roads) == most
    assert await check_harmless(good[:most], roads) == most

    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    await choose(ALL)
    assert await check_hostile(bad[most:], [task]) == task.share
    assert await check_harmless(good[most:], [task]) == task.share
