"""What a server lists nowhere and its results link to: the agent that got them may read it there,
by the rules, and nobody else."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.gateway.agent import MODERN, Agent, Reply
from tests.gateway.conftest import AddRule, Play, add_server
from tests.upstreams.library import Library, declaring
from tests.upstreams.recorder import TOOLS

pytestmark = pytest.mark.django_db(transaction=True)

LINKED, HELD, NAMED = "report://7", "report://8", "report://9"
RESULT = json.dumps(
    {
        "content": [
            {"type": "resource_link", "uri": LINKED, "name": "seven"},
            {"type": "resource", "resource": {"uri": HELD, "text": "eight"}},
            {"type": "text", "text": NAMED},
        ],
        "structuredContent": {"type": "resource_link", "uri": NAMED},
    }
).encode()


@pytest.fixture
def linking(running_library: Library, toolset: Toolset, bob: User) -> Library:
    """Lists no resource."""
    shelves = running_library
    shelves.reset()
    shelves.discovered = declaring({"tools": {}, "resources": {}, "prompts": {}})
    shelves.tools, shelves.results["say"] = TOOLS, RESULT
    shelves.resources, shelves.templates = [], []
    add_server("docs", toolset, shelves, by=bob)
    return shelves


@pytest.fixture
def listing(toolset: Toolset, bob: User) -> Iterator[Library]:
    """Another one, that lists some."""
    with Library() as shelves:
        shelves.reset()
        add_server("lib", toolset, shelves, by=bob)
        yield shelves


async def read(agent: Agent, uri: str) -> Reply:
    return await agent.ask("resources/read", {"uri": uri})


def same(one: Reply, other: Reply) -> bool:
    """But for what was asked."""
    said: list[Any] = [json.loads(reply.body) for reply in (one, other)]
    for message in said:
        del message["id"], message["error"]["data"]["call"], message["error"]["data"]["uri"]
    return bool(said[0] == said[1] and one.status == other.status)


async def test_who_got_the_link_reads_it(any_agent: Agent, play: Play, linking: Library) -> None:
    alone = play(any_agent.revision, at="desk/docs")
    before = await read(any_agent, LINKED)
    assert before.error["code"] == (-32602 if any_agent.revision == MODERN else -32002)
    await any_agent.call("docs.say")

    for agent in (any_agent, alone):
        for uri in (LINKED, HELD):
            assert (await read(agent, uri)).result["contents"][0]["text"] == f"This is {uri}."
        assert same(await read(agent, NAMED), before)

    assert [one.message["params"]["uri"] for one in linking.asked] == [LINKED, HELD] * 2
    calls = Call.objects.filter(tool_name="docs.resources/read", state=State.SUCCEEDED)
    assert await calls.acount() == 4


async def test_what_a_prompt_links_to_is_read_too(any_agent: Agent, linking: Library) -> None:
    before = await read(any_agent, LINKED)
    content: list[Any] = [*json.loads(RESULT)["content"], NAMED, [], None]
    messages = [*({"role": "user", "content": one} for one in content), NAMED]
    linking.shelf["greet"] = json.dumps({"messages": messages}).encode()
    await any_agent.ask("prompts/get", {"name": "docs.greet"})

    for uri in (LINKED, HELD):
        assert (await read(any_agent, uri)).result["contents"][0]["text"] == f"This is {uri}."
    assert same(await read(any_agent, NAMED), before)


async def test_nobody_else_does(play: Play, linking: Library, toolset: Toolset, bob: User) -> None:
    await play().call("docs.say")

    @sync_to_async
    def another() -> str:
        other = accounts.create_agent("other", owner=bob, by=bob)
        services.assign(toolset, other, by=bob)
        return accounts.issue_token(other, by=bob)

    other = play(token=await another())
    for uri in (LINKED, HELD):
        assert same(await read(other, uri), await read(other, "report://never"))
    assert linking.asked == []
    # It is its own result that counts.
    await other.call("docs.say")
    assert (await read(other, LINKED)).result["contents"]


async def test_rules_decide(agent: Agent, linking: Library, rule: AddRule) -> None:
    await agent.call("docs.say")
    await rule(Effect.DENY, "resources/read", when=f'args.uri == "{LINKED}"')

    assert (await read(agent, LINKED)).error["code"] == 403
    assert (await read(agent, HELD)).result["contents"]
    assert [one.message["params"]["uri"] for one in linking.asked] == [HELD]


async def test_it_goes_to_the_server_that_linked_to_it(
    agent: Agent, linking: Library, listing: Library
) -> None:
    await agent.call("docs.say")

    await read(agent, LINKED)
    # As ever: to the one server that lists any.
    await read(agent, NAMED)
    await read(agent, "notes://today")

    assert [one.message["params"]["uri"] for one in linking.asked] == [LINKED]
    asked = [one.message["params"]["uri"] for one in listing.asked]
    assert asked == [NAMED, "notes://today"]
