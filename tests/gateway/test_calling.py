"""A tool call from agent to server and back: nothing is lost on the way, nothing is invented."""

import json
from typing import Any

import pytest

from accounts.models import User
from calls.record.states import State
from policies.models import Effect
from registry.models import Toolset
from tests.gateway.agent import MODERN, Agent
from tests.gateway.conftest import AddRule, Play, server, the_call
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_KIND: list[dict[str, Any]] = [
    {"type": "text", "text": "snow ☃ and \u202e marks", "annotations": {"priority": 0.5}},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "b", "_meta": {"x": 1}}},
    {"type": "resource_link", "uri": "file:///c", "name": "c"},
    {"type": "hologram", "beams": [1, 2.50, {"deep": None}], "notInventedYet": True},
]


async def test_it_reaches_the_server_and_comes_back(any_agent: Agent, upstream: Recorder) -> None:
    reply = await any_agent.call("rec.echo", {"text": "hello"})

    assert reply.status == 200
    assert reply.text == "hello"
    assert [call.message["params"]["name"] for call in upstream.calls] == ["echo"]


async def test_it_is_in_the_record(agent: Agent) -> None:
    reply = await agent.call("rec.echo", {"text": "hello"})

    call = await the_call(reply.call_id)
    assert call.state == State.SUCCEEDED
    assert (call.tool_name, call.origin, call.revision) == ("rec.echo", "mcp", MODERN)
    assert call.client == f"{agent.client} 1"
    owner = await User.objects.aget(pk=call.agent.owner_id)
    assert (call.agent.name, owner.username, call.toolset) == ("scout", "bob", "desk")


async def test_one_server_alone_goes_by_its_own_names(play: Play) -> None:
    reply = await play(at="desk/rec").call("echo", {"text": "hello"})

    assert reply.text == "hello"


async def test_a_result_passes_through_byte_for_byte(any_agent: Agent, upstream: Recorder) -> None:
    # Spaces, escapes, the order of members, a number's spelling: all of it is the server's.
    written = '{ "structuredContent" : {"a":1.0e2, "b":"\\u00e9\\/"},"content":[ ] ,"extra":[1.10]}'
    upstream.results["say"] = written.encode()

    reply = await any_agent.call("rec.say")

    assert written.strip("{ ").encode() in reply.body


async def test_content_of_every_kind_passes_through(any_agent: Agent, upstream: Recorder) -> None:
    result = {"content": EVERY_KIND, "structuredContent": [1, {"x": None}], "madeUp": {"y": []}}
    upstream.results["say"] = json.dumps(result).encode()

    reply = await any_agent.call("rec.say")

    received = reply.result
    assert received.pop("_meta").keys() == {"countersign/call"}
    assert received.pop("resultType", "complete") == "complete"
    assert received == result


async def test_what_the_server_put_beside_its_result_stays(
    agent: Agent, upstream: Recorder
) -> None:
    upstream.results["say"] = (
        b'{"resultType":"complete","content":[],"_meta":{"theirs":{"countersign/call":0}}}'
    )

    reply = await agent.call("rec.say")

    assert reply.result["_meta"]["theirs"] == {"countersign/call": 0}
    assert await the_call(reply.result["_meta"]["countersign/call"])
    assert reply.body.count(b'"resultType"') == 1


async def test_a_result_on_several_lines_survives_a_stream(
    agent: Agent, upstream: Recorder
) -> None:
    upstream.results["say"] = b'{\n  "content": [],\r\n  "structuredContent": {\n"a": 1}\n}'

    reply = await agent.call("rec.say", token="t")

    assert reply.is_stream
    assert reply.result["structuredContent"] == {"a": 1}


async def test_a_tools_error_is_a_result(agent: Agent, upstream: Recorder) -> None:
    upstream.results["say"] = b'{"content":[{"type":"text","text":"no"}],"isError":true}'

    reply = await agent.call("rec.say")

    assert reply.status == 200
    assert reply.result["isError"] is True
    assert (await the_call()).state == State.TOOL_ERROR


async def test_a_servers_protocol_error_is_one_here_too(any_agent: Agent) -> None:
    reply = await any_agent.call("rec.fail")

    assert reply.status == 200
    error = {"code": 1234, "message": "no such luck", "data": {"why": [1, "x"]}}
    assert reply.error == error
    assert (await the_call()).state == State.FAILED


@pytest.mark.parametrize("request_id", [7, 0, -1, "7", "", 'q"\\☃', 2**53 - 1])
async def test_ids_come_back_as_they_were_sent(agent: Agent, request_id: Any) -> None:
    params = {"name": "rec.echo", "arguments": {"text": "x"}}
    message = await agent.message("tools/call", params, request_id=request_id)

    reply = await agent.post(message, headers=agent.headers(message))

    assert reply.last["id"] == request_id
    assert type(reply.last["id"]) is type(request_id)


@pytest.mark.parametrize(
    "written",
    [
        '{"text":"a"}',
        '{ "text" :\t"a\\u00e9\\/\\n" , "n": 1.0e2 , "m":-0.0}',
        '{"text":"\\"arguments\\": {}"}',
        '{"text":"a","arguments":{"arguments":"x"}}',
    ],
)
async def test_arguments_arrive_as_they_were_written(
    any_agent: Agent, upstream: Recorder, written: str
) -> None:
    reply = await any_agent.call_raw("rec.echo", written)

    assert reply.status == 200, reply.body
    (call,) = upstream.calls
    assert call.arguments == written.encode()
    assert bytes((await the_call(reply.call_id)).arguments) == written.encode()


async def test_arguments_on_several_lines_come_to_stand_on_one(
    agent: Agent, upstream: Recorder
) -> None:
    await agent.call_raw("rec.echo", '{\r\n"text":\n"a"}')

    assert upstream.calls[0].arguments == b'{  "text": "a"}'


async def test_arguments_that_are_left_out_are_an_empty_object(
    agent: Agent, upstream: Recorder
) -> None:
    reply = await agent.ask("tools/call", {"name": "rec.say"})

    assert reply.status == 200
    assert upstream.calls[0].arguments == b"{}"


async def test_every_violation_is_named_and_nothing_sent(
    any_agent: Agent, upstream: Recorder
) -> None:
    reply = await any_agent.call("rec.form", {"days": 9, "unit": "K", "planet": "Mars"})

    assert reply.status == 200
    assert reply.result["isError"] is True
    lines = reply.text.splitlines()[1:]
    assert sorted(line.partition(":")[0] for line in lines) == [
        "- $.city",
        "- $.days",
        "- $.planet",
        "- $.unit",
    ]
    assert "must be at most 7" in reply.text
    assert upstream.calls == []
    call = await the_call(reply.call_id)
    assert call.state == State.INVALID


async def test_a_recursive_schema_is_published_listed_and_checked(
    any_agent: Agent, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User
) -> None:
    node = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["name"],
    }
    upstream.tools = {"grow": {"inputSchema": node}}
    await server("tree", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")
    wrong = {"name": "a", "children": [{"name": "b", "children": [{"name": 3}]}]}

    listed = (await any_agent.ask("tools/list")).result["tools"]
    refused = await any_agent.call("tree_grow", wrong)
    right = await any_agent.call("tree_grow", {"name": "a", "children": [{"name": "b"}]})

    assert next(one for one in listed if one["name"] == "tree_grow")["inputSchema"] == node
    assert "$.children[0].children[0].name: must be of type string" in refused.text
    assert len(upstream.calls) == 1
    assert right.call_id


@pytest.mark.parametrize(
    "written",
    [
        b'{"resultType":"complete","content":[],"a":1.50}',
        b'{ "content" : [], "isError":false, "resultType": "complete" ,"a":1.50 }',
        b'{"content":[],"a":1.50,"b":{"resultType":"complete"},"resultType":"complete"}',
    ],
)
async def test_the_kind_of_a_result_is_for_the_newest_revision(
    any_agent: Agent, upstream: Recorder, written: bytes
) -> None:
    upstream.results["say"] = written

    reply = await any_agent.call("rec.say")

    assert ("resultType" in reply.result) == (any_agent.revision == MODERN)
    given = {name: said for name, said in json.loads(written).items() if name != "resultType"}
    mine = ("_meta", "resultType")
    assert {name: said for name, said in reply.result.items() if name not in mine} == given
    assert b'"a":1.50' in reply.body


async def test_what_its_server_puts_in_is_not_demanded_and_nothing_is_added(
    any_agent: Agent, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User
) -> None:
    schema = {
        "type": "object",
        "properties": {"type": {"enum": ["png", "jpeg"], "default": "png"}},
        "required": ["type"],
    }
    upstream.tools = {"shoot": {"inputSchema": schema}}
    await server("browser", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")

    listed = (await any_agent.ask("tools/list")).result["tools"]
    reply = await any_agent.call_raw("browser_shoot", "{ }")

    shown = next(one for one in listed if one["name"] == "browser_shoot")
    assert shown["inputSchema"] == schema
    assert [call.arguments for call in upstream.calls] == [b"{ }"]
    assert bytes((await the_call(reply.call_id)).arguments) == b"{ }"


async def test_an_unknown_tool_is_refused_and_recorded(
    any_agent: Agent, upstream: Recorder
) -> None:
    reply = await any_agent.call("rec.nope", {"a": 1})

    assert reply.error["code"] == -32602
    assert "rec.nope" in reply.error["message"]
    assert reply.status == (400 if any_agent.revision == MODERN else 200)
    call = await the_call()
    assert (call.state, call.tool_name) == (State.INVALID, "rec.nope")
    assert bytes(call.arguments) == b'{"a": 1}'


async def test_what_policy_denies_is_said_with_its_reason(
    play: Play, upstream: Recorder, rule: AddRule
) -> None:
    await rule(Effect.DENY, "erase", reason="Nobody erases on Fridays.")

    reply = await play().call("rec.erase")

    assert reply.result["isError"] is True
    assert "Nobody erases on Fridays." in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "no"
    assert upstream.calls == []


@pytest.mark.parametrize("params", [{}, {"name": 1}, {"name": None}, {"name": ["rec.echo"]}])
async def test_a_call_must_name_a_tool(agent: Agent, params: dict[str, Any]) -> None:
    reply = await agent.ask("tools/call", {**params, "arguments": {}})

    assert (reply.status, reply.error["code"]) == (400, -32602)
