"""A token that is limited to some toolsets, or to read-only tools, opens nothing else on any
road."""

from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, User
from audit.models import Entry
from calls.models import Call
from gateway.methods.own_tools import NOT_YOURS
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.gateway.agent import LEGACY, TASKS
from tests.gateway.conftest import AddRule, Play, server, until
from tests.gateway.test_listing import names
from tests.gateway.test_rest import Rest
from tests.gateway.test_search_tools import OFFICE, searched, through
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

READING = {"office_forecast", "office_echo"}
NOT_READ_ONLY = "This token is limited to read-only tools, and this tool is not declared read-only."


@pytest.fixture
async def office(toolset: Toolset, upstream: Recorder, bob: User, scout: AgentRow) -> Toolset:
    """Desk has tools that change something; scout may also use another toolset with the same."""
    upstream.tools = OFFICE
    await server("office", toolset, upstream, by=bob)
    other = await sync_to_async(services.create_toolset)("other", by=bob)
    await sync_to_async(services.assign)(other, scout, by=bob)
    await other.servers.aadd(await toolset.servers.aget(slug="rec"))
    upstream.received.clear()
    return toolset


async def issued(scout: AgentRow, **scope: Any) -> str:
    return await sync_to_async(accounts.issue_token)(scout, by=None, **scope)


@pytest.fixture
async def reader(office: Toolset, scout: AgentRow) -> str:
    return await issued(scout, reads_only=True)


@pytest.fixture
async def of_desk(office: Toolset, scout: AgentRow) -> str:
    return await issued(scout, toolsets=["desk"])


def own(name: str) -> str:
    return f"countersign_{name}"


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2026-07-28", LEGACY[0]])
async def test_read_only_tools_alone_are_listed_and_called(
    reader: str, play: Play, upstream: Recorder, revision: str
) -> None:
    agent = play(revision, token=reader)

    listed = {name for name in await names(agent) if not name.startswith("countersign")}
    assert listed == READING
    assert {"office_refundPayment"} < set(await names(play(revision)))
    assert (await agent.call("office.forecast", {"city": "Bonn"})).result.get("isError") is not True

    refused = await agent.call("office.refundPayment", {"unit": "1"})

    assert NOT_READ_ONLY in refused.text
    assert len(upstream.calls) == 1
    call = await Call.objects.aget(state="refused")
    entry = await Entry.objects.aget(call_id=call.pk)
    assert (call.state, entry.details["refusal"]) == ("refused", "scope")


@pytest.mark.long
async def test_a_read_only_token_sees_no_call_of_other_tools(
    reader: str, play: Play, rule: AddRule, upstream: Recorder
) -> None:
    await rule(Effect.ASK, "refundPayment")
    made = await play(capabilities=TASKS).call("office.refundPayment", {"unit": "1"})
    task_id = made.result["taskId"]
    call = await Call.objects.aget(state="held")
    agent = play(token=reader, capabilities=TASKS)

    for method in ("tasks/get", "tasks/cancel"):
        answer = await agent.ask(method, {"taskId": task_id})
        assert answer.error["code"] == -32602, method
    for tool in ("get_call", "cancel_call", "justify"):
        answer = await agent.call(own(tool), {"call_id": str(call.pk), "text": "x"})
        assert NOT_YOURS in answer.text, tool
    waiting = (await agent.call(own("my_waiting_calls"))).result["structuredContent"]
    assert waiting["calls"] == []
    await call.arefresh_from_db()
    assert call.state == "held"


async def test_a_read_only_token_finds_read_only_tools_alone(
    reader: str, play: Play, office: Toolset, bob: User, upstream: Recorder
) -> None:
    await sync_to_async(services.set_search_mode)(office, True, by=bob)
    agent = play(token=reader)

    assert await searched(agent, "refund a card payment") == []
    assert "office_forecast" in await searched(agent, "weather tomorrow")
    described = await through(agent, "office_refundPayment", by="describe_tool")
    assert "There is no such tool here" in described.text
    assert NOT_READ_ONLY in (await through(agent, "office_refundPayment", {"unit": "1"})).text
    assert not upstream.calls


@pytest.mark.long
async def test_a_toolset_that_is_not_of_the_token_is_closed_and_the_try_recorded(
    of_desk: str, play: Play, upstream: Recorder
) -> None:
    assert await names(play(token=of_desk))

    refused = await play(token=of_desk, at="other").call("rec.echo", {"text": "a"})

    assert (refused.status, refused.error["message"]) == (
        403,
        "This token is limited to other toolsets.",
    )
    entry = await until(Entry.objects.filter(action="agent.token_rejected").afirst)
    assert entry.reason == "This token is limited to other toolsets."
    assert not upstream.calls


@pytest.mark.long
async def test_scopes_hold_by_rest(
    reader: str, of_desk: str, stack: Stack, http: aiohttp.ClientSession, upstream: Recorder
) -> None:
    assert stack.web
    rest, desk = (Rest(http, stack.web_url, token) for token in (reader, of_desk))

    by_name = {one["name"]: one for one in (await rest.get("tools")).last["toolsets"]}
    assert {tool["name"] for tool in by_name["desk"]["tools"]} == READING
    listed = (await rest.get("toolsets/desk/tools")).last["tools"]
    assert {tool["name"] for tool in listed} == READING
    refused = await rest.call("office.refundPayment", {"unit": "1"})
    assert (refused.status, refused.last["refusal"]["kind"]) == (403, "scope")
    asked = {"toolset": "desk", "tool": "office.refundPayment", "arguments": {"unit": "1"}}
    assert (await rest.send("POST", "explain", asked)).last["effect"] == "deny"

    assert [one["name"] for one in (await desk.get("tools")).last["toolsets"]] == ["desk"]
    assert (await desk.get("toolsets/other/tools")).status == 404
    asked = {"toolset": "other", "tool": "rec.echo", "arguments": {"text": "a"}}
    assert (await desk.send("POST", "calls", asked)).status == 403
    assert not upstream.calls
    made = await desk.call("office.refundPayment", {"unit": "1"})
    assert (await desk.get(f"calls/{made.last['id']}")).status == 200
    assert (await rest.get(f"calls/{made.last['id']}")).status == 404
    token = await AgentToken.objects.aget(toolsets=["desk"])
    assert token.last_used_at
    assert token.last_address == "127.0.0.1"
