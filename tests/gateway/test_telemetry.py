"""Traces and metrics for a collector, which decodes what it is sent; and none without its URL."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from accounts.models import User
from audit.models import Entry
from config import telemetry
from config.embedded.valkey import free_port
from policies.models import Effect
from registry.models import Toolset
from tests.gateway.agent import TASKS, Agent
from tests.gateway.collector import Collector, plain
from tests.gateway.conftest import AddRule, Play, decide, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
SERVER, CLIENT = 2, 3
ERROR = 2


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
async def agent(toolset: Toolset, own_stack: Stack, play: Play, collector: Collector) -> Agent:
    return await begun(own_stack, play, collector.url)


async def begun(own_stack: Stack, play: Play, url: str) -> Agent:
    own_stack.env |= {
        "COUNTERSIGN_OTLP_URL": url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "300",
    }
    assert await sync_to_async(lambda: own_stack.agents)()
    return play(at_stack=own_stack, capabilities=TASKS)


def there(collector: Collector, *names: str) -> Callable[[], Awaitable[bool]]:
    async def arrived() -> bool:
        return all(collector.span(name) is not None for name in names)

    return arrived


@pytest.mark.long
async def test_a_call_is_a_span_of_its_trace_and_its_server_goes_on_below(
    agent: Agent, collector: Collector, upstream: Recorder
) -> None:
    reply = await agent.call("rec.echo", {"text": "x"}, _meta=SAMPLED)

    assert reply.text == "x"
    await until(there(collector, "tools/call rec.echo", "tools/call echo"))
    request, sent = collector.span("tools/call rec.echo"), collector.span("tools/call echo")
    assert (request.kind, request.trace_id.hex()) == (SERVER, TRACE)
    assert request.parent_span_id.hex() == PARENT
    assert (sent.kind, sent.trace_id, sent.parent_span_id) == (
        CLIENT,
        request.trace_id,
        request.span_id,
    )
    assert request.start_time_unix_nano <= sent.start_time_unix_nano
    assert sent.end_time_unix_nano <= request.end_time_unix_nano
    entry = await Entry.objects.aget(seq=1)
    told, of_server = plain(request.attributes), plain(sent.attributes)
    assert told.pop("jsonrpc.request.id")
    assert told == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "rec.echo",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "countersign.call.id": str(entry.call_id),
        "countersign.call.state": "succeeded",
    }
    assert of_server["gen_ai.tool.name"] == "echo"
    assert of_server["countersign.server"] == "rec"
    assert of_server["server.address"] == "127.0.0.1"
    # Its server is told of our span, and the record keeps the agent's.
    meta = upstream.calls[0].message["params"]["_meta"]
    assert meta["traceparent"] == f"00-{TRACE}-{sent.span_id.hex()}-01"
    assert entry.details["trace"] == SAMPLED
    (about, *_) = collector.resources()
    assert (about["service.name"], about["countersign.role"]) == ("countersign", "agents")


@pytest.mark.long
async def test_a_worker_goes_on_with_the_trace(
    agent: Agent, collector: Collector, rule: AddRule, stack: Stack, own_stack: Stack, alice: User
) -> None:
    # One that other tests started would take the call, and has no collector.
    stack.end_worker()
    assert await sync_to_async(lambda: own_stack.worker)()
    await rule(Effect.ASK, "echo")
    await agent.call("rec.echo", {"text": "x"}, _meta=SAMPLED)
    await decide(alice)

    await until(there(collector, "tools/call rec.echo", "tools/call echo"))
    request, sent = collector.span("tools/call rec.echo"), collector.span("tools/call echo")
    assert plain(request.attributes)["countersign.call.state"] == "held"
    assert (sent.trace_id.hex(), sent.parent_span_id.hex()) == (TRACE, PARENT)


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [("rec.echo", {}, "tool_error"), ("rec.none", {}, "-32602"), ("rec.fail", {}, "1234")],
)
async def test_errors_are_named(
    agent: Agent, collector: Collector, tool: str, arguments: dict[str, Any], error: str
) -> None:
    await agent.call(tool, arguments)

    await until(there(collector, f"tools/call {tool}"))
    span = collector.span(f"tools/call {tool}")
    assert plain(span.attributes)["error.type"] == error
    assert span.status.code == ERROR
    assert not span.parent_span_id


@pytest.mark.long
async def test_what_its_client_does_not_keep_is_not_sent(
    agent: Agent, collector: Collector, upstream: Recorder
) -> None:
    await agent.call("rec.echo", {"text": "x"}, _meta={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    await agent.ask("tools/list", {})

    await until(there(collector, "tools/list"))
    assert collector.span("tools/call rec.echo") is None
    meta = upstream.calls[0].message["params"]["_meta"]
    assert meta["traceparent"].startswith(f"00-{TRACE}-")
    assert meta["traceparent"].endswith("-00")


@pytest.mark.long
async def test_metrics_have_durations_and_figures_and_no_names(
    agent: Agent, collector: Collector
) -> None:
    await agent.call("rec.echo", {"text": "x"})
    await agent.ask("made/up", {})

    def methods() -> set[str]:
        points = collector.points("mcp.server.operation.duration")
        return {plain(point.attributes)["mcp.method.name"] for point in points}

    async def measured() -> bool:
        return methods() >= {"tools/call", "_OTHER"} and any(
            collector.points("countersign_calls_in_flight")
        )

    await until(measured)
    assert methods() == {"tools/call", "_OTHER"}
    (*_, sent) = collector.points("mcp.client.operation.duration")
    assert (sent.count, plain(sent.attributes)["gen_ai.operation.name"]) == (1, "execute_tool")
    assert 0 < sent.sum < 60
    everything = str(collector.metrics)
    assert "scout" not in everything
    assert "echo" not in everything


@pytest.mark.long
async def test_a_collector_that_is_away_costs_no_call_anything(
    toolset: Toolset, own_stack: Stack, play: Play
) -> None:
    agent = await begun(own_stack, play, f"http://127.0.0.1:{free_port()}")

    for n in range(5):
        assert (await agent.call("rec.echo", {"text": str(n)})).text == str(n)


def test_without_its_packages_a_start_says_so(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "config.otlp", None)
    settings.OTLP_URL = ""
    telemetry.start()

    settings.OTLP_URL = "http://collector:4318"
    with pytest.raises(ImproperlyConfigured, match=r"install countersign\[telemetry\]"):
        telemetry.start()
