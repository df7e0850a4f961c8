"""An agent that listens hears how its own tasks go on, wherever they run."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from accounts.models import User
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.gateway.agent import TASKS, Agent
from tests.gateway.conftest import AddRule, Play, decide, the_call
from tests.gateway.test_listening import SUBSCRIPTION, following, listening
from tests.gateway.test_tasks import another_agent
from tests.processes import Stack
from tests.upstreams.recorder import Recorder, running
from tests.upstreams.tasking import Tasking

pytestmark = pytest.mark.django_db(transaction=True)

FORMS: dict[str, Any] = {**TASKS, "elicitation": {}}

running_recorder = running(Tasking)


@pytest.fixture
async def agent(toolset: Toolset, stack: Stack, play: Play, rule: AddRule) -> Agent:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    return play(capabilities=FORMS)


async def begun(agent: Agent, tool: str = "rec.echo", **arguments: Any) -> str:
    task: str = (await agent.call(tool, arguments or {"text": "x"})).result["taskId"]
    return task


async def told(heard: Any, status: str) -> dict[str, Any]:
    """What is said until the task stands like this."""
    while True:
        message = await following(heard)
        assert message["method"] == "notifications/tasks"
        params: dict[str, Any] = message["params"]
        if params["status"] == status:
            return params


@pytest.mark.long
async def test_another_process_tells_what_people_decide(
    agent: Agent, play: Play, own_stack: Stack, alice: User
) -> None:
    assert own_stack.agents
    elsewhere = play(at_stack=own_stack, capabilities=TASKS)
    task = await begun(agent)
    async with AsyncExitStack() as on:
        heard = await listening(elsewhere, on, {"taskIds": [task]}, request_id="seven")
        acknowledged = await following(heard)
        first = await following(heard)
        await decide(alice)
        done = await told(heard, "completed")

    tag = {SUBSCRIPTION: "seven"}
    assert acknowledged["params"] == {"notifications": {"taskIds": [task]}, "_meta": tag}
    assert first["params"]["status"] == "working"
    assert "pending approval" in first["params"]["statusMessage"]
    assert done.pop("_meta") == first["params"]["_meta"] == tag
    seen = (await agent.ask("tasks/get", {"taskId": task})).result
    assert done == {name: seen[name] for name in seen.keys() - {"resultType", "_meta"}}
    assert done["result"]["content"] == [{"type": "text", "text": "x"}]


async def test_one_that_has_ended_is_told_at_once(agent: Agent) -> None:
    task = await begun(agent)
    await agent.ask("tasks/cancel", {"taskId": task})
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"taskIds": [task]})
        await following(heard)

        assert (await following(heard))["params"]["status"] == "cancelled"


@pytest.mark.long
async def test_a_servers_questions_are_told_and_its_answers_show(
    agent: Agent, upstream: Recorder
) -> None:
    assert isinstance(upstream, Tasking)
    await Tool.objects.filter(name="hang").aupdate(mode=Tool.Mode.BACKGROUND)
    upstream.says = "input_required"
    task = await begun(agent, "rec.hang")
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"taskIds": [task]})
        await following(heard)
        asked = await told(heard, "input_required")
        answer = {"action": "accept", "content": {"bags": 2}}
        params = {"taskId": task, "inputResponses": {"bags": answer}}
        await agent.ask("tasks/update", params)
        await told(heard, "working")
        upstream.release()
        done = await told(heard, "completed")

    assert asked["inputRequests"]["bags"]["params"]["message"] == "How many bags?"
    assert done["result"]["content"][0]["text"] == "done"


@pytest.mark.long
async def test_a_server_that_fails_is_told_as_it_failed(
    agent: Agent, rule: AddRule, alice: User
) -> None:
    await rule(Effect.ASK, "fail")
    task = await begun(agent, "rec.fail")
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"taskIds": [task]})
        await following(heard)
        await decide(alice)

        assert (await told(heard, "failed"))["error"]["code"] == 1234


@pytest.mark.long
async def test_nobody_hears_of_others_tasks(
    agent: Agent, play: Play, toolset: Toolset, bob: User
) -> None:
    token = await another_agent(toolset, bob)
    thief = play(token=token, capabilities=TASKS)
    task, own = await begun(agent), await begun(thief, text="own")
    async with AsyncExitStack() as on:
        wanted = {"taskIds": [task, "nonsense", 7, own, own]}
        heard = await listening(thief, on, wanted)
        acknowledged = await following(heard)
        await agent.ask("tasks/cancel", {"taskId": task})
        await thief.ask("tasks/cancel", {"taskId": own})
        last = await told(heard, "cancelled")

    assert acknowledged["params"]["notifications"] == {"taskIds": [own]}
    assert last["taskId"] == own


async def test_who_does_not_declare_tasks_hears_of_none(agent: Agent, play: Play) -> None:
    task = await begun(agent)

    params = {"notifications": {"taskIds": [task], "toolsListChanged": True}}
    reply = await play().ask("subscriptions/listen", params)

    assert (reply.status, reply.error["code"]) == (400, -32021)
    required: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert reply.error["data"] == {"requiredCapabilities": required}


@pytest.mark.long
async def test_a_task_that_is_run_here_is_told_too(agent: Agent, upstream: Recorder) -> None:
    """Its server made a task of a short call: no worker has it."""
    task = await begun(agent, "rec.hang")
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"taskIds": [task]})
        await following(heard)
        await told(heard, "working")
        upstream.release()
        done = await told(heard, "completed")

    assert done["result"]["content"][0]["text"] == "done"
    assert (await the_call()).mode == "inline"
    assert isinstance(upstream, Tasking)
    assert "tasks/get" in upstream.about_tasks
