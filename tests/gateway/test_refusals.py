"""What an agent that gets no result is told: why, by which rule, whether to ask again, and what
would be allowed. In words for its model, and in members for its program."""

from typing import Any

import jsonschema_rs
import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals.models import Approval
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import State
from policies.models import Effect, Rule
from policies.services import save_rule
from registry.models import Server, Tool, Toolset
from tests.gateway.agent import LEGACY, MODERN, Agent, Reply
from tests.gateway.conftest import AddRule, Play, decide, server, until
from tests.gateway.test_frozen import begin
from tests.gateway.test_once import send
from tests.gateway.test_rest import Rest, rest  # noqa: F401 a fixture
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

ALLOWED = "Amounts up to 100."


@pytest.fixture(params=[MODERN, LEGACY[0]])
def agent(request: pytest.FixtureRequest, play: Play) -> Agent:
    return play(request.param)


@sync_to_async
def save(effect: Effect, tool: str, **more: Any) -> None:
    save_rule(Rule(name=f"the {tool} rule", effect=effect, tool=tool, **more), by=SYSTEM)


def refusal(reply: Reply) -> Any:
    """The same in both places; the text names what matters too."""
    told = reply.result["_meta"]["countersign/refusal"]
    assert reply.result["isError"] is True
    assert reply.result["structuredContent"] == {"refusal": told}
    for said in (told["rule"], told["allowed"]):
        assert said is None or said in reply.text
    return told


async def test_a_rule_that_denies(agent: Agent, rule: AddRule, upstream: Recorder) -> None:
    await save(Effect.DENY, "echo", reason="Too loud.", instead=ALLOWED)
    await rule(Effect.ALLOW, "unrelated")

    reply = await agent.call("rec.echo", {"text": "x"})

    assert refusal(reply) == {
        "kind": "policy",
        "reason": "Too loud.",
        "rule": "the echo rule",
        "try_again": "no",
        "allowed": ALLOWED,
    }
    assert reply.text.startswith("Too loud. Nothing was sent. Rule: “the echo rule”.")
    assert "Do not ask again unchanged" in reply.text
    assert upstream.calls == []


async def test_a_condition_may_judge_other_arguments_otherwise(agent: Agent, rule: AddRule) -> None:
    await save(Effect.DENY, "echo", when="args.text == 'bye'")
    await rule(Effect.ALLOW, "unrelated")

    reply = await agent.call("rec.echo", {"text": "bye"})

    assert refusal(reply)["try_again"] == "changed"
    assert (await agent.call("rec.echo", {"text": "hello"})).text == "hello"


async def test_a_rule_that_is_not_to_be_named_is_not(
    agent: Agent,
    rule: AddRule,
    rest: Rest,  # noqa: F811
) -> None:
    await save(Effect.DENY, "echo", unnamed=True)
    await rule(Effect.ALLOW, "unrelated")

    reply = await agent.call("rec.echo", {"text": "x"})
    again = await rest.call("rec.echo", {"text": "x"})

    assert refusal(reply)["rule"] is None
    assert refusal(reply)["reason"] == "A rule says so."
    assert b"the echo rule" not in reply.body + again.body


async def asked_and(agent: Agent, rule: AddRule, decided: Any = None, **more: Any) -> Reply:
    """What an agent gets that comes back with its key once the call is decided."""
    await save(Effect.ASK, "echo", instead=ALLOWED, **more)
    await rule(Effect.ALLOW, "unrelated")
    asker = Agent(agent.http, agent.url, agent.token, capabilities={"elicitation": {}})
    await send(asker, "rec.echo", {"text": "x"}, key="k")
    await decided()
    return await send(agent, "rec.echo", {"text": "x"}, key="k")


@pytest.mark.long
async def test_a_persons_no(agent: Agent, rule: AddRule, alice: User) -> None:
    async def no() -> None:
        await decide(alice, approve=False, reason="Not today.")

    told = refusal(await asked_and(agent, rule, no))

    assert (told["kind"], told["try_again"]) == ("denied", "changed")
    assert (told["rule"], told["allowed"]) == ("the echo rule", ALLOWED)
    assert told["reason"] == "Denied by alice. Not today."


@pytest.mark.long
async def test_time_that_ran_out(agent: Agent, rule: AddRule, stack: Stack) -> None:
    assert stack.worker

    async def late() -> None:
        approval = await Approval.objects.aget()
        await Approval.objects.aupdate(decide_by=approval.asked_at)
        await until(lambda: Call.objects.filter(state=State.EXPIRED).aexists())

    told = refusal(await asked_and(agent, rule, late))

    assert (told["kind"], told["try_again"]) == ("expired", "now")
    assert told["reason"] == "Nobody decided in time."


@pytest.mark.long
async def test_what_changed_meanwhile(
    agent: Agent, rule: AddRule, stack: Stack, alice: User
) -> None:
    assert stack.worker

    async def changed() -> None:
        await save(Effect.DENY, "ech*")
        await until(lambda: Call.objects.filter(state=State.SUPERSEDED).aexists())

    told = refusal(await asked_and(agent, rule, changed))

    assert (told["kind"], told["try_again"]) == ("superseded", "no")
    assert "Policy now forbids the call" in told["reason"]


@pytest.mark.long
async def test_a_tool_that_is_gone(agent: Agent, rule: AddRule, stack: Stack, alice: User) -> None:
    """Nobody votes: a worker sees it within a second or so."""
    assert stack.worker

    async def gone() -> None:
        await Tool.objects.filter(name="echo").aupdate(state=Tool.State.RETIRED)
        await until(lambda: Call.objects.filter(state=State.SUPERSEDED).aexists())

    await save(Effect.ASK, "echo")
    await rule(Effect.ALLOW, "unrelated")
    asker = Agent(agent.http, agent.url, agent.token, capabilities={"elicitation": {}})
    held = await send(asker, "rec.echo", {"text": "x"}, key="k")
    await gone()
    reply = await agent.call("countersign.await_call", {"call_id": held.call_id})

    told = refusal(reply)
    assert (told["kind"], told["try_again"]) == ("superseded", "no")
    assert told["reason"] == (
        "The tool is no longer published. It is gone from its server, or was taken back."
    )
    text = reply.result["content"][0]["text"]
    assert "Do not ask again: the same cannot be sent any more." in text


NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "number"}},
    "required": ["n"],
    "additionalProperties": False,
}
COUNTS = {"count": {"inputSchema": {"type": "object", "maxProperties": 1}, "outputSchema": NUMBER}}


def fits_the_output(reply: Reply) -> bool:
    """As TypeScript SDK 1.x and Inspector have it: whatever is there must fit, also in an error."""
    content = reply.result.get("structuredContent")
    return content is None or bool(jsonschema_rs.is_valid(NUMBER, content))


@pytest.mark.parametrize("arguments", [{}, {"a": 1, "b": 2}])
async def test_what_is_refused_of_a_tool_with_an_output_schema(
    any_agent: Agent,
    toolset: Toolset,
    rule: AddRule,
    upstream: Recorder,
    bob: User,
    arguments: dict[str, Any],
) -> None:
    upstream.tools = COUNTS
    await server("num", toolset, upstream, by=bob)
    await save(Effect.DENY, "count", reason="No numbers today.")
    await rule(Effect.ALLOW, "unrelated")

    reply = await any_agent.call("num.count", arguments)

    assert reply.result["isError"] is True
    assert reply.result["_meta"]["countersign/refusal"]["kind"] in ("policy", "invalid")
    assert reply.text
    assert fits_the_output(reply)
    assert b"structuredContent" not in reply.body


@pytest.mark.long
async def test_what_people_decide_of_a_tool_with_an_output_schema(
    agent: Agent, toolset: Toolset, rule: AddRule, upstream: Recorder, alice: User, bob: User
) -> None:
    """As its own outcome, by a key, and as what a tool of ours brings, which has no such schema."""
    upstream.tools = COUNTS
    await server("num", toolset, upstream, by=bob)
    await save(Effect.ASK, "count")
    await rule(Effect.ALLOW, "unrelated")
    asker = Agent(agent.http, agent.url, agent.token, capabilities={"elicitation": {}})
    held = await send(asker, "num.count", {}, key="k")
    await decide(alice, approve=False, reason="Not today.")

    own = await send(agent, "num.count", {}, key="k")
    brought = await agent.call("countersign.await_call", {"call_id": held.call_id})

    assert fits_the_output(own)
    assert own.result["_meta"]["countersign/refusal"]["kind"] == "denied"
    assert "Not today." in own.text
    assert refusal(brought) == own.result["_meta"]["countersign/refusal"]


async def test_a_freeze(agent: Agent, rule: AddRule, olga: User, upstream: Recorder) -> None:
    await begin(olga)
    await rule(Effect.ALLOW, "unrelated")

    reply = await agent.call("rec.echo", {"text": "x"})

    told = refusal(reply)
    assert (told["kind"], told["try_again"]) == ("frozen", "later")
    assert "Odd things happen." in told["reason"]
    assert upstream.calls == []


async def test_arguments_that_do_not_fit(agent: Agent) -> None:
    reply = await agent.call("rec.form", {"days": 9})

    told = refusal(reply)
    assert (told["kind"], told["try_again"]) == ("invalid", "changed")
    assert sorted(one["path"] for one in told["violations"]) == ["$.city", "$.days"]


async def test_a_tool_that_there_is_not(agent: Agent) -> None:
    told = (await agent.call("rec.nope")).error["data"]["refusal"]

    assert (told["kind"], told["try_again"]) == ("unknown_tool", "changed")


async def test_a_server_that_cannot_be_reached(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    await Server.objects.aupdate(url="http://127.0.0.1:9/mcp")
    await rule(Effect.ALLOW, "unrelated")

    told = refusal(await agent.call("rec.echo", {"text": "x"}))

    assert (told["kind"], told["try_again"]) == ("failed", "later")
    assert upstream.calls == []


@pytest.mark.long
async def test_a_queue_that_is_full(play: Play, rule: AddRule, own_stack: Stack) -> None:
    own_stack.env["COUNTERSIGN_AGENT_QUEUE"] = "1"
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    await Tool.objects.filter(name="echo").aupdate(mode=Tool.Mode.BACKGROUND)
    await rule(Effect.ASK, "echo")
    await agent.call("rec.echo", {"text": "x"})

    full = await agent.call("rec.echo", {"text": "y"})

    told = full.error["data"]["refusal"]
    assert (full.status, full.headers["Retry-After"]) == (429, "5")
    assert (told["kind"], told["try_again"], told["after_s"]) == ("limit", "later", 5)


async def test_rest_says_the_same(rest: Rest, rule: AddRule) -> None:  # noqa: F811
    await save(Effect.DENY, "echo", reason="Too loud.", instead=ALLOWED)
    await rule(Effect.ALLOW, "unrelated")

    reply = await rest.call("rec.echo", {"text": "x"})

    assert reply.status == 403
    assert reply.last["refusal"] == {
        "kind": "policy",
        "reason": "Too loud.",
        "rule": "the echo rule",
        "try_again": "no",
        "allowed": ALLOWED,
    }
    read = await rest.get(f"calls/{reply.last['call']}")
    assert read.last["refusal"] == reply.last["refusal"]
