"""The trace that a request belongs to goes on with its server, and stands in the record."""

from typing import Any

import pytest

from accounts.models import User
from audit.models import Entry
from policies.models import Effect
from tests.gateway.agent import LEGACY, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, decide, until
from tests.processes import Stack
from tests.upstreams.library import Library
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "tracestate": "vendor=t61rcWkgMzE, other=1",
    "baggage": "customer=17",
}


def traced(meta: Any) -> dict[str, Any]:
    return {name: meta[name] for name in TRACE if name in meta}


async def test_it_goes_on_with_the_server(any_agent: Agent, upstream: Recorder) -> None:
    await any_agent.call("rec.echo", {"text": "x"}, _meta=TRACE)
    await any_agent.call("rec.echo", {"text": "y"})

    first, second = (one.message["params"]["_meta"] for one in upstream.calls)
    assert traced(first) == TRACE
    assert traced(second) == {}
    entry = await Entry.objects.filter(seq=1).order_by("id").afirst()
    assert entry is not None
    assert entry.details["trace"] == TRACE


async def test_also_with_what_is_read(agent: Agent, library: Library) -> None:
    await agent.ask("resources/read", {"uri": "notes://today", "_meta": TRACE})

    assert traced(library.asked[0].message["params"]["_meta"]) == TRACE


async def test_also_when_a_worker_sends_it(
    play: Play, rule: AddRule, stack: Stack, upstream: Recorder, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    await play(capabilities=TASKS).call("rec.echo", {"text": "x"}, _meta=TRACE)
    await decide(alice)

    async def sent() -> bool:
        return bool(upstream.calls)

    await until(sent)
    assert traced(upstream.calls[0].message["params"]["_meta"]) == TRACE


@pytest.mark.parametrize(
    "wrong",
    [
        {"traceparent": "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"},
        {"traceparent": TRACE["traceparent"] + "\n"},
        {"tracestate": 7, "baggage": {"a": 1}},
        {"tracestate": "a=" + "x" * 511, "baggage": "a=" + "x" * 1023},
        {"tracestate": "", "baggage": "a=ä"},
    ],
)
async def test_what_is_none_is_left_out(
    wrong: dict[str, Any], play: Play, upstream: Recorder
) -> None:
    reply = await play(LEGACY[0]).call("rec.echo", {"text": "x"}, _meta=wrong)

    assert reply.text == "x"
    assert traced(upstream.calls[0].message["params"]["_meta"]) == {}
