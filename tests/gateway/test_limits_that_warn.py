"""Limits that only warn: the call runs, and its agent is told, on every road."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, until
from tests.gateway.limiting import limit
from tests.gateway.test_rest import Rest, rest  # noqa: F401
from tests.processes import Stack
from tests.upstreams.library import MESSAGES, NOTES, Library
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "Limit “few” is reached: 1 call per hour. Slow down. This is only a warning."
PLAIN = b'{"content":[{"type":"text","text":"a"}], "x":1.00e2}'
STRUCTURED = b'{"content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1.00e2}}'

Warned = Callable[..., Coroutine[Any, Any, Agent]]


@pytest.fixture
def warned(play: Play, scout: AgentRow, bob: User) -> Warned:
    """An agent that has used a limit up, and so far heard nothing of it."""

    async def warned(revision: str = MODERN, *, mode: str = "enforce", **more: Any) -> Agent:
        given = {"period": "hour", "effect": "warn", "reason": "Slow down.", "mode": mode}
        await limit(name="few", amount=1, **given)
        # Who does not know this token looks again, and then knows the limit too.
        token = await sync_to_async(accounts.issue_token)(scout, by=bob)
        agent = play(revision, token=token, **more)
        reply = await agent.call("rec.echo", {"text": "first"})
        assert b"countersign/limits" not in reply.body
        return agent

    return warned


def told(members: dict[str, Any]) -> None:
    (one,) = members["countersign/limits"]
    assert (one["name"], one["said"]) == ("few", SAID)
    assert 3500 < one["after_s"] <= 3600


@pytest.mark.parametrize("revision", [MODERN, *LEGACY])
async def test_the_call_runs_and_its_result_says_it(
    warned: Warned, revision: str, upstream: Recorder
) -> None:
    agent = await warned(revision)
    upstream.results["say"] = PLAIN

    reply = await agent.call("rec.say")

    told(reply.result["_meta"])
    assert [one["text"] for one in reply.result["content"]] == ["a", SAID]
    assert b'"x":1.00e2' in reply.body
    assert not reply.result.get("isError")
    assert await Call.objects.filter(state=State.SUCCEEDED).acount() == 2


async def test_structured_results_stay_as_they_are(warned: Warned, upstream: Recorder) -> None:
    agent = await warned()
    upstream.results["say"] = STRUCTURED

    reply = await agent.call("rec.say")

    told(reply.result["_meta"])
    assert STRUCTURED[1:-1] in reply.body


async def test_each_window_has_one_entry(warned: Warned) -> None:
    agent = await warned()

    for n in range(3):
        told((await agent.call("rec.echo", {"text": str(n)})).result["_meta"])

    async def noted() -> list[Entry]:
        return [one async for one in Entry.objects.filter(action="limit.reached")]

    (entry,) = await until(noted)
    assert (entry.details["limit_effect"], entry.details["limit_mode"]) == ("warn", "enforce")


async def test_one_that_is_monitored_only_tells_no_agent(warned: Warned) -> None:
    agent = await warned(mode="shadow")

    reply = await agent.call("rec.echo", {"text": "second"})

    assert b"few" not in reply.body
    assert reply.result["content"] == [{"type": "text", "text": "second"}]


async def test_errors_of_servers_say_it_in_their_data(warned: Warned) -> None:
    agent = await warned()

    reply = await agent.call("rec.fail")

    told(reply.error["data"])
    assert reply.error["data"]["why"] == [1, "x"]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("cost", {"cost_argument": "price", "amount": 2}),
        ("cost", {"cost_argument": "lacking"}),
        ("repeats", {"amount": 2, "minutes": 5}),
    ],
)
async def test_limits_that_are_counted_in_the_commit_warn_too(
    play: Play, scout: AgentRow, bob: User, kind: str, more: dict[str, Any]
) -> None:
    await limit(kind, effect="warn", **{"amount": 1, **more})
    agent = play(token=await sync_to_async(accounts.issue_token)(scout, by=bob))

    replies = [await agent.call("rec.echo", {"text": "x", "price": 1.5}) for _ in range(3)]

    (one,) = replies[-1].result["_meta"]["countersign/limits"]
    assert one["said"] == replies[-1].result["content"][-1]["text"]
    assert await Call.objects.filter(state=State.SUCCEEDED).acount() == 3


async def test_of_a_limit_that_blocks_too_only_that_is_told(warned: Warned) -> None:
    agent = await warned()
    await limit("cost", 1, name="money", cost=2)

    async def blocked() -> Any:
        reply = await agent.call("rec.echo", {"text": "second"})
        return reply.result if reply.result.get("isError") else None

    result = await until(blocked)

    assert "countersign/limits" not in result["_meta"]
    assert result["_meta"]["countersign/refusal"]["rule"] == "money"


async def test_tasks_say_it_as_they_begin(warned: Warned, stack: Stack, rule: AddRule) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = await warned(capabilities=TASKS)

    task = (await agent.call("rec.echo", {"text": "second"})).result

    assert task["resultType"] == "task"
    told(task["_meta"])


async def test_tasks_of_the_earlier_revision_too(warned: Warned) -> None:
    agent = await warned(LEGACY[0])

    made = (await agent.call("rec.echo", {"text": "second"}, task={})).result

    told(made["_meta"])


async def test_who_waits_for_people_is_told_at_once(warned: Warned, rule: AddRule) -> None:
    await rule(Effect.ASK, "say")
    agent = await warned(capabilities={"elicitation": {"url": {}}})

    reply = await agent.call("rec.say")

    assert reply.result["resultType"] == "input_required"
    told(reply.result["_meta"])


@pytest.mark.parametrize("revision", [MODERN, LEGACY[0]])
async def test_resources_and_prompts_say_it_beside_what_their_server_wrote(
    warned: Warned, library: Library, revision: str
) -> None:
    agent = await warned(revision)

    read = await agent.ask("resources/read", {"uri": NOTES["uri"]})
    got = await agent.ask("prompts/get", {"name": "lib.review", "arguments": {"text": "x"}})

    told(read.result["_meta"])
    told(got.result["_meta"])
    assert MESSAGES[1:-1].strip() in got.body


async def test_rest_says_it_in_fields_and_in_its_body(
    rest: Rest,  # noqa: F811
    scout: AgentRow,
    bob: User,
) -> None:
    made = await limit(amount=1, period="hour", effect="warn")
    rest.token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    await rest.call("rec.echo", {"text": "x"})

    reply = await rest.call("rec.echo", {"text": "y"})

    assert (reply.status, reply.last["state"]) == (201, "succeeded")
    assert reply.headers["RateLimit-Policy"] == f'"limit-{made.pk}";q=1;w=3600'
    assert reply.headers["RateLimit"].startswith(f'"limit-{made.pk}";r=0;t=3')
    assert "Retry-After" not in reply.headers
    (one,) = json.loads(reply.body)["limits"]
    assert one["said"].endswith("This is only a warning.")


async def test_explain_says_that_it_would_warn(
    rest: Rest,  # noqa: F811
    scout: AgentRow,
    bob: User,
) -> None:
    await limit(name="few", amount=1, period="hour", effect="warn")
    rest.token = await sync_to_async(accounts.issue_token)(scout, by=bob)

    question = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "x"}}
    reply = await rest.send("POST", "explain", question)

    assert reply.last["limits"] == [
        {"name": "few", "effect": "warn", "at_most": "1 call per hour", "reached": False}
    ]
