"""What a server asks in the middle of a call: it reaches the agent, and the answer the server."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from accounts.roles import Role
from approvals import editing
from approvals import services as approvals
from approvals.editing import Edit
from approvals.models import Approval
from audit.models import Entry
from calls.models import Input
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import Server, Tool, Toolset
from tests.console import scenery
from tests.gateway.agent import LEGACY, MODERN, Agent, Reply, data_of
from tests.gateway.conftest import AddRule, Play, add_server, forget_agreements, the_call, until
from tests.processes import Stack
from tests.upstreams.asking import FORM, LINK, Asking
from tests.upstreams.recorder import running

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
ANN = {"action": "accept", "content": {"name": "Ann"}}
PARIS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
HOME = {"roots": [{"uri": "file:///home/ann", "name": "home"}]}
ANSWERS = {
    "elicitation/create": ANN,
    "sampling/createMessage": PARIS,
    "roots/list": HOME,
}


@dataclass
class Talk:
    """How a call ended, and what its agent was asked until then."""

    last: Any
    asked: list[Any]

    @property
    def failed(self) -> bool:
        return "and got none" in self.last["result"]["content"][0]["text"]

    @property
    def answers(self) -> Any:
        """What the server was told, as it says."""
        return json.loads(self.last["result"]["content"][0]["text"])


running_recorder = running(Asking)
# At an address of its own: that a server speaks an earlier revision than before is no gateway's
# guess, and a call that it does not understand is not sent again.
running_legacy = running(Asking)


@pytest.fixture(autouse=True)
def _nobody_waits_for_ever(http: aiohttp.ClientSession) -> None:
    http._timeout = aiohttp.ClientTimeout(total=15)


@pytest.fixture
def upstream(
    request: pytest.FixtureRequest, running_recorder: Asking, running_legacy: Asking
) -> Asking:
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    chosen = running_legacy if params.get("either") == "legacy server" else running_recorder
    chosen.reset()
    return chosen


@pytest.fixture(params=["modern server", "legacy server"])
def either(request: pytest.FixtureRequest, upstream: Asking, toolset: Toolset) -> Asking:
    """The same questions from a server of today and from one that asks by requests of its own."""
    # After the first look: what it speaks is found out anew.
    upstream.legacy = request.param == "legacy server"
    forget_agreements()
    return upstream


def answers_to(requests: dict[str, Any]) -> dict[str, Any]:
    return {key: ANSWERS[one["method"]] for key, one in requests.items()}


async def converse(agent: Agent, tool: str) -> Talk:
    """The call to its end, with an answer to each question, in the way of the agent's revision."""
    async with asyncio.timeout(12):
        if agent.revision == MODERN:
            return await _in_rounds(agent, tool)
        return await _on_stream(agent, tool)


async def _in_rounds(agent: Agent, tool: str) -> Talk:
    asked: list[Any] = []
    reply = await agent.call(tool)
    while reply.result["resultType"] == "input_required":
        requests = reply.result.get("inputRequests", {})
        asked += requests.values()
        more = {"inputResponses": answers_to(requests)} if requests else {}
        reply = await agent.call(tool, requestState=reply.result["requestState"], **more)
    return Talk(reply.last, asked)


async def _on_stream(agent: Agent, tool: str) -> Talk:
    asked: list[Any] = []
    message = await agent.message("tools/call", {"name": tool, "arguments": {}})
    async with agent.open(message) as response:
        if response.content_type == "application/json":
            return Talk(await response.json(), asked)
        async for line in response.content:
            for data in data_of(line.decode()):
                said = json.loads(data)
                if "method" not in said:
                    return Talk(said, asked)
                asked.append({"method": said["method"], "params": said["params"]})
                await post_answer(agent, said["id"], result=ANSWERS[said["method"]])
    raise AssertionError("the stream ended before its answer")


async def post_answer(agent: Agent, request_id: Any, **said: Any) -> Reply:
    answer = {"jsonrpc": "2.0", "id": request_id, **said}
    return await agent.post(answer, headers=agent.headers(answer))


@pytest.mark.parametrize("revision", [MODERN, *LEGACY[:2]])
async def test_a_form_is_answered_whatever_both_sides_speak(
    revision: str, play: Play, either: Asking
) -> None:
    talk = await converse(play(revision, capabilities=FORMS), "rec.ask")

    assert talk.asked == [FORM]
    assert talk.answers == [{"who": ANN}]
    assert either.declared[-1] == {"elicitation": {"form": {}}}
    call = await the_call()
    assert call.state == State.SUCCEEDED
    entries = Entry.objects.filter(call_id=call.pk, action__startswith="call.input")
    asked, given = [entry async for entry in entries.order_by("id")]
    assert (asked.action, asked.reason) == ("call.input_asked", "What is your name?")
    assert (given.action, given.actor, given.details["said"]) == (
        "call.input_given",
        "scout",
        "accept",
    )


async def test_each_round_has_a_state_of_its_own_and_the_server_gets_its_own_back(
    play: Play, upstream: Asking
) -> None:
    talk = await converse(play(capabilities=FORMS), "rec.twice")

    assert talk.asked == [FORM, FORM]
    states = [r.message["params"].get("requestState") for r in upstream.calls]
    assert states == [None, "[] ", json.dumps([{"who": ANN}]) + " "]
    assert len({r.message["id"] for r in upstream.calls}) == 3


@sync_to_async
def relay(*families: str) -> None:
    """What an operator lets the server ask of agents."""
    services.set_relays(Server.objects.get(slug="rec"), families, by=None)


@pytest.fixture
async def everything(rule: AddRule, either: Asking) -> Asking:
    await relay("elicitation", "sampling", "roots")
    await rule(Effect.ALLOW, "rec.many")
    return either


@pytest.mark.parametrize("legacy", [False, True], ids=["modern server", "legacy server"])
def test_discovery_sees_what_is_listed_only_to_who_can_be_asked(
    legacy: bool, toolset: Toolset, upstream: Asking, bob: User
) -> None:
    upstream.legacy = legacy
    upstream.tools = {
        name: {"inputSchema": {"type": "object"}} for name in ("open", "shy", "thinks")
    }
    upstream.shy = {"shy": "roots", "thinks": "sampling"}

    add_server("two", toolset, upstream, by=bob)
    usual = set(Tool.objects.filter(server__slug="two").values_list("name", flat=True))
    two = Server.objects.get(slug="two")
    services.set_relays(two, ["elicitation", "roots", "sampling"], by=bob)
    asyncio.run(discovery.look_at([two.pk]))
    then = set(Tool.objects.filter(server__slug="two").values_list("name", flat=True))

    # The model's answers are relayed only where an operator says so.
    assert usual == {"open", "shy"}
    assert then == {"open", "shy", "thinks"}


@pytest.mark.parametrize("revision", [MODERN, *LEGACY[:2]])
async def test_models_and_folders_answer_too(revision: str, play: Play, everything: Asking) -> None:
    talk = await converse(play(revision, capabilities=ALL), "rec.many")

    assert sorted(one["method"] for one in talk.asked) == sorted(ANSWERS)
    found = {key: value for answers in talk.answers for key, value in answers.items()}
    assert found == {"who": ANN, "capital": PARIS, "folders": HOME}
    assert everything.declared[-1] == ALL


async def test_the_model_is_not_asked_unless_an_operator_says_so(
    play: Play, either: Asking
) -> None:
    talk = await converse(play(capabilities=ALL), "rec.sample")

    assert talk.asked == []
    assert "sampling" not in either.declared[-1]
    assert ("error" in talk.answers[0]["capital"]) if either.legacy else talk.failed


@pytest.mark.parametrize("revision", [MODERN, LEGACY[0]])
async def test_who_declares_nothing_is_asked_nothing(
    revision: str, play: Play, either: Asking
) -> None:
    talk = await converse(play(revision), "rec.ask")

    assert talk.asked == []
    assert either.declared[-1] == {}
    assert not await Input.objects.aexists()


async def test_a_link_is_shown_and_never_opened_here(play: Play, either: Asking) -> None:
    agent = play(capabilities={"elicitation": {"url": {}}})

    reply = await agent.call("rec.link")

    assert list(reply.result["inputRequests"].values()) == [LINK]
    entry = await Entry.objects.aget(action="call.input_asked")
    # Whoever reads the record sees where it leads, and not what opens it.
    assert entry.reason == "Sign in. (example.com)"


async def test_a_link_without_tls_is_not_passed_on(play: Play, either: Asking) -> None:
    talk = await converse(play(capabilities={"elicitation": {"url": {}}}), "rec.plain")

    assert talk.asked == []
    assert not await Input.objects.aexists()


async def test_a_server_that_wants_to_be_asked_again_later_is(play: Play, upstream: Asking) -> None:
    talk = await converse(play(), "rec.later")

    assert talk.answers == [{}, {}]
    assert len(upstream.calls) == 3


async def asked_once(play: Play) -> tuple[Agent, Reply]:
    agent = play(capabilities=FORMS)
    reply = await agent.call("rec.ask")
    assert reply.result["resultType"] == "input_required"
    return agent, reply


def again(reply: Reply, **more: Any) -> dict[str, Any]:
    return {"requestState": reply.result["requestState"], "inputResponses": {"who": ANN}, **more}


async def test_a_state_is_good_for_one_answer(play: Play, upstream: Asking) -> None:
    agent, reply = await asked_once(play)
    await agent.call("rec.ask", **again(reply))

    other = {"who": {"action": "accept", "content": {"name": "Mallory"}}}
    refused = await agent.call("rec.ask", **again(reply, inputResponses=other))

    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert "used before" in refused.error["message"]
    assert len(upstream.calls) == 2
    assert (await Input.objects.aget()).response == json.dumps(ANN, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"requestState": "v1"}, "altered"),
        ({"arguments": {"x": 1}}, "other arguments"),
        ({"name": "rec.twice"}, "another tool"),
    ],
)
async def test_a_state_is_for_what_was_asked(
    change: dict[str, Any], why: str, play: Play, upstream: Asking
) -> None:
    agent, reply = await asked_once(play)

    params = {"name": "rec.ask", "arguments": {}, **again(reply), **change}
    refused = await agent.ask("tools/call", params)

    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert why in refused.error["message"]
    assert len(upstream.calls) == 1


async def test_another_agent_cannot_answer(
    play: Play, upstream: Asking, toolset: Toolset, bob: User
) -> None:
    _agent, reply = await asked_once(play)

    @sync_to_async
    def another() -> str:
        other = accounts.create_agent("other", owner=bob, by=bob)
        services.assign(toolset, other, by=bob)
        return accounts.issue_token(other, by=bob)

    thief = play(token=await another(), capabilities=FORMS)
    refused = await thief.call("rec.ask", **again(reply))

    assert refused.error["code"] == -32602
    assert (await Input.objects.aget()).response == ""


@pytest.mark.parametrize("responses", [None, [], {"who": 7}, {"who": {"action": "maybe"}}])
async def test_what_is_no_answer_is_refused_and_the_question_stays(
    responses: Any, play: Play, upstream: Asking
) -> None:
    agent, reply = await asked_once(play)

    refused = await agent.call("rec.ask", **again(reply, inputResponses=responses))

    assert refused.error["code"] == -32602
    ended = await agent.call("rec.ask", **again(reply))
    assert json.loads(ended.text) == [{"who": ANN}]


async def test_wrong_keys_are_asked_again(play: Play, upstream: Asking) -> None:
    agent, reply = await asked_once(play)

    same = await agent.call("rec.ask", **again(reply, inputResponses={"whom": ANN}))

    assert same.result["inputRequests"] == {"who": FORM}
    assert same.result["requestState"] != reply.result["requestState"]


async def test_answers_before_any_question_go_to_the_server(play: Play, upstream: Asking) -> None:
    agent = play(capabilities=FORMS)

    reply = await agent.call("rec.ask", inputResponses={"who": ANN, "more": ANN})

    assert json.loads(reply.text) == [{"who": ANN, "more": ANN}]


async def test_leaving_a_round_cancels_the_call_that_waits(
    play: Play, stack: Stack, upstream: Asking
) -> None:
    agent, reply = await asked_once(play)

    await agent.call("countersign.cancel_call", {"call_id": reply.call_id})

    async def ended() -> bool:
        return (await the_call()).state == State.CANCELLED

    await until(ended)
    assert len(upstream.calls) == 1
    late = await agent.call("rec.ask", **again(reply))
    assert late.result["_meta"]["countersign/state"] == "cancelled"


@pytest.fixture
def mortal(stack: Stack, own_stack: Stack) -> Stack:
    """Processes to be killed; whose leases end soon after them."""
    stack.end_worker()
    own_stack.env["COUNTERSIGN_LEASE_S"] = "2"
    assert own_stack.agents
    assert own_stack.worker
    return own_stack


@pytest.mark.long
async def test_a_call_that_waits_for_its_agent_outlives_whoever_ran_it(
    play: Play, mortal: Stack, upstream: Asking
) -> None:
    first = await play(at_stack=mortal, capabilities=FORMS).call("rec.twice", {"x": 1})
    mortal.agents.kill()
    agent = play(capabilities=FORMS)

    second = await agent.call("rec.twice", {"x": 1}, **again(first))
    assert second.result["inputRequests"] == {"who": FORM}
    mortal.worker.restart()
    last = await agent.call("rec.twice", {"x": 1}, **again(second))

    assert json.loads(last.text) == [{"who": ANN}, {"who": ANN}]
    sent = [r.message["params"] for r in upstream.calls]
    assert [one["arguments"] for one in sent] == [{"x": 1}] * 3
    states = [one.get("requestState") for one in sent]
    assert states == [None, "[] ", json.dumps([{"who": ANN}]) + " "]
    call = await the_call()
    assert (call.state, call.executed) == (State.SUCCEEDED, "yes")
    taken = Entry.objects.filter(call_id=call.pk, action="call.taken_over")
    assert await taken.acount() == 2


@pytest.mark.long
async def test_whoever_goes_on_with_an_edited_call_sends_what_was_approved(
    play: Play, mortal: Stack, upstream: Asking, rule: AddRule, alice: User
) -> None:
    await rule(Effect.ASK, "twice")
    agent = play(at_stack=mortal, capabilities=FORMS)
    held = await agent.call("rec.twice", {"x": 1})
    await edit_and_approve(b'{"x":2}', by=alice)
    asked = await agent.call(
        "rec.twice", {"x": 1}, requestState=held.result["requestState"], inputResponses={}
    )

    mortal.worker.restart()
    more = await agent.call("rec.twice", {"x": 1}, **again(asked))
    await agent.call("rec.twice", {"x": 1}, **again(more))

    assert [r.message["params"]["arguments"] for r in upstream.calls] == [{"x": 2}] * 3


@sync_to_async
def edit_and_approve(arguments: bytes, *, by: User) -> None:
    """By one person, and approved by another."""
    approval = Approval.objects.for_queue().get()
    seen = Edit(seen_digest=approval.call.call_digest, arguments=arguments)
    editing.edit(approval, seen, by=scenery.person("carol", Role.APPROVER))
    approval = Approval.objects.for_queue().get()
    approvals.vote(approval, by=by, approve=True, seen_digest=approval.call.call_digest)


@pytest.mark.long
async def test_a_server_that_holds_its_request_has_lost_it(
    play: Play, mortal: Stack, upstream: Asking, toolset: Toolset
) -> None:
    upstream.legacy = True
    asked = await play(at_stack=mortal, capabilities=FORMS).call("rec.ask")
    assert asked.result["resultType"] == "input_required"
    mortal.agents.kill()

    async def unknown() -> bool:
        return (await the_call()).state == State.UNKNOWN

    await until(unknown)


async def test_a_client_that_cannot_answer_says_so_to_the_server(
    play: Play, either: Asking
) -> None:
    agent = play(LEGACY[0], capabilities=FORMS)
    message = await agent.message("tools/call", {"name": "rec.ask", "arguments": {}})

    async with agent.open(message) as response:
        question = await next_message(response)
        error = {"code": -1, "message": "There is no window."}
        await post_answer(agent, question["id"], error=error)
        last = await next_message(response)

    answers = json.loads(last["result"]["content"][0]["text"])
    # Today's servers can be told no error: nobody decided.
    assert answers == [{"who": {"error": -1} if either.legacy else {"action": "cancel"}}]


async def next_message(response: Any) -> Any:
    async for line in response.content:
        for data in data_of(line.decode()):
            return json.loads(data)
    raise AssertionError("the stream ended")


async def test_an_answer_under_a_made_up_id_is_nobodys(play: Play, upstream: Asking) -> None:
    agent = play(LEGACY[0], capabilities=FORMS)
    message = await agent.message("tools/call", {"name": "rec.ask", "arguments": {}})

    async with agent.open(message) as response:
        question = await next_message(response)
        altered = question["id"][:-2] + ("AA" if question["id"][-2:] != "AA" else "BB")
        ignored = await post_answer(agent, altered, result=ANN)
        assert (await Input.objects.aget()).response == ""
        await post_answer(agent, question["id"], result=ANN)
        last = await next_message(response)

    assert ignored.status == 202
    assert json.loads(last["result"]["content"][0]["text"]) == [{"who": ANN}]
