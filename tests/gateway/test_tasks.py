"""The tasks extension: a call that takes long is a task that its client comes back for."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from calls.content.answers import CallStatus
from calls.record.states import State
from gateway.methods.tasks import poll_ms
from gateway.submit.lookups import AgentCall
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from tests.gateway.agent import MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, decide, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def agent(toolset: Toolset, stack: Stack, play: Play, rule: AddRule) -> Agent:
    assert stack.worker
    for tool in ("echo", "fail", "hang"):
        await rule(Effect.ASK, tool)
    return play(capabilities=TASKS)


async def begun(agent: Agent, tool: str = "rec.echo", **arguments: Any) -> dict[str, Any]:
    reply = await agent.call(tool, arguments or {"text": "x"})
    assert reply.status == 200, reply.body
    result: dict[str, Any] = reply.result
    return result


async def get(agent: Agent, task: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = (await agent.ask("tasks/get", {"taskId": task["taskId"]})).result
    return result


async def ended(agent: Agent, task: dict[str, Any]) -> dict[str, Any]:
    async def once() -> dict[str, Any] | None:
        seen = await get(agent, task)
        return seen if seen["status"] != "working" else None

    found: dict[str, Any] = await until(once)
    return found


@pytest.mark.long
async def test_a_held_call_is_a_task_that_works(agent: Agent, stack: Stack) -> None:
    task = await begun(agent)

    call = await the_call()
    assert task["resultType"] == "task"
    assert task["status"] == "working"
    assert f"{stack.web_url}/calls/{call.pk}/" in task["statusMessage"]
    assert task["createdAt"].endswith("Z")
    assert isinstance(task["ttlMs"], int)
    assert task["_meta"]["countersign/call"] == str(call.pk)

    seen = await get(agent, task)
    # Never "input_required": the agent cannot answer in the approver's place.
    assert (seen["status"], seen["resultType"]) == ("working", "complete")
    assert {"result", "error", "inputRequests"}.isdisjoint(seen)


@pytest.mark.parametrize(
    ("state", "since_s", "ms"),
    [
        (State.HELD, 0, 2000),
        (State.RUNNING, 0, 100),
        (State.RUNNING, 3, 300),
        (State.QUEUED, 90, 1000),
        # Clocks differ.
        (State.RUNNING, -5, 100),
    ],
)
def test_who_asks_as_often_as_told_hears_of_the_end_soon(
    state: State, since_s: float, ms: int
) -> None:
    at = datetime.now(UTC) - timedelta(seconds=since_s)
    found = AgentCall(uuid4(), at, at, "", CallStatus(state, None, None, "", None))

    assert ms <= poll_ms(found) < ms + 50


@pytest.mark.long
async def test_a_short_call_is_no_task(agent: Agent) -> None:
    reply = await agent.call("rec.say")

    assert reply.result["resultType"] == "complete"


@pytest.mark.long
async def test_a_long_call_is_a_task_without_anybody_deciding(
    agent: Agent, play: Play, upstream: Recorder
) -> None:
    await sync_to_async(Tool.objects.filter(name="say").update)(mode=Tool.Mode.BACKGROUND)
    # A new agent of this moment sees the change at once.
    agent = play(capabilities=TASKS)
    upstream.results["say"] = b'{"content":[],"structuredContent":{"a":1.50}}'

    async def is_task() -> dict[str, Any] | None:
        result = await begun(agent, "rec.say")
        return result if result["resultType"] == "task" else None

    task = await until(is_task)

    assert (await ended(agent, task))["result"]["structuredContent"] == {"a": 1.5}


@pytest.mark.long
async def test_the_result_is_there_once_it_was_approved(agent: Agent, alice: User) -> None:
    task = await begun(agent)

    await decide(alice)

    done = await ended(agent, task)
    assert done["status"] == "completed"
    assert done["result"]["content"] == [{"type": "text", "text": "x"}]
    assert done["taskId"] == task["taskId"]
    assert done["createdAt"] == task["createdAt"] <= done["lastUpdatedAt"]


@pytest.mark.long
async def test_a_no_is_a_completed_task_with_the_reason(agent: Agent, alice: User) -> None:
    task = await begun(agent)

    await decide(alice, approve=False, reason="Too loud.")

    done = await ended(agent, task)
    assert done["status"] == "completed"
    assert done["result"]["isError"] is True
    assert "Too loud." in done["result"]["content"][0]["text"]


@pytest.mark.long
async def test_only_a_protocol_error_is_a_failed_task(agent: Agent, alice: User) -> None:
    task = await begun(agent, "rec.fail")

    await decide(alice)

    done = await ended(agent, task)
    assert done["status"] == "failed"
    assert done["error"]["code"] == 1234
    assert "result" not in done


async def test_cancelling_withdraws_what_nobody_decided(agent: Agent, upstream: Recorder) -> None:
    task = await begun(agent)

    reply = await agent.ask("tasks/cancel", {"taskId": task["taskId"]})
    again = await agent.ask("tasks/cancel", {"taskId": task["taskId"]})

    assert reply.result == again.result == {"resultType": "complete"}
    assert (await get(agent, task))["status"] == "cancelled"
    assert (await the_call()).state == State.WITHDRAWN
    assert upstream.calls == []


@pytest.mark.long
async def test_cancelling_stops_what_is_running(
    agent: Agent, alice: User, upstream: Recorder
) -> None:
    task = await begun(agent, "rec.hang")
    await decide(alice)

    async def running() -> bool:
        return bool(upstream.calls)

    await until(running)
    await agent.ask("tasks/cancel", {"taskId": task["taskId"]})

    async def gone() -> int:
        return upstream.gone

    await until(gone)
    assert (await ended(agent, task))["status"] in ("cancelled", "completed")


@pytest.mark.long
async def test_answers_to_what_was_never_asked_are_acknowledged(agent: Agent) -> None:
    task = await begun(agent)
    params = {"taskId": task["taskId"], "inputResponses": {"approval": {"action": "accept"}}}

    reply = await agent.ask("tasks/update", params)

    assert reply.result == {"resultType": "complete"}
    assert (await the_call()).state == State.HELD


@pytest.mark.long
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_who_does_not_declare_tasks_has_none(agent: Agent, play: Play, method: str) -> None:
    task = await begun(agent)

    reply = await play().ask(method, {"taskId": task["taskId"]})

    assert (reply.status, reply.error["code"]) == (400, -32021)
    required: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert reply.error["data"] == {"requiredCapabilities": required}


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


@pytest.mark.long
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_another_agents_task_is_like_one_that_does_not_exist(
    agent: Agent, play: Play, toolset: Toolset, bob: User, method: str
) -> None:
    task = await begun(agent)
    thief = play(token=await another_agent(toolset, bob), capabilities=TASKS)

    altered = ("B" if task["taskId"][0] != "B" else "C") + task["taskId"][1:]
    for who, task_id in ((thief, task["taskId"]), (agent, altered), (agent, "x"), (agent, "ü")):
        message = await who.message(method, {"taskId": task_id}, request_id=1)
        headers = who.headers(message)
        if task_id == "ü":
            headers["Mcp-Name"] = "=?base64?w7w=?="
        reply = await who.post(message, headers=headers)

        assert reply.status == 400
        assert reply.error == {"code": -32602, "message": "There is no such task."}
    assert (await the_call()).state == State.HELD


@pytest.mark.long
@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
async def test_methods_of_the_earlier_tasks_are_gone(agent: Agent, method: str) -> None:
    reply = await agent.ask(method)

    assert (reply.status, reply.error["code"]) == (404, -32601)


@pytest.mark.long
async def test_a_task_has_no_progress_of_its_own(agent: Agent) -> None:
    reply = await agent.call("rec.echo", {"text": "x"}, token="t")

    assert reply.result["resultType"] == "task"
    assert len(reply.messages) == 1
    assert agent.revision == MODERN
