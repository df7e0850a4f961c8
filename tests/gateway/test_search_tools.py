"""Search mode: tools are searched for, and each call is the call of the tool that it names."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from gateway.methods import search_tools
from policies.models import Effect
from registry import services
from registry.models import OwnTool, SearchTool, Toolset, own_tools
from registry.publishing import override_service
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, server, until
from tests.gateway.limiting import limit
from tests.gateway.test_listing import names
from tests.upstreams.recorder import OBJECT, Recorder

pytestmark = pytest.mark.django_db(transaction=True)

MAX_LIST_BYTES = 7_000
READS = {"readOnlyHint": True}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "A town."}},
    "required": ["city"],
}
OFFICE: dict[str, dict[str, Any]] = {
    "forecast": {
        "inputSchema": CITY,
        "description": "Says how the weather will be tomorrow.",
        "annotations": READS,
    },
    "refundPayment": {
        "inputSchema": {"type": "object", "properties": {"unit": {"type": "string"}}},
        "description": "Pays back a card payment.",
    },
    "echo": {"inputSchema": OBJECT, "description": "Says it again.", "annotations": READS},
    "route": {"inputSchema": OBJECT, "title": "路线规划", "description": "规划驾车、步行路线。"},
    "stock": {"inputSchema": OBJECT, "title": "库存查询", "description": "查询仓库中商品的库存。"},
}


@pytest.fixture(params=[MODERN, *LEGACY])
async def agent(
    request: pytest.FixtureRequest, toolset: Toolset, upstream: Recorder, bob: User, play: Play
) -> Agent:
    upstream.tools = OFFICE
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    return play(request.param)


@pytest.fixture
async def modern(
    toolset: Toolset, upstream: Recorder, bob: User, play: Play, request: pytest.FixtureRequest
) -> Agent:
    upstream.tools = OFFICE
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    upstream.received.clear()
    return play()


async def searched(agent: Agent, query: str, **more: Any) -> list[str]:
    reply = await agent.call("countersign_search_tools", {"query": query, **more})
    return [tool["name"] for tool in reply.result["structuredContent"]["tools"]]


async def through(agent: Agent, tool: str, arguments: Any = None, *, by: str = "call_tool") -> Any:
    given = {"tool": tool} | ({} if arguments is None else {"arguments": arguments})
    return await agent.call(f"countersign_{by}", given)


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("ｗｅａｔｈｅｒ ｔｏｍｏｒｒｏｗ", "office_forecast"),
        ("規劃駕車路線", "office_route"),
        ("倉庫 商品庫存查詢", "office_stock"),
        ("ｒｅｆｕｎｄ", "office_refundPayment"),
    ],
)
async def test_wide_letters_and_traditional_characters_find_tools(
    modern: Agent, query: str, tool: str
) -> None:
    assert (await searched(modern, query))[0] == tool


async def test_a_definition_in_traditional_characters_is_found(
    toolset: Toolset, upstream: Recorder, bob: User, play: Play
) -> None:
    written = {"inputSchema": OBJECT, "title": "ＳＭＳ 發送", "description": "發送簡訊。"}
    upstream.tools = {**OFFICE, "tool_7": written}
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)

    for query in ("发送", "發送", "sms", "简讯"):
        assert (await searched(play(), query))[0] == "office_tool_7"


@pytest.mark.long
async def test_the_list_has_four_tools_however_many_there_are(agent: Agent) -> None:
    reply = await agent.ask("tools/list")

    listed = [tool["name"] for tool in reply.result["tools"]]
    ours = [*SearchTool.values, *own_tools()]
    assert listed == sorted(f"countersign_{name}" for name in ours)
    assert len(reply.body) <= MAX_LIST_BYTES


@pytest.mark.long
async def test_what_is_searched_for_is_found_and_described_and_called(
    agent: Agent, upstream: Recorder
) -> None:
    assert (await searched(agent, "what will the weather be like"))[0] == "office_forecast"

    described = await agent.call("countersign_describe_tool", {"tool": "office_forecast"})
    assert described.result["structuredContent"] == {"name": "office_forecast"} | OFFICE["forecast"]
    upstream.received.clear()
    reply = await through(agent, "office_forecast", {"city": "Köln"}, by="call_read_tool")

    assert reply.text == "done"
    (sent,) = [one for one in upstream.received if one.message["method"] == "tools/call"]
    assert sent.message["params"]["name"] == "forecast"
    assert sent.arguments.decode() in ('{"city": "K\\u00f6ln"}', '{"city":"Köln"}')
    call = await Call.objects.select_related("tool").aget()
    assert (call.tool_name, call.state) == ("office.forecast", State.SUCCEEDED)
    assert str(call.pk) == reply.call_id


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("refunding payments", "office_refundPayment"),
        ("REFUND", "office_refundPayment"),
        ("wether forcast", "office_forecast"),
        ("规划一条开车路线", "office_route"),
        ("仓库里还有多少库存", "office_stock"),
        ("town", "office_forecast"),
        # In the other language than the tool's.
        ("明天的天气怎么样", "office_forecast"),
        ("给客户退款", "office_refundPayment"),
        ("plan a route", "office_route"),
        ("query the inventory", "office_stock"),
    ],
)
async def test_words_are_found_in_any_form(modern: Agent, query: str, first: str) -> None:
    assert (await searched(modern, query))[0] == first


async def test_what_is_found_is_short_and_says_what_it_takes(modern: Agent) -> None:
    reply = await modern.call("countersign_search_tools", {"query": "weather", "limit": 1})

    assert reply.result["structuredContent"] == {
        "tools": [
            {
                "name": "office_forecast",
                "description": OFFICE["forecast"]["description"],
                "arguments": ["city*"],
                "readOnly": True,
            }
        ],
    }


async def test_what_fits_less_is_on_the_next_pages(
    toolset: Toolset, upstream: Recorder, bob: User, play: Play
) -> None:
    upstream.tools = {
        f"refund_{n}": {"inputSchema": OBJECT, "description": "Refund a payment" + " now" * n}
        for n in range(7)
    }
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    agent = play()

    whole = await searched(agent, "refund a payment", limit=7)
    pages = [
        (await agent.call("countersign_search_tools", asked)).result["structuredContent"]
        for asked in ({"query": "refund a payment", "limit": 3, "page": n} for n in (1, 2, 3, 4))
    ]

    assert [tool["name"] for page in pages for tool in page["tools"]] == whole
    assert [page.get("more") for page in pages] == [True, True, None, None]


async def test_clients_that_load_tools_on_demand_load_these_at_once(modern: Agent) -> None:
    """Source: Claude Code, `_meta` of tools in MCP servers."""
    listed = (await modern.ask("tools/list")).result["tools"]
    searching = {f"countersign_{name}" for name in SearchTool.values}

    assert {
        tool["name"] for tool in listed if tool.get("_meta", {}).get("anthropic/alwaysLoad")
    } == searching


@pytest.mark.long
async def test_nothing_found_says_what_to_do(modern: Agent) -> None:
    reply = await modern.call("countersign_search_tools", {"query": "xylophone"})

    found = reply.result["structuredContent"]
    assert found["tools"] == []
    assert "other words" in found["hint"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "query must be"),
        ({"query": "  "}, "query must be"),
        ({"query": ["weather"]}, "query must be"),
        ({"query": "x" * 501}, "query must be"),
        ({"query": "weather", "limit": 0}, "limit must be"),
        ({"query": "weather", "limit": 21}, "limit must be"),
        ({"query": "weather", "limit": True}, "limit must be"),
        ({"query": "weather", "page": 0}, "page must be"),
        ({"query": "weather", "page": 26}, "page must be"),
        ({"query": "weather", "server": "office"}, "no argument “server”"),
    ],
)
async def test_a_wrong_search_says_what_is_wrong(
    modern: Agent, given: dict[str, Any], says: str
) -> None:
    reply = await modern.call("countersign_search_tools", given)

    assert reply.result["isError"]
    assert says in reply.text
    assert not await Call.objects.aexists()


@pytest.mark.long
async def test_arguments_are_sent_as_they_were_written(modern: Agent, upstream: Recorder) -> None:
    written = '{ "amount": 1.50, "note" : "\\u00e9 \\"arguments\\": {}", "arguments": {"a":[1e3]} }'
    message = await modern.message("tools/call", {"name": "countersign_call_tool"})
    body = json.dumps(message)[:-1].replace(
        '"name": "countersign_call_tool"',
        '"name": "countersign_call_tool", "arguments": '
        f'{{"tool": "office_refundPayment", "arguments": {written}}}',
    )

    reply = await modern.post(f"{body}}}".encode(), headers=modern.headers(message))

    assert reply.status == 200, reply.body
    assert upstream.received[-1].arguments.decode() == written
    assert bytes((await Call.objects.aget()).arguments).decode() == written


@pytest.mark.long
async def test_a_denied_tool_looks_unknown_and_is_recorded_as_denied(
    modern: Agent, toolset: Toolset, bob: User, upstream: Recorder, rule: AddRule
) -> None:
    await sync_to_async(services.set_own_tools)(toolset, [OwnTool.EXPLAIN], by=bob)
    await rule(Effect.DENY, "forecast", reason="Not by agents.")

    # Its argument is required.
    by = [await through(modern, "office_forecast", given) for given in ({}, {"city": "Bern"})]
    by += [await through(modern, "office_forecast", by="call_read_tool")]
    by += [await modern.call("office_forecast")]
    unknown = await through(modern, "office_nothing")

    for reply in by:
        said = json.loads(json.dumps(reply.error).replace("office_forecast", "office_nothing"))
        assert said == unknown.error
    explained = await modern.call("countersign_explain", {"tool": "office_forecast"})
    assert "There is no such tool here" in explained.text
    assert upstream.received == []
    async for call in Call.objects.filter(tool_name="office.forecast"):
        assert (call.state, call.reason) == (State.REFUSED, "Not by agents.")
    assert await Call.objects.filter(tool_name="office.forecast").acount() == 4


@pytest.mark.long
async def test_what_is_always_denied_is_not_named(modern: Agent, rule: AddRule) -> None:
    assert "office_refundPayment" in await searched(modern, "refund payment")
    await rule(Effect.DENY, "refundPayment")

    async def is_gone() -> bool:
        return "office_refundPayment" not in await searched(modern, "refund payment")

    await until(is_gone)
    described = await modern.call("countersign_describe_tool", {"tool": "office_refundPayment"})
    assert described.result["isError"]


@pytest.mark.long
async def test_denied_tools_take_no_place_of_others(
    toolset: Toolset, upstream: Recorder, bob: User, play: Play, rule: AddRule
) -> None:
    refund = {"inputSchema": OBJECT, "description": "Refund a card payment."}
    upstream.tools = {f"refund_payment_{n}": refund for n in range(60)}
    upstream.tools["pay_back"] = {"inputSchema": OBJECT, "description": "Refund"}
    await server("office", toolset, upstream, by=bob)
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    await rule(Effect.DENY, "refund_payment_*")
    agent = play()

    async def is_found() -> bool:
        return await searched(agent, "refund a card payment") == ["office_pay_back"]

    await until(is_found)
    assert await searched(agent, "refund", limit=1) == ["office_pay_back"]


async def test_many_searches_in_parallel_find_the_same(modern: Agent) -> None:
    queries = [f"defining {word} ways of refunding payments" for word in ("many", "new", "other")]

    found = await asyncio.gather(*(searched(modern, one, limit=1) for one in queries * 20))

    assert found == [["office_refundPayment"]] * 60


@pytest.mark.long
async def test_rules_for_the_envelope_cover_nothing(modern: Agent, rule: AddRule) -> None:
    await rule(Effect.DENY, "countersign*")
    await rule(Effect.DENY, "call_tool")

    assert (await through(modern, "office_refundPayment", {})).text == "done"


@pytest.mark.long
async def test_a_limit_of_the_inner_tool_counts_the_envelope(
    agent: Agent, upstream: Recorder
) -> None:
    await limit(amount=2, period="hour", server="office", tool="refundPayment")
    await limit(amount=1, period="hour", tool="*call_tool")
    upstream.received.clear()

    first = await through(agent, "office_refundPayment", {"n": 1})
    second = await agent.call("office_refundPayment", {"n": 2})
    beyond = await through(agent, "office_refundPayment", {"n": 3})
    other = await through(agent, "office_echo", {"n": 4})

    assert [one.text for one in (first, second, other)] == ["done"] * 3
    assert beyond.result["isError"]
    assert "Limit “calls 0” is reached: 2 calls per hour." in beyond.text
    assert [json.loads(one.arguments)["n"] for one in upstream.calls] == [1, 2, 4]
    blocked = await Call.objects.aget(state=State.REFUSED)
    assert (blocked.tool_name, str(blocked.pk)) == ("office.refundPayment", beyond.call_id)


@pytest.mark.long
async def test_a_budget_is_used_by_the_inner_arguments(modern: Agent, upstream: Recorder) -> None:
    await limit("cost", 10, period="day", tool="refundPayment", cost_argument="amount")

    spent = await through(modern, "office_refundPayment", {"amount": 8})
    beyond = await through(modern, "office_refundPayment", {"amount": 3})

    assert spent.text == "done"
    assert beyond.result["isError"]
    assert "is reached" in beyond.text
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_held_call_is_the_tools_own(
    toolset: Toolset, modern: Agent, rule: AddRule, upstream: Recorder
) -> None:
    modern.capabilities = TASKS
    await rule(Effect.ASK, "refundPayment")

    first = await through(modern, "office_refundPayment", {"amount": 5})
    again = await through(modern, "office_refundPayment", {"amount": 5})

    assert first.result["resultType"] == "task"
    assert again.call_id == first.call_id
    held = await Approval.objects.select_related("call").aget()
    assert held.call.tool_name == "office.refundPayment"
    assert json.loads(bytes(held.call.arguments)) == {"amount": 5}
    assert upstream.received == []


@pytest.mark.long
async def test_a_request_is_gone_on_with_in_its_envelope(
    modern: Agent, rule: AddRule, toolset: Toolset
) -> None:
    modern.capabilities = {}
    await rule(Effect.ASK, "refundPayment")
    await sync_to_async(services.set_hold)(toolset, 1, by=None)
    given = {"tool": "office_refundPayment", "arguments": {"amount": 5}}
    asked = {"name": "countersign_call_tool", "arguments": given}
    first = (await modern.ask("tools/call", asked)).result
    assert first["resultType"] == "input_required"

    other = {**asked, "arguments": {**given, "arguments": {"amount": 6}}}
    changed = await modern.ask("tools/call", {**other, "requestState": first["requestState"]})
    second = await modern.ask("tools/call", {**asked, "requestState": first["requestState"]})

    assert changed.error["code"] == -32602
    assert second.result["resultType"] == "input_required"
    assert await Call.objects.acount() == 1


@pytest.mark.long
async def test_what_may_change_something_is_not_called_as_a_reader(
    agent: Agent, upstream: Recorder
) -> None:
    upstream.received.clear()

    reply = await through(agent, "office_refundPayment", {}, by="call_read_tool")

    assert reply.result["isError"]
    assert "countersign_call_tool" in reply.text
    assert upstream.received == []
    assert (await Call.objects.aget()).tool_name == "office.refundPayment"


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "office_nothing",
        "other_secret",
        "countersign_call_tool",
        "countersign_search_tools",
        "countersign_get_call",
        "tools/call",
        "resources/read",
        "",
    ],
)
async def test_what_is_no_tool_here_is_unknown_and_recorded(
    modern: Agent, upstream: Recorder, bob: User, name: str
) -> None:
    others = await sync_to_async(services.create_toolset)("others", by=bob)
    upstream.tools = {"secret": {"inputSchema": OBJECT, "description": "Reads the weather."}}
    await server("other", others, upstream, by=bob)
    upstream.received.clear()

    reply = await through(modern, name, {})

    assert reply.error["code"] == -32602
    assert (await Call.objects.aget()).state == State.INVALID
    assert upstream.received == []
    described = await modern.call("countersign_describe_tool", {"tool": name})
    assert described.result["isError"]
    assert "other_secret" not in await searched(modern, "secret weather", limit=20)


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "arguments.tool must be a string"),
        ({"tool": 5}, "arguments.tool must be a string"),
        ({"tool": "office_echo", "city": "Köln"}, "arguments.city is unknown"),
    ],
)
async def test_a_wrong_envelope_says_what_is_wrong(
    modern: Agent, given: dict[str, Any], says: str
) -> None:
    reply = await modern.call("countersign_call_tool", given)

    assert reply.error["code"] == -32602
    assert says in reply.error["message"]


async def test_arguments_have_to_fit_the_tools_schema(modern: Agent, upstream: Recorder) -> None:
    reply = await through(modern, "office_forecast", {})

    assert reply.result["isError"]
    assert "city" in reply.text
    listed = await through(modern, "office_forecast", ["Köln"])
    assert listed.result["isError"]
    assert upstream.received == []


async def test_an_operators_words_are_searched_and_fixed_arguments_are_added(
    modern: Agent, toolset: Toolset, upstream: Recorder
) -> None:
    tool = await toolset.servers.aget(slug="office")
    refund = await tool.tools.aget(name="refundPayment")
    said = {"name": "giveBack", "description": "Gives money back.", "pinned": '{"unit": "EUR"}'}
    await sync_to_async(override_service.show)(toolset, refund, **said, by=None)

    # The process hears of it in a moment.
    async def is_found() -> bool:
        return (await searched(modern, "give money back"))[0] == "giveBack"

    await until(is_found)
    await through(modern, "giveBack", {"amount": 5})

    assert json.loads(upstream.received[-1].arguments) == {"amount": 5, "unit": "EUR"}


async def test_a_tool_that_is_gone_is_found_no_more(
    modern: Agent, toolset: Toolset, bob: User
) -> None:
    assert (await searched(modern, "weather"))[0] == "office_forecast"
    office = await toolset.servers.aget(slug="office")
    await sync_to_async(services.set_enabled)(office, False, by=bob)

    async def is_gone() -> bool:
        return "office_forecast" not in await searched(modern, "weather", limit=20)

    await until(is_gone)
    assert (await through(modern, "office_forecast", {"city": "x"})).error["code"] == -32602


async def test_a_tool_that_wants_a_header_is_called_without_one(
    modern: Agent, upstream: Recorder
) -> None:
    reply = await through(modern, "rec_regional", {"region": "eu"})

    assert reply.text == "done"
    assert upstream.received[-1].headers["mcp-param-region"] == "eu"


async def test_without_search_mode_the_tools_are_unknown(toolset: Toolset, play: Play) -> None:
    agent = play()

    assert not {f"countersign_{name}" for name in SearchTool.values} & {*await names(agent)}
    for name in SearchTool.values:
        reply = await agent.call(f"countersign_{name}", {"query": "x", "tool": "rec_echo"})
        assert reply.error["code"] == -32602


async def test_a_servers_own_address_lists_its_tools(modern: Agent, play: Play) -> None:
    alone = play(at="desk/office")

    assert await names(alone) == list(OFFICE)
    reply = await alone.call("countersign_call_tool", {"tool": "echo"})
    assert reply.error["code"] == -32602


async def test_a_tool_is_still_called_by_its_own_name(modern: Agent) -> None:
    assert (await modern.call("office_echo", {})).text == "done"


async def test_searching_never_runs_as_a_task(toolset: Toolset, bob: User, play: Play) -> None:
    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
    agent = play(LEGACY[0])

    asked = {"name": "countersign_search_tools", "arguments": {"query": "x"}, "task": {}}
    reply = await agent.ask("tools/call", asked)

    assert reply.error["code"] == -32601


async def test_many_search_at_once_while_the_toolset_changes(
    modern: Agent, toolset: Toolset
) -> None:
    async def change() -> None:
        for chosen in (["get_call"], OwnTool.values):
            await sync_to_async(services.set_own_tools)(toolset, chosen, by=None)

    found, *_rest = await asyncio.gather(
        asyncio.gather(*(searched(modern, "weather tomorrow", limit=1) for _ in range(20))),
        change(),
    )

    assert found == [["office_forecast"]] * 20


def test_the_four_are_told_apart() -> None:
    assert {*search_tools.LOOKS} == {SearchTool.SEARCH, SearchTool.DESCRIBE}
