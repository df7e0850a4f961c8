"""Who has much under way waits for who has little, and queues have an end."""

from typing import Any
from uuid import UUID

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import override_settings

from accounts import services as accounts
from accounts.models import Agent, User
from calls.models import Call
from calls.queue.claiming import claim, claim_next
from calls.queue.scheduling import whose_turn
from calls.record.states import State
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.calls import rows
from tests.calls.flaky import Flaky
from tests.console import scenery
from tests.gateway.agent import Agent as Player
from tests.gateway.conftest import AddRule, add_rule, until
from tests.processes import Stack


@pytest.fixture
def add(olga: User, scout: Agent) -> Tool:
    add_rule(Effect.ALLOW, "*")
    tool = scenery.server("calculator", olga, scenery.ADD).tools.for_catalogue().get()
    return scenery.offered(scout, tool)


@pytest.fixture
def rover(bob: User) -> Agent:
    return accounts.create_agent("rover", owner=bob, by=bob)


def queue(agent: Agent, tool: Tool, count: int) -> list[UUID]:
    return [scenery.call(agent, tool, {"a": n, "b": 0}, State.QUEUED) for n in range(count)]


def names(ids: list[UUID]) -> list[str]:
    return [Call.objects.select_related("agent").get(pk=pk).agent.name for pk in ids]


def test_agents_take_turns(scout: Agent, rover: Agent, add: Tool) -> None:
    queue(scout, add, 4)
    queue(rover, add, 2)

    turns = names(whose_turn(most=10))

    assert turns == ["scout", "rover", "scout", "rover", "scout", "scout"]


def test_who_has_less_under_way_goes_first(scout: Agent, rover: Agent, add: Tool) -> None:
    for call_id in queue(scout, add, 2):
        scenery.run(call_id)
    queue(scout, add, 1)
    queue(rover, add, 3)

    assert names(whose_turn(most=10)) == ["rover", "rover", "scout", "rover"]


@override_settings(AGENT_LIMIT=2)
def test_an_agent_has_only_so_much_under_way(scout: Agent, add: Tool) -> None:
    first, *others = queue(scout, add, 4)
    scenery.run(first)

    assert whose_turn(most=10) == others[:1]

    scenery.finish(first, {"content": []})
    assert whose_turn(most=10) == others[:2]


@override_settings(SERVER_LIMIT=1)
def test_a_full_server_holds_up_no_call_of_another(
    scout: Agent, add: Tool, send_mail: Tool
) -> None:
    first, *_others = queue(scout, add, 3)
    scenery.run(first)
    mail = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)

    assert whose_turn(most=10) == [mail]


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


@override_settings(AGENT_LIMIT=1)
def test_a_dead_workers_lease_is_no_longer_counted(scout: Agent, add: Tool) -> None:
    dead, waiting = queue(scout, add, 2)
    scenery.run(dead)
    assert whose_turn(most=10) == []

    Call.objects.filter(pk=dead).update(lease_until="2026-01-01T00:00Z")

    assert whose_turn(most=10) == [waiting]


@override_settings(AGENT_LIMIT=1)
def test_a_claim_counts_again_for_itself(
    scout: Agent, add: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers may have looked before either of them claimed."""
    first, second = queue(scout, add, 2)
    monkeypatch.setattr("calls.basis._other_statement", lambda call, tool: "")

    assert claim(first, owner="one") is not None
    assert claim(second, owner="two") is None
    assert Call.objects.get(pk=second).state == State.QUEUED
    assert claim_next(owner="two") is None


@pytest.fixture
async def agent(
    stack: Stack, http: aiohttp.ClientSession, toolset: Toolset, scout_token: str, rule: AddRule
) -> Player:
    assert stack.agents
    assert stack.web
    return Player(http, f"{stack.agents_url}/mcp/desk", scout_token)


def fill(scout: Agent, count: int) -> None:
    tool = Tool.objects.select_related("server", "latest").get(name="echo")
    for n in range(count):
        scenery.call(scout, tool, {"text": str(n)}, State.HELD)


@pytest.mark.long
async def test_a_full_queue_is_said_before_anything_is_written(
    agent: Player, stack: Stack, scout: Agent, rule: AddRule, http: aiohttp.ClientSession
) -> None:
    await rule(Effect.ASK, "erase")
    await sync_to_async(fill)(scout, settings.AGENT_QUEUE)

    reply = await agent.call("rec.erase", {})

    assert (reply.status, reply.headers["Retry-After"]) == (429, "5")
    assert "200 calls of this agent wait already" in reply.error["message"]
    question: dict[str, Any] = {"toolset": "desk", "tool": "rec.erase", "arguments": {}}
    headers = {"Authorization": f"Bearer {agent.token}"}
    async with http.post(f"{stack.web_url}/api/calls", json=question, headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
    assert await Call.objects.acount() == settings.AGENT_QUEUE


@pytest.mark.long
async def test_short_calls_do_not_queue(agent: Player, scout: Agent) -> None:
    await sync_to_async(fill)(scout, settings.AGENT_QUEUE)

    assert (await agent.call("rec.echo", {"text": "hello"})).text == "hello"


@pytest.mark.long
async def test_all_that_waits_is_done_with_the_broker_deaf(
    agent: Player, stack: Stack, scout: Agent, bob: User, upstream: Flaky
) -> None:
    """Rows alone, no message about any of them: the sweep finds them, and works on."""
    assert stack.worker

    await sync_to_async(rows.queue)(scout, bob, "echo", count=100)

    async def all_ended() -> bool:
        return not await Call.objects.filter(state__in=["queued", "running"]).aexists()

    await until(all_ended, seconds=30)
    assert await Call.objects.filter(state=State.SUCCEEDED).acount() == 100
    assert len(upstream.calls) == 100
