"""What a rule demands for results, on the roads that calls take."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import State
from inspection.results import ResultRules, stored_rules
from policies.models import Effect, Rule
from policies.services import save_rule
from registry.models import Tool
from tests.gateway.agent import MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, until
from tests.gateway.test_result_rules import CLEAN, DIRTY, KEY, Choose, choose, said
from tests.gateway.test_stricter_rules import press_approve
from tests.processes import Stack
from tests.upstreams.library import Library
from tests.upstreams.library import text as resource
from tests.upstreams.recorder import Recorder

__all__ = ["choose"]

pytestmark = pytest.mark.django_db(transaction=True)

ALL = stored_rules(ResultRules("block", "remove", secrets=True, personal=True, tracebacks=True))


@pytest.mark.long
async def test_the_calls_that_it_covers_are_cleaned_and_others_not(
    any_agent: Agent, upstream: Recorder, rule: AddRule
) -> None:
    upstream.results["say"] = said(DIRTY)
    await rule(Effect.ALLOW, "say")
    await rule(Effect.ALLOW, "s*", when="args.n > 9", results=ALL)

    small = await any_agent.call("rec.say", {"n": 1})
    large = await any_agent.call("rec.say", {"n": 10})

    assert (small.text, large.text) == (DIRTY, CLEAN)


async def test_it_adds_to_what_its_tool_has(
    agent: Agent, upstream: Recorder, rule: AddRule, choose: Choose
) -> None:
    upstream.results["say"] = said(DIRTY)
    await rule(Effect.ALLOW, "say", results=stored_rules(ResultRules(secrets=True)))
    await choose(ResultRules(hidden="remove"))

    reply = await agent.call("rec.say")

    assert reply.text == "ab [masked: aws key] bob@corp.cn"


@pytest.mark.long
async def test_a_call_that_people_approved_is_cleaned_by_the_rules_of_then(
    agent: Agent, upstream: Recorder, rule: AddRule, stack: Stack, alice: User
) -> None:
    assert stack.worker
    upstream.results["say"] = said(DIRTY)
    await rule(Effect.ASK, "say")
    await agent.call("rec.say")

    # It came after the call.
    await rule(Effect.ALLOW, "s*y", results=ALL)
    await press_approve(alice)

    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())
    call = await Call.objects.select_related("result").aget()
    assert KEY.encode() not in bytes(call.result.body)
    assert json.loads(bytes(call.result.body))["content"][0]["text"] == CLEAN


@pytest.mark.long
async def test_tasks_and_resources_are_cleaned(
    play: Play, rule: AddRule, stack: Stack, upstream: Recorder, library: Library
) -> None:
    assert stack.worker
    upstream.results["say"] = said(DIRTY)
    library.shelf["notes://picture"] = resource("notes://picture", DIRTY)
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    await rule(Effect.ALLOW, "**", results=ALL)
    agent = play(MODERN, capabilities=TASKS)

    read = await agent.ask("resources/read", {"uri": "notes://picture"})
    task = (await agent.call("rec.say")).result["taskId"]

    async def done() -> Any:
        return (await agent.ask("tasks/get", {"taskId": task})).result.get("result")

    assert read.result["contents"][0]["text"] == CLEAN
    assert (await until(done))["content"][0]["text"] == CLEAN


@pytest.mark.long
async def test_a_gateway_that_does_not_know_the_rule_yet_cleans_by_it(
    agent: Agent, upstream: Recorder, rule: AddRule
) -> None:
    """The record knows that the configuration changed: no call after its commit goes by the old."""
    upstream.results["say"] = said(DIRTY)
    await rule(Effect.ALLOW, "say")
    assert (await agent.call("rec.say")).text == DIRTY

    made = Rule(name="late", effect=Effect.ALLOW, tool="say", results=ALL)
    await sync_to_async(save_rule)(made, by=SYSTEM)

    assert (await agent.call("rec.say", {"n": 2})).text == CLEAN


@pytest.mark.long
async def test_a_result_that_breaks_its_schema_is_blocked_by_a_rule(
    agent: Agent, upstream: Recorder, rule: AddRule
) -> None:
    upstream.results["say"] = said("x" * 5_000, structuredContent=["so"] * 900)
    small = stored_rules(ResultRules(max_bytes=1024))
    await rule(Effect.ALLOW, "say", results=small)

    reply = await agent.call("rec.say")

    assert reply.result["isError"] is True
    assert "and it cannot be cut" in reply.text
