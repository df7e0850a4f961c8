"""The gateway's own tools: what an agent knows and says of its own calls, and of no other's."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent as AgentRow
from accounts.models import User
from approvals import comments
from approvals.models import Approval, Comment
from audit.models import Entry
from calls.models import Call
from calls.record.states import LIVE, State
from gateway.protocol import handles
from gateway.submit import messages
from policies.models import Effect
from registry import services
from registry.models import OwnTool, Toolset
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, decide, until
from tests.gateway.test_listing import names
from tests.gateway.test_once import another_agent
from tests.gateway.test_rest import Rest, rest  # noqa: F401 a fixture
from tests.gateway.test_streams import until_running
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "0192f000-0000-7000-8000-000000000000"
OF_ONE = ["await_call", "get_call", "cancel_call", "justify"]


@pytest.fixture(params=[MODERN, LEGACY[1]])
async def agent(
    request: pytest.FixtureRequest, toolset: Toolset, rule: AddRule, play: Play
) -> Agent:
    """Has all of them; its calls of "echo" wait for people."""
    await sync_to_async(services.set_own_tools)(toolset, OwnTool.values, by=None)
    await rule(Effect.ASK, "echo", reason="Echoes are loud.")
    made = play(request.param)
    if request.param == MODERN:
        made.capabilities = TASKS
    return made


async def held(agent: Agent, text: str = "x") -> Call:
    """By a client that understands tasks, so that nothing is held for 45 seconds."""
    asker = Agent(agent.http, agent.url, agent.token, capabilities=TASKS)
    reply = await asker.call("rec.echo", {"text": text})
    return await Call.objects.aget(pk=reply.call_id)


async def own(agent: Agent, name: str, **arguments: Any) -> Any:
    reply = await agent.call(f"countersign.{name}", arguments)
    assert reply.status == 200
    return reply.result


async def told(agent: Agent, name: str, **arguments: Any) -> Any:
    result = await own(agent, name, **arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]


@sync_to_async
def asked(by: User, text: str) -> None:
    comments.say(Approval.objects.get(), by=by, text=text, ask_agent=True)


@pytest.mark.long
async def test_they_are_listed_where_the_toolset_has_them(
    agent: Agent, toolset: Toolset, rule: AddRule
) -> None:
    ours = [f"countersign_{name}" for name in sorted(OwnTool.values)]
    assert [name for name in await names(agent) if name.startswith("countersign_")] == ours

    await sync_to_async(services.set_own_tools)(toolset, ["get_call"], by=None)
    await rule(Effect.ALLOW, "unrelated")

    assert [name for name in await names(agent) if name.startswith("countersign_")] == [
        "countersign_get_call"
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", OwnTool.values)
async def test_what_a_toolset_has_not_is_unknown_and_recorded(
    agent: Agent, toolset: Toolset, rule: AddRule, name: str
) -> None:
    await sync_to_async(services.set_own_tools)(toolset, [], by=None)
    await rule(Effect.ALLOW, "unrelated")

    reply = await agent.call(f"countersign.{name}", {"call_id": UNKNOWN, "text": "x"})

    assert reply.error["code"] == -32602
    assert (await Call.objects.aget()).state == State.INVALID


@pytest.mark.long
@pytest.mark.parametrize("name", OF_ONE)
async def test_anothers_call_is_told_as_one_that_does_not_exist(
    agent: Agent, play: Play, toolset: Toolset, bob: User, name: str
) -> None:
    theirs = await held(agent)
    stranger = play(agent.revision, token=await another_agent(toolset, bob))
    before = await Entry.objects.acount()
    ids: list[Any] = [str(theirs.pk), UNKNOWN, "x", None, 5, {}]

    replies = [await own(stranger, name, call_id=call_id, text="x") for call_id in ids]
    replies.append(await own(stranger, name))

    assert replies == [replies[0]] * 7
    assert replies[0]["isError"] is True
    assert "No call of yours" in replies[0]["content"][0]["text"]
    assert await Entry.objects.acount() == before
    await theirs.arefresh_from_db()
    assert theirs.state == State.HELD


@pytest.mark.long
async def test_a_call_is_known_by_its_tasks_id_to_its_own_agent(
    agent: Agent, play: Play, toolset: Toolset, scout: AgentRow, bob: User
) -> None:
    call = await held(agent)
    task = handles.task_id(call.pk, scout.pk)
    stranger = play(agent.revision, token=await another_agent(toolset, bob))

    assert (await told(agent, "get_call", call_id=task))["id"] == str(call.pk)
    assert (await own(stranger, "get_call", call_id=task))["isError"] is True


@pytest.mark.long
async def test_a_call_is_looked_at_while_it_waits_and_when_it_is_done(
    agent: Agent, stack: Stack, alice: User
) -> None:
    assert stack.worker
    call = await held(agent)
    await asked(alice, "What for?")

    waiting = await told(agent, "get_call", call_id=str(call.pk))
    await decide(alice)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())
    done = await told(agent, "get_call", call_id=str(call.pk))

    assert (waiting["state"], waiting["questions"]) == ("held", ["What for?"])
    assert waiting["reason"] == "Echoes are loud."
    assert "pending approval" in waiting["outcome"]
    assert waiting["arguments"] == {"text": "x"}
    assert (done["state"], done["executed"]) == ("succeeded", "yes")
    assert done["result"]["content"] == [{"type": "text", "text": "x"}]


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "state", "outcome"),
    [
        ("rec.say", "succeeded", "It succeeded: the tool's result says what came of it."),
        ("rec.tell", "tool_error", "The tool ended with an error; see its result."),
        ("rec.fail", "failed", "The server answered with error 1234: no such luck"),
    ],
)
async def test_the_outcome_of_what_has_ended_waits_for_nobody(
    agent: Agent,
    rest: Rest,  # noqa: F811
    upstream: Recorder,
    tool: str,
    state: str,
    outcome: str,
) -> None:
    upstream.results["say"] = b'{"content":[]}'
    if tool == "rec.tell":
        tool, upstream.results["say"] = "rec.say", b'{"content":[],"isError":true}'
    await agent.call(tool)
    call = await Call.objects.aget()

    seen = await told(agent, "get_call", call_id=str(call.pk))
    reply = await rest.send("GET", f"calls/{call.pk}")

    assert (seen["state"], seen["outcome"]) == (state, outcome)
    assert (reply.last["state"], reply.last["outcome"]) == (state, outcome)


@pytest.mark.parametrize("state", State)
def test_only_what_waits_is_said_to_wait(state: State) -> None:
    said = messages.stands(state, uuid4(), "fingerprint")

    assert said
    assert ("wait" in said or "pending" in said) is (state in LIVE and state != State.RUNNING)


async def test_those_that_have_not_ended_are_listed(agent: Agent, alice: User) -> None:
    first = await held(agent)
    await agent.call("rec.say")
    second = await held(agent, "y")

    listed = await told(agent, "my_waiting_calls")

    assert [call["id"] for call in listed["calls"]] == [str(second.pk), str(first.pk)]
    assert {call["state"] for call in listed["calls"]} == {"held"}
    assert listed["more"] is False


async def test_a_held_call_is_withdrawn_once(agent: Agent, upstream: Recorder) -> None:
    call = await held(agent)

    withdrawn = await told(agent, "cancel_call", call_id=str(call.pk))
    again = await own(agent, "cancel_call", call_id=str(call.pk))

    assert withdrawn["was"] == "held"
    assert again["isError"] is True
    assert "Withdrawn already" in again["content"][0]["text"]
    await call.arefresh_from_db()
    assert (call.state, call.executed) == (State.WITHDRAWN, "no")
    entry = await Entry.objects.filter(call_id=call.pk).order_by("id").alast()
    assert entry is not None
    assert (entry.action, entry.actor) == ("call.withdrawn", "scout")
    assert upstream.calls == []


async def test_a_running_call_is_asked_to_stop(agent: Agent, upstream: Recorder) -> None:
    running = asyncio.create_task(agent.call("rec.hang"))
    call = await until_running(upstream)
    other = Agent(agent.http, agent.url, agent.token, agent.revision)

    said = await told(other, "cancel_call", call_id=str(call.pk))
    await running

    assert said["was"] == "running"
    assert "may have been executed" in said["said"]
    await call.arefresh_from_db()
    assert call.cancel_asked_by == "scout"


async def test_what_it_says_is_kept_as_its_claim(agent: Agent, alice: User) -> None:
    call = await held(agent)

    await told(agent, "justify", call_id=str(call.pk), text="The customer wants it.")

    comment = await Comment.objects.select_related("agent").aget()
    assert (comment.kind, comment.text) == (Comment.Kind.ANSWER, "The customer wants it.")
    assert comment.agent is not None
    assert comment.agent.name == "scout"
    entry = await Entry.objects.aget(action="approval.answer")
    assert (entry.actor_kind, entry.details["text"]) == ("agent", "The customer wants it.")


@pytest.mark.long
async def test_a_persons_question_reaches_it_and_is_answered(
    agent: Agent, play: Play, own_stack: Stack, alice: User
) -> None:
    own_stack.env["COUNTERSIGN_HOLD_S"] = "1"
    assert own_stack.agents
    call = await held(agent)
    await asked(alice, "Which customer?")
    hasty = play(agent.revision, at_stack=own_stack)

    before = await own(hasty, "await_call", call_id=str(call.pk))
    await told(agent, "justify", call_id=str(call.pk), text="Number 7.")
    after = await own(hasty, "await_call", call_id=str(call.pk))

    assert "A person asks: “Which customer?”" in before["content"][0]["text"]
    assert "countersign_justify" in before["content"][0]["text"]
    assert "A person asks" not in after["content"][0]["text"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "must be a string"),
        (7, "must be a string"),
        (" ", "Say something."),
        ("x" * 4001, "At most 4000"),
        ("a\0b", "NUL"),
    ],
)
async def test_what_is_no_explanation_is_refused(agent: Agent, text: Any, said: str) -> None:
    call = await held(agent)

    result = await own(agent, "justify", call_id=str(call.pk), text=text)

    assert result["isError"] is True
    assert said in result["content"][0]["text"]
    assert not await Comment.objects.aexists()


@pytest.mark.long
async def test_it_says_so_much_and_only_while_the_call_waits(agent: Agent, alice: User) -> None:
    call = await held(agent)
    for n in range(comments.MOST_BY_AGENT):
        await told(agent, "justify", call_id=str(call.pk), text=f"Reason {n}.")

    too_much = await own(agent, "justify", call_id=str(call.pk), text="One more.")
    await decide(alice, approve=False)
    too_late = await own(agent, "justify", call_id=str(call.pk), text="But!")

    assert "enough was said" in too_much["content"][0]["text"]
    assert "is no longer pending" in too_late["content"][0]["text"]
    assert await Comment.objects.acount() == comments.MOST_BY_AGENT


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "effect", "reason"),
    [
        ("rec.echo", "ask", "Echoes are loud."),
        ("rec.say", "allow", "Rule “allow *” says so."),
        ("rec.erase", "deny", "Never."),
    ],
)
async def test_it_is_told_what_rules_would_say(
    agent: Agent, rule: AddRule, upstream: Recorder, tool: str, effect: str, reason: str
) -> None:
    await rule(Effect.DENY, "erase", reason="Never.")

    said = await told(agent, "explain", tool=tool, arguments={"text": "x"})

    assert (said["effect"], said["reason"], said["violations"]) == (effect, reason, [])
    assert said["said"].startswith("It would ")
    assert upstream.received == []
    assert not await Call.objects.aexists()


async def test_what_it_explains_must_be_a_tool_with_arguments_that_fit(agent: Agent) -> None:
    unknown = await own(agent, "explain", tool="rec.nope")
    nothing = await own(agent, "explain")
    unfit = await told(agent, "explain", tool="rec.echo", arguments={"text": 5})

    for result in (unknown, nothing):
        assert result["isError"] is True
        assert "no such tool here" in result["content"][0]["text"]
    assert [one["path"] for one in unfit["violations"]] == ["$.text"]
