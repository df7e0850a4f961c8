"""A toolset's own names, words and fixed arguments: what agents see, send, and what is sent."""

import contextlib
import json
import re
from hashlib import sha256
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.test import AsyncClient, Client

from accounts.models import User
from approvals.models import Approval
from approvals.services import AlreadyDecided
from audit.models import Entry
from calls.models import Call
from policies.models import Effect
from registry import services
from registry.models import ShownTool, Tool, Toolset
from registry.publishing import override_service, published_catalogue
from registry.publishing.tool_lists import tool_list
from tests.gateway.agent import LEGACY, MODERN, Agent
from tests.gateway.conftest import AddRule, Play, add_server, decide, server, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import TOOLS, Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def show(toolset: Toolset, tool: str, **said: str) -> None:
    override_service.show(toolset, Tool.objects.get(exposed_name=tool), by=None, **said)


async def listed(agent: Agent) -> dict[str, dict[str, Any]]:
    reply = await agent.ask("tools/list")
    return {tool["name"]: tool for tool in reply.result["tools"]}


async def listed_with(agent: Agent, name: str) -> dict[str, dict[str, Any]]:
    """Nothing, before it is there."""
    tools = await listed(agent)
    return tools if name in tools else {}


@pytest.mark.parametrize("revision", [MODERN, *LEGACY])
@pytest.mark.parametrize("at", ["desk", "desk/rec"])
async def test_a_tool_is_called_by_the_name_that_an_operator_gave(
    play: Play, toolset: Toolset, upstream: Recorder, revision: str, at: str
) -> None:
    await show(toolset, "rec.echo", name="say_again")
    agent = play(revision, at=at)

    # What agents are told is at most a second old.
    tools = await until(lambda: listed_with(agent, "say_again"))
    reply = await agent.call("say_again", {"text": "hello"})
    old = await agent.call("rec.echo" if at == "desk" else "echo", {"text": "hello"})

    assert not {"rec.echo", "rec_echo", "echo"} & tools.keys()
    if at == "desk":
        assert list(tools) == sorted(tools)
    else:
        assert list(tools) == ["say_again", *list(TOOLS)[1:]], "as its server lists them"
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
    upstream_says = {**TOOLS["echo"], "name": "rec_echo"}
    assert (await listed(play()))["rec_echo"] == upstream_says

    await show(toolset, "rec.echo", title="Parrot", description="Only for greetings.")
    await rule(Effect.ALLOW, "tool")

    assert (await listed(play()))["rec_echo"] == {
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

    tools = await until(lambda: listed_with(play(), "two_sly"))
    assert tools["two_sly"]["_meta"] == {"example.org/kept": 1}


async def test_fixed_arguments_are_not_shown_and_always_sent(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder
) -> None:
    await show(toolset, "rec.form", pinned='{"city": "Utrecht",\n "days": 2}')
    await rule(Effect.ALLOW, "unrelated")
    agent = play()

    schema = (await listed(agent))["rec_form"]["inputSchema"]
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
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder
) -> None:
    await show(toolset, "rec.regional", pinned='{"region": "north"}')
    await rule(Effect.ALLOW, "unrelated")
    agent = play()

    schema = (await listed(agent))["rec_regional"]["inputSchema"]
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
    assert (await the_call()).state == "invalid"


@pytest.mark.long
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
    # A worker may see the change first: what is superseded takes no vote, and waits for none.
    with contextlib.suppress(AlreadyDecided, Approval.DoesNotExist, TimeoutError):
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

    assert "rec_form" in tools
    assert "rec_echo" not in tools
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
    assert "rec_form" not in tools
    assert call["arguments"] == {"days": 1, "city": "Utrecht"}
    assert [json.loads(c.arguments) for c in upstream.calls] == [call["arguments"]]


async def test_a_new_tool_of_a_server_takes_no_name_that_an_operator_gave(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User
) -> None:
    await show(toolset, "rec.echo", name="late.news")
    upstream.tools = {"news": {"inputSchema": {"type": "object"}}}
    await server("late", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")
    agent = play()

    tools = await listed(agent)
    replies = [await agent.call(name, {"text": "hello"}) for name in ("late_news", "late.news")]
    ending = sha256(b"late.news").hexdigest()[:8]
    await agent.call(f"late_news_{ending}", {"text": "hello"})

    assert tools["late_news"]["_meta"]["countersign/tool"] == "rec.echo"
    assert [reply.text for reply in replies] == ["hello", "hello"]
    assert f"late_news_{ending}" in tools
    assert [call.message["params"]["name"] for call in upstream.calls] == ["echo", "echo", "news"]


OF_MODELS = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
ANY: dict[str, Any] = {"inputSchema": {"type": "object"}}
LONG = "a" * 60 + "." + "b" * 60


@pytest.mark.parametrize("at", ["desk", "desk/two"])
async def test_every_name_is_one_that_models_take_and_the_older_ones_find_the_same(
    any_agent: Agent, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User, at: str
) -> None:
    """Of servers, of methods of ours, with dots, and longer than clients take."""
    upstream.tools = {"mail.send": ANY, "a-b": ANY, LONG: ANY}
    await server("two", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")
    any_agent.url = any_agent.url.replace("/mcp/desk", f"/mcp/{at}")
    prefix = "two_" if at == "desk" else ""

    tools = await listed(any_agent)
    names = [name for name in tools if name.startswith(prefix)]
    (short,) = [name for name in names if "aaa" in name]
    digest = sha256((LONG if prefix == "" else f"two.{LONG}").encode()).hexdigest()[:8]
    older = f"{prefix.replace('_', '.')}mail.send"
    new = await any_agent.call(f"{prefix}mail_send", {"n": 1})
    old = await any_agent.call(older, {"n": 2})
    shortened = await any_agent.call(short, {"n": 3})
    whole = await any_agent.call(f"{prefix.replace('_', '.')}{LONG}", {"n": 4})

    assert all(OF_MODELS(name) for name in tools), tools
    assert {f"{prefix}mail_send", f"{prefix}a-b"} <= tools.keys()
    assert short == f"{(prefix + 'a' * 60)[:55]}_{digest}"
    assert not any("error" in json.loads(reply.body or b"{}") for reply in (new, old))
    assert [call.message["params"]["name"] for call in upstream.calls] == [
        *("mail.send", "mail.send"),
        *(LONG, LONG),
    ]
    assert shortened.call_id != whole.call_id


async def test_rules_and_the_record_go_on_with_the_name_that_people_know(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder
) -> None:
    await rule(Effect.DENY, "echo", server="rec")

    reply = await play().call("rec_echo", {"text": "hello"})

    assert reply.result["isError"]
    assert (await the_call(reply.call_id)).tool_name == "rec.echo"
    assert upstream.calls == []


async def test_names_that_would_be_the_same_serve_nobody_the_wrong_tool(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User
) -> None:
    upstream.tools = {"b_c": ANY}
    await server("a", toolset, upstream, by=bob)
    upstream.tools = {"c": ANY}
    await server("a_b", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")
    agent = play()

    tools = await listed(agent)
    endings = {name: sha256(name.encode()).hexdigest()[:8] for name in ("a.b_c", "a_b.c")}
    for name, ending in endings.items():
        await agent.call(f"a_b_c_{ending}", {})
        await agent.call(name, {})
    neither = await agent.call("a_b_c", {})

    assert [name for name in tools if name.startswith("a_b")] == sorted(
        f"a_b_c_{ending}" for ending in endings.values()
    )
    assert [call.message["params"]["name"] for call in upstream.calls] == ["b_c", "b_c", "c", "c"]
    assert neither.error["code"] == -32602


async def test_no_server_has_a_name_of_ours(
    play: Play, toolset: Toolset, rule: AddRule, upstream: Recorder, bob: User
) -> None:
    """Neither with its own before it, nor at its own address."""
    upstream.tools = {"call": ANY, "countersign_get_call": ANY}
    await server("countersign_await", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")

    together = await listed(play())
    alone = await listed(play(at="desk/countersign_await"))
    ours = await play().call("countersign_await_call", {"call_id": "x"})
    theirs = await play().call("countersign_await.call", {})

    assert together["countersign_await_call"]["title"] == "Wait for a call"
    assert "countersign_get_call" not in alone
    assert "No call of yours" in ours.text
    assert theirs.call_id
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("separator", ["-", "."])
async def test_an_operator_chooses_what_stands_between(
    play: Play, toolset: Toolset, rule: AddRule, separator: str
) -> None:
    await sync_to_async(services.set_separator)(toolset, separator, by=None)
    await rule(Effect.ALLOW, "unrelated")
    agent = play()

    tools = await listed(agent)
    told = [
        (await agent.call(name, {"text": name})).text
        for name in ("rec.echo", "rec_echo", f"rec{separator}echo")
    ]
    own = [
        (await agent.call(f"countersign{one}await_call", {"call_id": "x"})).text for one in "_-."
    ]

    assert {f"rec{separator}echo", f"countersign{separator}await_call"} <= tools.keys()
    assert told == ["rec.echo", "rec_echo", f"rec{separator}echo"]
    assert len(set(own)) == 1
    assert "No call of yours" in own[0]


def test_names_that_would_be_the_same_are_told_to_operators(
    client: Client, toolset: Toolset, upstream: Recorder, bob: User, olga: User, capsys: Any
) -> None:
    upstream.tools = {"b_c": ANY}
    add_server("a", toolset, upstream, by=bob)
    upstream.tools = {"c": ANY}
    add_server("a_b", toolset, upstream, by=bob)
    client.force_login(olga)

    page = client.get(f"/toolsets/{toolset.slug}/").content.decode()
    call_command("toolset", toolset.slug)
    said = capsys.readouterr().out

    assert "Tools whose names would be the same for agents:" in page
    for name in ("a.b_c", "a_b.c"):
        shown = f"a_b_c_{sha256(name.encode()).hexdigest()[:8]}"
        assert shown in page
        assert f"{name}: another tool would have the same name; agents see {shown}" in said


def test_an_operator_sets_how_long_agents_are_held(
    client: Client, toolset: Toolset, olga: User, capsys: Any
) -> None:
    client.force_login(olga)

    for seconds in ("4", "0", "x", "56"):
        client.post(f"/toolsets/{toolset.slug}/hold/", {"seconds": seconds})
    toolset.refresh_from_db()
    call_command("toolset", toolset.slug, "--hold", "9")
    call_command("toolset", toolset.slug, "--hold", "0")

    assert toolset.hold_s == 4
    assert "hold: 9 s" in capsys.readouterr().out
    entries = Entry.objects.filter(action="toolset.hold_set").order_by("id")
    assert [entry.details["seconds"] for entry in entries] == [4, 9, None]


def test_an_operator_sets_the_separator_on_the_page_and_by_command(
    client: Client, toolset: Toolset, olga: User, capsys: Any
) -> None:
    client.force_login(olga)

    client.post(f"/toolsets/{toolset.slug}/separator/", {"separator": "-"})
    client.post(f"/toolsets/{toolset.slug}/separator/", {"separator": "/"})
    page = client.get(f"/toolsets/{toolset.slug}/").content.decode()
    call_command("toolset", toolset.slug, "--separator", ".")

    assert "rec-echo" in page
    assert "countersign-await_call" in page
    assert "separator: ." in capsys.readouterr().out
    entries = Entry.objects.filter(action="toolset.separator_set").order_by("id")
    assert [entry.details["separator"] for entry in entries] == ["-", "."]


def test_the_tools_come_as_a_file_with_names_that_models_apis_take(
    client: Client, toolset: Toolset, olga: User, mallory: User, capsys: Any
) -> None:
    services.set_separator(toolset, ".", by=olga)
    client.force_login(olga)

    page = client.get(f"/toolsets/{toolset.slug}/").content.decode()
    file = client.get(f"/toolsets/{toolset.slug}/list/?format=anthropic")
    call_command("toolset", toolset.slug, "--format", "gemini")
    said = json.loads(capsys.readouterr().out)

    assert f"/toolsets/{toolset.slug}/list/?format=anthropic" in page
    assert file["Content-Disposition"] == 'attachment; filename="desk.anthropic.json"'
    names = [tool["name"] for tool in file.json()["tools"]]
    assert "rec_echo" in names
    assert [one["name"] for one in said[0]["functionDeclarations"]] == names
    published = published_catalogue.load().toolset(toolset.slug)
    assert published
    assert all(published.by_exposed.find(name) for name in names)
    assert [tool["name"] for tool in tool_list(published, "mcp").tools] == [
        name.replace("_", ".", 1) for name in names
    ]

    assert client.get(f"/toolsets/{toolset.slug}/list/?format=yaml").status_code == 404
    assert client.get("/toolsets/nowhere/list/").status_code == 404
    with pytest.raises(CommandError, match="no toolset named nowhere"):
        call_command("toolset", "nowhere", "--format", "mcp")
    client.force_login(mallory)
    assert client.get(f"/toolsets/{toolset.slug}/list/").status_code == 403


REFUSED = [
    ({"name": "a b"}, "name", "Use 1 to 64"),
    ({"name": "countersign.mine"}, "name", "are ours"),
    ({"name": "Countersign"}, "name", "are ours"),
    ({"name": "countersign_await_call"}, "name", "are ours"),
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
