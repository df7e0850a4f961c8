"""Methods of extensions through the gateway: calls by the one door, where somebody listed them."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from calls.models import Call
from calls.record.states import State
from gateway.dispatch.dispatch import LEGACY_METHODS, MODERN_METHODS, TASK_METHODS
from policies.models import Effect
from registry import extensions, services
from registry.discovery import discovery
from registry.methods import METHODS
from registry.models import Server, Tool, Toolset
from registry.models.versioned import difference
from tests.gateway.agent import LEGACY, MODERN, TASKS, URLS, Agent, Reply
from tests.gateway.conftest import (
    AddRule,
    Play,
    decide,
    decide_soon,
    server,
    the_call,
    until,
)
from tests.gateway.test_rest import Rest
from tests.processes import Stack
from tests.publishing import publish_as_read
from tests.upstreams.recorder import Received, Recorder, respond, running

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH, DROP = "acme/search", "acme/index/drop"
# Spaces, escapes and an exponent: nobody writes it like this again.
RAW = '{"name":"x",  "q": "\\u00e4", "most" : 1.0e1, "uri":["a\\/b"]}'
PARAMS = b'{"name":"x","q":"\\u00e4","most":1.0e1,"uri":["a\\/b"]}'
FOUND = rb'{"hits": [ {"content":"h\u00e4", "rank":1e2} ],"_meta":{"acme/took":3}}'
ERROR = {"code": 77, "message": "Not today", "data": [1]}


class Searching(Recorder):
    """Knows a method of an extension, and another one that it says no to."""

    async def other(self, received: Received, receive: Any, send: Any) -> None:
        if received.message["method"] == SEARCH:
            await self._result(send, received, FOUND)
            return
        reply = {"jsonrpc": "2.0", "id": received.message["id"], "error": ERROR}
        await respond(send, json.dumps(reply).encode())

    @property
    def asked(self) -> list[Received]:
        return [one for one in self.received if one.message["method"].startswith("acme/")]


running_recorder = running(Searching)


@pytest.fixture
def searching(upstream: Searching, toolset: Toolset, bob: User) -> Searching:
    """The toolset's server, with both methods listed and published."""
    made = Server.objects.get(slug="rec")
    set_methods(made, [SEARCH, DROP], by=bob)
    assert publish_as_read(made, by=bob) == []
    upstream.received.clear()
    return upstream


def set_methods(of: Server, methods: list[str], *, by: User) -> None:
    services.set_methods(of, methods, by=by)
    (found,) = asyncio.run(discovery.look_at([of.pk]))
    assert found.succeeded, found.summary


async def raw(agent: Agent, method: str, params: str, **more: Any) -> Reply:
    """With exactly these characters as members of params."""
    message = await agent.message(method, {"@": "@", **more})
    body = json.dumps(message).replace('"@": "@"', params.strip()[1:-1]).encode()
    return await agent.post(body, headers=agent.headers(message))


async def test_it_goes_to_its_server_and_comes_back_byte_for_byte(
    any_agent: Agent, play: Play, searching: Searching
) -> None:
    alone = play(any_agent.revision, at="desk/rec")

    reply = await raw(any_agent, SEARCH, RAW, _meta={"mine": 1})
    own = await alone.ask(SEARCH)

    call = await Call.objects.order_by("id").afirst()
    assert call is not None
    told = b'"_meta":{"countersign/call":"%s",' % str(call.pk).encode()
    assert FOUND.replace(b'"_meta":{', told)[1:] in reply.body
    assert own.result["hits"] == reply.result["hits"]
    assert (reply.result.get("resultType") == "complete") == (any_agent.revision == MODERN)
    first, second = searching.asked
    assert b'"method":"acme/search","params":' + PARAMS[:-1] + b',"_meta":' in first.body
    assert b"mine" not in first.body
    assert second.message["params"].keys() == {"_meta"}
    assert first.headers["mcp-method"] == SEARCH
    assert "mcp-name" not in first.headers
    assert (call.state, call.tool_name) == (State.SUCCEEDED, "rec.acme/search")
    assert bytes(call.arguments) == PARAMS


@pytest.mark.long
async def test_what_an_agent_does_not_have_is_told_like_what_there_is_not(
    any_agent: Agent, play: Play, searching: Searching, toolset: Toolset, bob: User
) -> None:
    made = await Server.objects.aget(slug="rec")
    await sync_to_async(services.set_methods)(made, [SEARCH, DROP, "acme/new"], by=bob)
    await discovery.look_at([made.pk])
    await server("other", toolset, searching, by=bob)
    other = await Server.objects.aget(slug="other")
    await sync_to_async(services.set_methods)(other, ["acme/elsewhere"], by=bob)
    await discovery.look_at([other.pk])
    await sync_to_async(services.publish_all)(other, by=bob)
    await sync_to_async(services.remove_server)(toolset, other, by=bob)
    searching.received.clear()
    held = await Tool.objects.aget(exposed_name="rec.acme/new")
    given = await Tool.objects.aget(exposed_name="other.acme/elsewhere")

    async def answers(token: str | None) -> set[bytes]:
        methods = ("acme/new", "acme/elsewhere", "acme/never")
        message = [await any_agent.message(m, {}, request_id=7, token=token) for m in methods]
        asked = [await any_agent.post(m, headers=any_agent.headers(m)) for m in message]
        assert {reply.status for reply in asked} == {404 if any_agent.revision == MODERN else 200}
        pairs = zip(asked, methods, strict=True)
        return {reply.body.replace(method.encode(), b"acme/x") for reply, method in pairs}

    gone = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"No method acme/x here."}}'
    assert (held.state, given.state) == (Tool.State.NEW, Tool.State.PUBLISHED)
    assert await answers(None) == await answers("token") == {gone}
    assert searching.asked == []
    assert not await Call.objects.aexists()


@pytest.mark.long
async def test_what_was_published_a_moment_ago_is_there(
    agent: Agent, searching: Searching, bob: User
) -> None:
    made = await Server.objects.aget(slug="rec")
    names = [f"acme/{n}x{n}" for n in range(20)]
    await sync_to_async(services.set_methods)(made, names, by=bob)
    await discovery.look_at([made.pk])
    tools = [
        tool
        async for tool in made.tools.filter(name__in=names).select_related("latest", "published")
    ]
    codes = []

    for tool in tools:
        await sync_to_async(services.publish)(tool, difference=difference(tool), by=bob)
        codes.append((await agent.ask(tool.name)).error["code"])

    assert codes == [ERROR["code"]] * len(names)


async def test_it_is_no_tool_to_agents(any_agent: Agent, searching: Searching) -> None:
    listed = (await any_agent.ask("tools/list")).result["tools"]
    called = await any_agent.call("rec.acme/search", {"q": "x"})
    by_its_own_name = await any_agent.call(SEARCH, {"q": "x"})

    assert not [tool for tool in listed if "acme" in tool["name"]]
    assert (called.error["code"], by_its_own_name.error["code"]) == (-32602, -32602)
    assert searching.asked == []


async def test_it_stands_in_the_catalogue_without_any_claim(searching: Searching) -> None:
    tool = await Tool.objects.select_related("published").aget(exposed_name="rec.acme/search")

    assert tool.published is not None
    assert tool.published.content["inputSchema"] == {"type": "object"}
    assert (tool.published.hints, tool.safe_to_repeat, tool.risk) == ({}, False, Tool.Risk.UNSAID)


@pytest.mark.long
async def test_what_a_rule_denies_is_not_sent(
    any_agent: Agent, searching: Searching, rule: AddRule
) -> None:
    await rule(Effect.DENY, DROP, server="rec", when='args.index == "all"')

    reply = await any_agent.ask(DROP, {"index": "all"})

    assert (reply.error["code"], reply.error["data"]["executed"]) == (403, "no")
    assert searching.asked == []
    assert (await any_agent.ask(DROP, {"index": "one"})).error == ERROR


@pytest.mark.long
async def test_a_person_decides_and_the_same_request_brings_the_result(
    play: Play, searching: Searching, rule: AddRule, stack: Stack, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, SEARCH)
    agent = play(capabilities=TASKS | URLS)
    held = await agent.ask(SEARCH, {"name": ["a"]})
    assert held.result["resultType"] == "input_required"
    page = held.result["inputRequests"]["approval"]["params"]["message"]
    assert "call of acme/search before" in page
    await decide(alice)

    state = held.result["requestState"]
    reply = await agent.ask(SEARCH, {"name": ["a"], "requestState": state, "inputResponses": {}})

    assert reply.result["hits"] == json.loads(FOUND)["hits"]
    assert searching.asked[0].message["params"].keys() == {"name", "_meta"}
    awaited = await agent.call("countersign.await_call", {"call_id": held.call_id})
    assert json.loads(awaited.text)["hits"] == reply.result["hits"]
    foreign = await agent.ask(SEARCH, {"name": ["b"], "requestState": state})
    assert foreign.error["code"] == -32602


@pytest.mark.long
async def test_earlier_revisions_wait_for_a_person(
    legacy_agent: Agent, searching: Searching, rule: AddRule, stack: Stack, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, SEARCH)

    reply, _ = await asyncio.gather(
        legacy_agent.ask(SEARCH, {"q": "x"}), decide_soon(alice, after=1)
    )

    assert reply.result["hits"]
    assert len(searching.asked) == 1


async def test_who_is_told_no_hears_it(
    agent: Agent, searching: Searching, rule: AddRule, alice: User
) -> None:
    await rule(Effect.ASK, SEARCH)
    held = await agent.ask(SEARCH)
    await decide(alice, approve=False, reason="Not this one.")

    reply = await agent.ask(SEARCH, {"requestState": held.result["requestState"]})

    assert (reply.error["code"], searching.asked) == (403, [])
    assert "Not this one." in reply.error["message"]


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN, LEGACY[0]])
async def test_a_worker_runs_it_where_it_is_long(
    play: Play, searching: Searching, stack: Stack, bob: User, revision: str
) -> None:
    assert stack.worker
    tool = await Tool.objects.aget(exposed_name="rec.acme/search")
    await sync_to_async(services.set_handling)(
        tool, by=bob, mode=Tool.Mode.BACKGROUND, timeout_s=60, safe_to_repeat=False
    )
    agent = play(revision)

    async def by_a_worker() -> bool:
        reply = await agent.ask(SEARCH, {"q": "x"})
        assert reply.result["hits"]
        return (await the_call(reply.call_id)).mode == "background"

    await until(by_a_worker)


async def test_what_is_between_an_agent_and_us_does_not_go_on(
    any_agent: Agent, searching: Searching
) -> None:
    given = {"inputResponses": {"a": {"action": "decline"}}, "task": {"ttl": 1}, "q": "x"}

    reply = await any_agent.ask(SEARCH, given)

    assert reply.result["hits"]
    sent = bytes((await the_call()).arguments)
    mine = {MODERN: {"task", "q"}, LEGACY[0]: {"inputResponses", "q"}}
    assert json.loads(sent).keys() == mine.get(any_agent.revision, given.keys())


async def test_an_error_of_the_server_is_passed_on(any_agent: Agent, searching: Searching) -> None:
    reply = await any_agent.ask(DROP)

    assert reply.error == ERROR
    assert (await the_call()).state == State.FAILED


async def test_the_same_key_is_one_call(agent: Agent, searching: Searching) -> None:
    key = {"_meta": {"countersign/idempotencyKey": "one"}}

    first, second = await agent.ask(SEARCH, key), await agent.ask(SEARCH, key)
    other = await agent.ask(SEARCH, {"q": "x", **key})

    assert first.call_id == second.call_id
    assert len(searching.asked) == 1
    assert other.error["data"]["refusal"]["kind"] == "key"


@pytest.mark.long
async def test_of_several_servers_one_is_asked_at_its_own_address(
    agent: Agent, play: Play, searching: Searching, toolset: Toolset, bob: User
) -> None:
    await server("two", toolset, searching, by=bob)
    two = await Server.objects.aget(slug="two")
    await sync_to_async(services.set_methods)(two, [SEARCH], by=bob)
    await discovery.look_at([two.pk])
    await sync_to_async(services.publish_all)(two, by=bob)

    alone = await play(at="desk/two").ask(SEARCH)

    async def several() -> Reply | None:
        reply = await agent.ask(SEARCH)
        return reply if "error" in reply.last else None

    said = (await until(several)).error
    assert said["code"] == -32602
    assert said["message"].endswith("of one, /mcp/desk/rec or /mcp/desk/two.")
    assert (await the_call(alone.call_id)).tool_name == "two.acme/search"


@pytest.mark.long
async def test_what_is_taken_off_the_list_is_gone_and_waits_when_it_comes_back(
    agent: Agent, searching: Searching, bob: User
) -> None:
    made = await Server.objects.aget(slug="rec")
    assert (await agent.ask(SEARCH)).result

    await sync_to_async(services.set_methods)(made, [DROP], by=bob)

    async def gone() -> bool:
        return bool("error" in (reply := await agent.ask(SEARCH)).last) and reply.status == 404

    await until(gone)
    await discovery.look_at([made.pk])
    tool = await Tool.objects.aget(exposed_name="rec.acme/search")
    assert tool.state == Tool.State.RETIRED
    await sync_to_async(services.set_methods)(made, [SEARCH, DROP], by=bob)
    await discovery.look_at([made.pk])
    await tool.arefresh_from_db()
    assert tool.state == Tool.State.NEW
    assert (await agent.ask(SEARCH)).error["code"] == -32601


async def test_by_rest_it_is_called_like_a_tool(
    stack: Stack, http: aiohttp.ClientSession, searching: Searching, scout_token: str
) -> None:
    assert stack.web
    rest = Rest(http, stack.web_url, scout_token)

    reply = await rest.call("rec.acme/search", {"q": "x"})

    assert (reply.status, reply.last["state"]) == (201, "succeeded")
    assert reply.last["result"]["hits"] == json.loads(FOUND)["hits"]
    assert searching.asked[0].message["params"]["q"] == "x"


def test_no_method_of_mcp_is_taken_for_one_of_an_extension() -> None:
    known = {*MODERN_METHODS, *LEGACY_METHODS, *TASK_METHODS, *METHODS, "tools/unheard"}

    assert not [method for method in known if extensions.is_one(method)]
    assert extensions.is_one(SEARCH)
