"""With an endpoint of embeddings the search over tools finds what means the same in other words."""

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from gateway.tool_search import meanings
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, Play, server, until
from tests.gateway.test_search_tools import OFFICE, searched
from tests.processes import Stack
from tests.upstreams.embeddings import Embedder, embedder
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def endpoint(own_stack: Stack) -> Iterator[type[Embedder]]:
    with embedder() as (kind, url):
        own_stack.env |= {
            "COUNTERSIGN_EMBEDDINGS_URL": url,
            "COUNTERSIGN_EMBEDDINGS_MODEL": "small",
            "COUNTERSIGN_EMBEDDINGS_KEY": "hush",
        }
        yield kind


@pytest.fixture
async def agent(
    endpoint: type[Embedder],
    own_stack: Stack,
    toolset: Toolset,
    upstream: Recorder,
    bob: User,
    play: Play,
) -> Agent:
    upstream.tools = OFFICE
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    assert await sync_to_async(lambda: own_stack.agents)()
    return play(at_stack=own_stack)


async def finds(agent: Agent, query: str, name: str) -> None:
    """The first search has the tools' vectors asked for."""

    async def is_found() -> bool:
        return name in await searched(agent, query)

    await until(is_found)


def texts(endpoint: type[Embedder]) -> list[str]:
    return [text for _path, _key, body in endpoint.asked for text in body["input"]]


@pytest.mark.long
async def test_other_words_of_the_same_meaning_find_it(
    agent: Agent, endpoint: type[Embedder]
) -> None:
    await finds(agent, "a gale", "office_forecast")

    # Words and meanings count together.
    assert (await searched(agent, "weather tomorrow"))[0] == "office_forecast"
    assert await searched(agent, "zebra") == []
    path, key, body = endpoint.asked[0]
    assert (path, key, body["model"]) == ("/v1/embeddings", "Bearer hush", "small")
    assert {f"office_{name}" for name in OFFICE} <= {one.split()[0] for one in body["input"]}


@pytest.mark.long
async def test_a_denied_tool_is_not_named_however_near_it_is(
    agent: Agent, rule: AddRule, own_stack: Stack
) -> None:
    await finds(agent, "a gale", "office_forecast")

    await rule(Effect.DENY, "forecast")

    async def is_gone() -> bool:
        return await searched(agent, "a gale") == []

    await until(is_gone)


@pytest.mark.long
async def test_where_the_endpoint_fails_the_words_count_and_it_is_left_alone(
    agent: Agent, endpoint: type[Embedder]
) -> None:
    endpoint.status = 500

    async def is_asked() -> bool:
        return (await searched(agent, "weather"))[0] == "office_forecast" and bool(endpoint.asked)

    await until(is_asked)
    for _ in range(3):
        assert (await searched(agent, "weather"))[0] == "office_forecast"

    assert len(endpoint.asked) == 1


@pytest.mark.long
async def test_only_what_is_new_is_asked_for_again(
    agent: Agent, endpoint: type[Embedder], toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    await finds(agent, "a gale", "office_forecast")
    upstream.tools = {"lend": {**OFFICE["echo"], "description": "Lends a brolly."}}
    await server("other", toolset, upstream, by=bob)

    await finds(agent, "umbrella", "other_lend")

    told = texts(endpoint)
    assert len([text for text in told if text.startswith("office_")]) == len(OFFICE)


def test_no_endpoint_asks_nothing(settings: Any) -> None:
    assert settings.EMBEDDINGS_URL == ""
    assert meanings.text_of({"name": "x"}) == ""


@pytest.mark.parametrize("numbers", [[float("nan")], ["x"], [None], "x", 7, [1e400]], ids=repr)
def test_what_is_no_vector_is_an_error(numbers: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        meanings.meaning(numbers)


def test_the_nearest_come_first_and_vectors_of_another_model_are_not_near() -> None:
    known = {
        "same": meanings.meaning([1, 2, 3]),
        "near": meanings.meaning([1, 2, 1]),
        "far": meanings.meaning([-1, -2, -3]),
        "other": meanings.meaning([1, 2, 3, 4]),
        "nothing": meanings.meaning([0, 0, 0]),
    }

    assert meanings.nearest(meanings.meaning([2, 4, 6]), known, 5) == ["same", "near"]
