"""A server of 2025-11-25 says by an error that a page has to be opened first, which 2026-07-28 asks
as a question: either agent gets it in its own way."""

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals.models import Approval
from audit.models import Entry
from calls.models import Input
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Server, Toolset
from tests.gateway.agent import LEGACY, URLS, Agent, Reply, data_of
from tests.gateway.conftest import (
    AddRule,
    Play,
    decide,
    forget_agreements,
    server,
    the_call,
    until,
)
from tests.gateway.test_inputs import post_answer
from tests.gateway.test_listening import events, following, get_stream
from tests.processes import Stack
from tests.upstreams.asking import GATED, LINK, Asking
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in.", "url": "https://a.example/1"},
}

running_recorder = running(Asking)
# At an address of its own, as in test_inputs.py.
running_legacy = running(Asking)


@pytest.fixture
def upstream(
    request: pytest.FixtureRequest, running_recorder: Asking, running_legacy: Asking
) -> Asking:
    chosen = running_legacy if "legacy" in request.fixturenames else running_recorder
    chosen.reset()
    return chosen


@pytest.fixture
def legacy(upstream: Asking, toolset: Toolset) -> Asking:
    """After the first look: what it speaks is found out anew."""
    upstream.legacy = True
    forget_agreements()
    return upstream


async def answer(agent: Agent, asked: Reply, action: str) -> Reply:
    (key,) = asked.result["inputRequests"]
    more = {"requestState": asked.result["requestState"]}
    return await agent.call("rec.gated", inputResponses={key: {"action": action}}, **more)


@pytest.mark.long
@pytest.mark.parametrize("gates", [1, 3])
async def test_the_agent_of_today_is_asked_and_the_server_once_more(
    gates: int, play: Play, legacy: Asking
) -> None:
    legacy.gates = gates
    agent = play(capabilities=URLS)

    asked = await agent.call("rec.gated")
    reply = await answer(agent, asked, "accept")

    assert list(asked.result["inputRequests"].values()) == [PAGE]
    assert reply.text == "[]"
    # Until its user is done, the server is asked again, and the agent is not.
    assert len(legacy.declared) == gates + 1
    assert legacy.declared[0] == URLS
    call = await the_call()
    assert call.state == State.SUCCEEDED
    entries = Entry.objects.filter(call_id=call.pk, action__startswith="call.input")
    asked_entry, given = [entry async for entry in entries.order_by("id")]
    assert (asked_entry.reason, given.details["said"]) == ("Sign in. (a.example)", "accept")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_will_not_open_it_gets_no_result(action: str, play: Play, legacy: Asking) -> None:
    agent = play(capabilities=URLS)

    reply = await answer(agent, await agent.call("rec.gated"), action)

    assert "asked for input (“Sign in.”) and got none" in reply.text
    assert (reply.result["isError"], len(legacy.declared)) == (True, 1)


async def test_who_cannot_be_asked_is_told_so(play: Play, legacy: Asking) -> None:
    reply = await play().call("rec.gated")

    assert "asked for input (“Sign in.”) and got none" in reply.text
    assert not await Input.objects.aexists()


async def test_nobody_is_asked_where_the_operator_does_not_let_the_server(
    play: Play, legacy: Asking
) -> None:
    server = await Server.objects.aget(slug="rec")
    await sync_to_async(services.set_relays)(server, [], by=None)

    reply = await play(capabilities=URLS).call("rec.gated")

    assert reply.result["isError"]
    assert not await Input.objects.aexists()


async def test_an_agent_of_its_own_revision_gets_it_as_it_is_and_asks_again(
    play: Play, legacy: Asking
) -> None:
    agent = play(LEGACY[0], capabilities=URLS)

    first = await agent.call("rec.gated")
    second = await agent.call("rec.gated")

    assert first.error["code"] == -32042
    assert first.error["data"] == {"elicitations": [GATED]}
    assert second.text == "[]"
    assert len(legacy.declared) == 2
    assert not await Input.objects.aexists()


async def test_a_page_that_a_server_of_today_asks_for_has_a_name_where_the_agent_needs_one(
    play: Play, upstream: Asking
) -> None:
    agent = play(LEGACY[0], capabilities=URLS)
    message = await agent.message("tools/call", {"name": "rec.link", "arguments": {}})
    said: list[Any] = []

    async with agent.open(message) as response:
        async for line in response.content:
            for data in data_of(line.decode()):
                said.append(json.loads(data))
                if "method" in said[-1]:
                    await post_answer(agent, said[-1]["id"], result={"action": "accept"})

    asked, reply = said
    named = asked["params"].pop("elicitationId")
    assert isinstance(named, str)
    assert asked["params"] == LINK["params"]
    assert "accept" in reply["result"]["content"][0]["text"]


async def until_beside(asking: Asking) -> None:
    async def open_now() -> bool:
        return asking.beside > 0

    await until(open_now)


def done(name: str) -> dict[str, Any]:
    params = {"elicitationId": name}
    return {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}


async def test_who_was_told_to_open_it_hears_beside_its_session_that_it_is_done(
    play: Play, legacy: Asking
) -> None:
    legacy.gates = 3
    agent, other = (play(LEGACY[0], capabilities=URLS) for _ in range(2))
    async with AsyncExitStack() as on:
        for one, page in ((agent, "e1"), (other, "e2")):
            await one.call("rec.gated", {"page": page})
        heard, others = [await get_stream(one, on) for one in (agent, other)]
        await until_beside(legacy)
        legacy.done += ["e2", "unknown", "e1", "e1"]
        assert await following(heard) == done("e1")
        assert await following(others) == done("e2")

        # Each once, and nothing of the other's.
        await agent.call("rec.gated", {"page": "e3"})
        legacy.done.append("e3")
        assert await following(heard) == done("e3")


@pytest.mark.long
async def test_it_hears_so_at_another_process_of_what_a_worker_ran(
    play: Play, rule: AddRule, stack: Stack, own_stack: Stack, legacy: Asking, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "named")
    agent = play(LEGACY[0], capabilities=URLS)
    message = await agent.message("tools/call", {"name": "rec.named", "arguments": {}})
    assert own_stack.agents
    elsewhere = play(LEGACY[0], at_stack=own_stack, session=agent.session)
    async with AsyncExitStack() as on:
        heard = await get_stream(elsewhere, on)
        said = events(await on.enter_async_context(agent.open(message)))
        await until(Approval.objects.aexists)
        await decide(alice)
        asked = await following(said)
        assert asked["params"]["elicitationId"] == "n1"
        await post_answer(elsewhere, asked["id"], result={"action": "accept"})
        assert "accept" in (await following(said))["result"]["content"][0]["text"]
        await until_beside(legacy)
        legacy.done.append("n1")

        assert await following(heard) == done("n1")


@pytest.mark.long
@pytest.mark.parametrize("revision", LEGACY[1:])
async def test_other_revisions_know_no_such_news(
    revision: str, play: Play, legacy: Asking, toolset: Toolset, bob: User
) -> None:
    agent = play(revision, capabilities=URLS)
    async with AsyncExitStack() as on:
        await agent.call("rec.gated")
        heard = await get_stream(agent, on)
        legacy.done.append("e1")
        await server("two", toolset, legacy, by=bob)

        assert (await following(heard))["method"] == "notifications/tools/list_changed"
