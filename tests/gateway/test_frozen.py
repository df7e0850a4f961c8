"""The kill switch as agents meet it: refused with the reason, and nothing sent."""

from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from accounts.roles import Role
from approvals import freezes
from calls.models import Call, Freeze
from policies.models import Effect
from registry import services as toolsets
from registry.models import OwnTool, Server, Toolset
from tests.conftest import person
from tests.gateway.agent import MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, until
from tests.gateway.test_rest import Rest, rest  # noqa: F401
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def begin(by: User, **what: Any) -> Freeze:
    return freezes.begin(by=by, reason="Odd things happen.", **what)


@sync_to_async
def end(frozen: Freeze, *, by: str) -> None:
    freezes.end(frozen, by=person(by, Role.OPERATOR), why="Found it.")


async def anew(play: Play, scout: AgentRow, bob: User) -> Agent:
    """With a token that no process knows yet, so that each looks at what holds now."""
    return play(token=await sync_to_async(accounts.issue_token)(scout, by=bob))


@pytest.mark.parametrize("what", ["everything", "agent", "server"])
async def test_it_is_refused_until_another_person_ends_it(
    play: Play, scout: AgentRow, bob: User, olga: User, upstream: Recorder, what: str
) -> None:
    server = await Server.objects.aget()
    scopes: dict[str, dict[str, Any]] = {"agent": {"agent": scout}, "server": {"server": server}}
    frozen = await begin(olga, **scopes.get(what, {}))

    reply = await (await anew(play, scout, bob)).call("rec.echo", {"text": "x"})

    assert reply.result["isError"] is True
    assert "suspended since" in reply.text
    assert "by olga: Odd things happen." in reply.text
    assert upstream.calls == []
    assert (await Call.objects.aget()).state == "refused"

    await end(frozen, by="ada")
    reply = await (await anew(play, scout, bob)).call("rec.echo", {"text": "x"})

    assert reply.text == "x"
    assert len(upstream.calls) == 1


async def test_rest_answers_503(
    stack: Stack,
    http: aiohttp.ClientSession,
    play: Play,
    scout: AgentRow,
    bob: User,
    olga: User,
) -> None:
    assert stack.web
    await begin(olga)
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    ask = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "x"}}
    headers = {"Authorization": f"Bearer {token}"}

    async with http.post(f"{stack.web_url}/api/calls", json=ask, headers=headers) as response:
        assert response.status == 503
        assert "All calls have been suspended" in (await response.json())["detail"]


STOPPED = (
    "Suspended: Calls of this agent have been suspended since",
    "by olga: Odd things happen. Until that has ended nobody can approve it.",
)


def says_so(text: str) -> bool:
    return all(part in text for part in STOPPED)


@pytest.mark.long
async def test_whoever_waits_for_a_person_is_told_that_calls_are_stopped(
    play: Play,
    rest: Rest,  # noqa: F811
    scout: AgentRow,
    olga: User,
    toolset: Toolset,
    rule: AddRule,
    stack: Stack,
) -> None:
    await sync_to_async(toolsets.set_own_tools)(toolset, OwnTool.values, by=None)
    await sync_to_async(toolsets.set_hold)(toolset, 1, by=None)
    await rule(Effect.ASK, "echo")
    tasks, plain = play(MODERN), play(MODERN)
    tasks.capabilities = TASKS
    task = (await tasks.call("rec.echo", {"text": "task"})).result["taskId"]
    asked = await plain.call("rec.echo", {"text": "plain"})
    call = {"call_id": asked.call_id}
    assert (await rest.get(f"calls/{asked.call_id}")).last["decide_by"]

    frozen = await begin(olga, agent=scout)

    async def task_says_so() -> bool:
        found = await tasks.ask("tasks/get", {"taskId": task})
        return says_so(found.result["statusMessage"])

    await until(task_says_so)
    state = {"requestState": asked.result["requestState"]}
    again = await plain.call("rec.echo", {"text": "plain"}, **state)
    assert says_so(again.result["_meta"]["countersign/waiting"])
    assert says_so((await plain.call("countersign_await_call", call)).text)
    seen = (await plain.call("countersign_get_call", call)).result["structuredContent"]
    by_rest = (await rest.get(f"calls/{asked.call_id}")).last
    for one in (seen, by_rest):
        assert says_so(one["outcome"])
        assert one["decide_by"] is None

    await end(frozen, by="ada")
    by_rest = (await rest.get(f"calls/{asked.call_id}")).last
    assert "Suspended" not in by_rest["outcome"]
    assert by_rest["decide_by"]
