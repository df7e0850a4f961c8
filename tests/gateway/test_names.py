"""A toolset's own names, words and fixed arguments: what agents see, send, and what is sent."""

import contextlib
import json
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from accounts.models import User
from approvals.models import Approval
from approvals.services import AlreadyDecided
from audit.models import Entry
from calls.models import Call
from policies.models import Effect
from registry.models import ShownTool, Tool, Toolset
from registry.publishing import override_service
from tests.gateway.agent import LEGACY, MODERN, Agent
from tests.gateway.conftest import AddRule, Play, decide, server, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import TOOLS, Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def show(toolset: Toolset, tool: str, **said: str) -> None:
    override_service.show(toolset, Tool.objects.get(exposed_name=tool), by=None, **said)


async def listed(agent: Agent) -> dict[str, dict[str, Any]]:
    reply = await agent.ask("tools/list")
    return {tool["name"]: tool for tool in reply.result["tools"]}


@pytest.mark.parametrize("revision", [MODERN, *LEGACY])
@pytest.mark.parametrize("at", ["desk", "desk/rec"])
async def test_a_tool_is_called_by_the_name_that_an_operator_gave(
    play: Play, toolset: Toolset, upstream: Recorder, revision: str, at: str
) -> None:
    await show(toolset, "rec.echo", name="say_again")
    agent = play(revision, at=at)

    tools = await listed(agent)
    reply = await agent.call("say_again", {"text": "hello"})
    old = await agent.call("rec.echo" if at == "desk" else "echo", {"text": "hello"})

    assert "say_again" in tools
    assert not {"rec.echo", "echo"} & tools.keys()
    assert list(tools) == sorted(tools)
    assert tools["say_again"]["_meta"] == {
        "countersign/byOperator": ["name"],
        "countersign/tool": "rec.echo",
    }
    assert "hello" in reply.text
    assert old.error["code"] == -32602
    # The server knows it by its own name, people by the one that rules speak of.
    assert [call.message["params"]["name"] for call in upstream.calls] == ["echo"]
    assert (await the_call(reply.call_id)).tool_name == "rec.echo"


async def test_rules_go_by_the_name_that_people_know(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder
) -> None:
    await show(toolset, "rec.echo", name="harmless")
    await rule(Effect.DENY, "echo")

    reply = await play().call("harmless", {"text": "hello"})

    assert reply.result["isError"]
    assert upstream.calls == []


async def test_an_operators_words_stand_in_for_the_servers_and_are_marked(
    play: Play, toolset: Toolset, rule: AddRule
) -> None:
    upstream_says = {**TOOLS["echo"], "name": "rec.echo"}
    assert (await listed(play()))["rec.echo"] == upstream_says

    await show(toolset, "rec.echo", title="Parrot", description="Only for greetings.")
    await rule(Effect.ALLOW, "tool")

    assert (await listed(play()))["rec.echo"] == {
        **upstream_says,
        "title": "Parrot",
        "description": "Only for greetings.",
        "_meta": {
            "countersign/byOperator": ["title", "description"],
            "countersign/tool": "rec.echo",
        },
    }


async def test_no_server_marks_its_words_as_an_operators(
    play: Play, toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    meta = {"countersign/byOperator": ["description"], "example.org/kept": 1}
    upstream.tools = {"sly": {"inputSchema": {"type": "object"}, "_meta": meta}}
    await server("two", toolset, upstream, by=bob)

    assert (await listed(play()))["two.sly"]["_meta"] == {"example.org/kept": 1}


async def test_fixed_arguments_are_not_shown_and_always_sent(
    play: Play, toolset: Toolset, upstream: Recorder
) -> None:
    await show(toolset, "rec.form", pinned='{"city": "Utrecht",\n "days": 2}')
    agent = play()

    schema = (await listed(agent))["rec.form"]["inputSchema"]
    await agent.call_raw("rec.form", '{ "unit": "C" }')
    await agent.call_raw("rec.form", "{ }")
    await agent.call_raw("rec.form", '{"days": 2}')

    assert schema["properties"].keys() == {"unit"}
    assert "required" not in schema
    assert [call.arguments for call in upstream.calls] == [
        b'{ "unit": "C" ,"city":"Utrecht","days":2}',
        b'{ "city":"Utrecht","days":2}',
        b'{"days": 2,"city":"Utrecht"}',
    ]
    kept = [bytes(call.arguments) async for call in Call.objects.order_by("id")]
    assert kept == [call.arguments for call in upstream.calls]


async def test_what_is_fixed_is_not_the_agents_to_repeat_in_a_header(
    play: Play, toolset: Toolset, upstream: Recorder
) -> None:
    await show(toolset, "rec.regional", pinned='{"region": "north"}')
    agent = play()

    schema = (await listed(agent))["rec.regional"]["inputSchema"]
    replies = [
        await agent.call("rec.regional", {}),
        await agent.call("rec.regional", {"region": "north"}),
        await agent.call_with("rec.regional", {}, Region="south"),
    ]

    assert schema["properties"] == {}
    assert [reply.text for reply in replies] == ["done"] * 3
    assert [call.headers["mcp-param-region"] for call in upstream.calls] == ["north"] * 3


@pytest.mark.parametrize("given", ['{"days": 3}', '{"days": 2.0}', '{"days": true}'])
async def test_what_is_fixed_cannot_be_said_otherwise(
    play: Play, toolset: Toolset, upstream: Recorder, given: str
) -> None:
    await show(toolset, "rec.form", pinned='{"city": "Utrecht", "days": 2}')

    reply = await play().call_raw("rec.form", given)

    assert reply.result["isError"]
    assert "$.days: is fixed by this toolset: leave it out" in reply.text
    assert "2" not in reply.text.partition("$.days")[2].splitlines()[0]
    assert upstream.calls == []
    assert (await the_call()).state == "refused"


@pytest.mark.parametrize(
    ("later", "state"),
    [
        ({"pinned": '{"city": "Arnhem"}'}, "superseded"),
        ({"pinned": '{"city": "Utrecht", "unit": "C"}'}, "superseded"),
        ({"pinned": '{"city":"Utrecht"}', "title": "Weather"}, "succeeded"),
        ({}, "succeeded"),
    ],
)
async def test_what_people_approve_holds_what_is_fixed_and_is_sent_only_so(
    play: Play,
    toolset: Toolset,
    rule: AddRule,
    upstream: Recorder,
    alice: User,
    stack: Stack,
    later: dict[str, str],
    state: str,
) -> None:
    assert stack.worker
    await show(toolset, "rec.form", pinned='{"city": "Utrecht"}')
    await rule(Effect.ASK, "form")
    agent = play(capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})

    assert (await agent.call("rec.form", {"days": 2})).result["taskId"]
    approval = await Approval.objects.select_related("call").aget()
    shown = bytes(approval.call.arguments)
    await show(toolset, "rec.form", **later)
    # A worker may see the change first: what is superseded takes no vote.
    with contextlib.suppress(AlreadyDecided):
        await decide(alice)

    async def has_ended() -> bool:
        return (await the_call()).state == state

    await until(has_ended)

    assert json.loads(shown) == {"days": 2, "city": "Utrecht"}
    sent = [shown] if state == "succeeded" else []
    assert [call.arguments for call in upstream.calls] == sent


@pytest.mark.parametrize("pinned", ["{", "[1]", '{"text": "a", "text": "b"}'])
async def test_what_is_fixed_by_nobody_knows_what_is_not_offered(
    play: Play,
    toolset: Toolset,
    upstream: Recorder,
    async_client: AsyncClient,
    bob: User,
    pinned: str,
) -> None:
    """Written past our checks: the rest of the catalogue is there, and the page to mend it."""
    await show(toolset, "rec.echo", pinned='{"text": "a"}')
    await ShownTool.objects.aupdate(pinned=pinned)

    tools = await listed(play())
    reply = await play().call("rec.echo", {"text": "b"})
    await async_client.aforce_login(bob)
    page = await async_client.get(f"/toolsets/{toolset.slug}/tools/rec.echo/")

    assert "rec.form" in tools
    assert "rec.echo" not in tools
    assert reply.error["code"] == -32602
    assert upstream.calls == []
    assert page.status_code == 200


async def test_an_agent_that_asks_beforehand_is_told_of_the_same_arguments(
    play: Play, toolset: Toolset
) -> None:
    own = [*toolset.own_tools, "explain"]
    await Toolset.objects.filter(pk=toolset.pk).aupdate(own_tools=own)
    await show(toolset, "rec.form", name="weather", pinned='{"city": "Utrecht"}')

    fits = await play().call("countersign.explain", {"tool": "weather", "arguments": {}})
    asked = {"tool": "weather", "arguments": {"city": "Arnhem"}}
    differs = await play().call("countersign.explain", asked)

    assert fits.result["structuredContent"]["violations"] == []
    assert differs.result["structuredContent"]["violations"][0]["path"] == "$.city"


async def test_rest_shows_and_takes_the_same(
    play: Play, toolset: Toolset, stack: Stack, http: Any, scout_token: str, upstream: Recorder
) -> None:
    assert stack.web
    await show(toolset, "rec.form", name="weather", pinned='{"city": "Utrecht"}')
    headers = {"Authorization": f"Bearer {scout_token}"}

    async with http.get(f"{stack.web_url}/api/tools", headers=headers) as response:
        tools = {tool["name"]: tool for tool in (await response.json())["toolsets"][0]["tools"]}
    asked = {"toolset": "desk", "tool": "weather", "arguments": {"days": 1}}
    async with http.post(f"{stack.web_url}/api/calls", json=asked, headers=headers) as response:
        call = await response.json()

    assert tools["weather"]["inputSchema"]["properties"].keys() == {"days", "unit"}
    assert "rec.form" not in tools
    assert call["arguments"] == {"days": 1, "city": "Utrecht"}
    assert [json.loads(c.arguments) for c in upstream.calls] == [call["arguments"]]


async def test_a_new_tool_of_a_server_takes_no_name_that_an_operator_gave(
    play: Play, toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    await show(toolset, "rec.echo", name="late.NEWS")
    upstream.tools = {"news": {"inputSchema": {"type": "object"}}}
    await server("late", toolset, upstream, by=bob)

    tools = await listed(play())

    assert tools["late.NEWS"]["_meta"]["countersign/tool"] == "rec.echo"
    assert "late.news" not in tools


REFUSED = [
    ({"name": "a b"}, "name", "Use 1 to 64"),
    ({"name": "countersign.mine"}, "name", "are ours"),
    ({"name": "Countersign"}, "name", "are ours"),
    ({"name": "rec.form"}, "name", "rec.form"),
    ({"name": "FORM"}, "name", "form"),
    ({"name": "stеps"}, "name", "Use 1 to 64"),
    ({"name": "rec.forrn"}, "name", "rec.form"),
    ({"title": "x" * 201}, "title", "At most 200"),
    ({"description": "a\0"}, "description", "NUL"),
    ({"pinned": "[1]"}, "pinned", "one JSON object"),
    ({"pinned": "{"}, "pinned", "Not JSON"),
    ({"pinned": '{"text": "a", "text": "b"}'}, "pinned", "twice"),
    ({"pinned": '{"words": "a"}'}, "pinned", "there are: text"),
    ({"pinned": '{"text": 7}'}, "pinned", "must be of type string"),
]


@pytest.mark.parametrize(("said", "field", "why"), REFUSED)
def test_what_cannot_be_shown_so(
    toolset: Toolset, said: dict[str, str], field: str, why: str
) -> None:
    echo = Tool.objects.get(exposed_name="rec.echo")
    before = Entry.objects.count()

    with pytest.raises(override_service.OverrideRefused, match=re.escape(why)) as refused:
        override_service.show(toolset, echo, by=None, **said)

    assert refused.value.field == field
    assert Entry.objects.count() == before
    assert not toolset.shown_tools.exists()


def test_each_change_is_one_entry(toolset: Toolset, bob: User) -> None:
    echo = Tool.objects.get(exposed_name="rec.echo")

    for said in ({"name": "parrot"}, {"name": "parrot"}, {"pinned": '{"text": "a"}'}, {}, {}):
        override_service.show(toolset, echo, by=bob, **said)

    entries = Entry.objects.filter(action="toolset.tool_shown").order_by("id")
    shown = [entry.details["shown"] for entry in entries]
    assert shown == [{"name": "parrot"}, {"pinned": '{"text": "a"}'}, {}]
    assert {entry.actor for entry in entries} == {"bob"}
    assert not toolset.shown_tools.exists()


async def test_agents_hear_that_a_tool_is_shown_otherwise(play: Play, toolset: Toolset) -> None:
    agent = play()
    wanted = {"notifications": {"toolsListChanged": True}}
    message = await agent.message("subscriptions/listen", wanted)

    async with agent.open(message) as response:
        lines = response.content
        while b"acknowledged" not in await lines.readline():
            pass
        await show(toolset, "rec.echo", description="Other words.")
        while b"tools/list_changed" not in await lines.readline():
            pass
