"""Arguments that a tool wants repeated in headers, between agents and servers of every revision.

Headers that say something else than the body are in test_disagreements.py.
"""

import json
from typing import Any

import pytest

from accounts.models import User
from registry.models import Toolset
from tests.gateway.agent import LEGACY, MODERN, Agent, Reply
from tests.gateway.conftest import Play, server, until
from tests.upstreams.asking import Asking
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "page": {
            "type": "object",
            "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}},
        },
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "example": {"default": {"x-mcp-header": "data, not an annotation"}},
    },
}
ARGUMENTS = '{"region": "zürich", "page": {"size": 3.0}, "dry": true}'
SAID = {"Region": "=?base64?esO8cmljaA==?=", "Size": "3", "Dry-Run": "true"}
# What stands below an array has no fixed place.
WRONG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "many": {"type": "array", "items": {"type": "string", "x-mcp-header": "Each"}},
    },
}
PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string"},
        "many": {"type": "array", "items": {"type": "string"}},
    },
}

running_recorder = running(Asking)


async def schema_of(agent: Agent, tool: str) -> Any:
    tools = (await agent.ask("tools/list")).result["tools"]
    return next((one["inputSchema"] for one in tools if one["name"] == tool), None)


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN, *LEGACY])
@pytest.mark.parametrize("legacy", [False, True], ids=["modern server", "legacy server"])
async def test_the_wish_is_a_part_of_the_definition(
    legacy: bool, revision: str, play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.legacy, upstream.tools = legacy, {"find": {"inputSchema": NESTED}}
    await server("two", toolset, upstream, by=bob)

    agent = play(revision)
    assert await until(lambda: schema_of(agent, "two_find")) == NESTED


@pytest.mark.long
async def test_what_agrees_is_sent_on_in_the_servers_headers(
    play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.tools = {"find": {"inputSchema": NESTED}}
    await server("two", toolset, upstream, by=bob)
    agent = play()

    for size in ("3", "3.0", "3.000"):
        reply = await called(agent, SAID | {"Size": size})
        assert reply.status == 200, reply.body
    wrong = [await called(agent, SAID | {"Size": size}) for size in ("3.5", "03", "4", "")]

    assert [(one.status, one.error["code"]) for one in wrong] == [(400, -32020)] * 4
    assert len(upstream.calls) == 3
    for call in upstream.calls:
        sent = {name: call.headers[f"mcp-param-{name.lower()}"] for name in SAID}
        assert sent == SAID


async def called(agent: Agent, said: dict[str, str]) -> Reply:
    message = await agent.message("tools/call", {"name": "two.find", "arguments": "@@"})
    more = {f"Mcp-Param-{name}": value for name, value in said.items()}
    body = json.dumps(message).replace('"@@"', ARGUMENTS).encode()
    return await agent.post(body, headers=agent.headers(message) | more)


@pytest.mark.long
@pytest.mark.parametrize("revision", LEGACY)
async def test_earlier_revisions_repeat_nothing_and_the_server_gets_its_header(
    revision: str, play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.tools = {"find": {"inputSchema": NESTED}}
    await server("two", toolset, upstream, by=bob)

    reply = await play(revision).call("two.find", {"region": "north"})

    assert reply.status == 200
    (call,) = upstream.calls
    assert call.headers["mcp-param-region"] == "north"


async def test_a_round_that_comes_again_repeats_them_again(
    play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.tools = {"ask": {"inputSchema": NESTED}}
    await server("two", toolset, upstream, by=bob)
    agent = play(capabilities={"elicitation": {"form": {}}})
    first = await agent.call_with("two.ask", {"region": "north"}, Region="north")
    state = first.result["requestState"]

    refused = await agent.call("two.ask", {"region": "north"}, requestState=state)

    assert (refused.status, refused.error["code"]) == (400, -32020)


@pytest.mark.long
async def test_a_wrong_wish_of_a_server_that_knows_no_such_headers_is_left_out(
    play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.legacy, upstream.tools = True, {"find": {"inputSchema": WRONG}}
    await server("two", toolset, upstream, by=bob)

    assert await schema_of(play(), "two_find") == PLAIN
    assert await schema_of(play(LEGACY[0]), "two_find") == WRONG
    assert (await play().call("two.find", {"region": "north"})).status == 200


@pytest.mark.long
async def test_with_a_wrong_wish_of_a_server_that_should_know_better_the_tool_is_left_out(
    play: Play, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.tools = {"find": {"inputSchema": WRONG}, "other": {"inputSchema": PLAIN}}
    await server("two", toolset, upstream, by=bob)

    assert await schema_of(play(), "two_find") is None
    assert await schema_of(play(), "two_other") == PLAIN
