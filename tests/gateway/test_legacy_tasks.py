"""Tasks of 2025-11-25: asked for with a call, and the same calls as every other."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent as AgentRow
from accounts.models import User
from calls.models import Call, ListedTask
from calls.record.states import State
from calls.tasks import expire_results
from policies.models import Effect
from registry.models import Toolset
from tests.calls import rows
from tests.conformance.suite import ROOT, node
from tests.gateway.agent import MODERN, TASKS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, decide, decide_soon, server, the_call, until
from tests.gateway.test_inputs import ANN
from tests.gateway.test_listening import events, following
from tests.gateway.test_tasks import another_agent
from tests.processes import Stack
from tests.upstreams.asking import FORM, Asking
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITY: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
SCRIPT = ROOT / "tests" / "flows" / "clients" / "legacy_tasks.mjs"
NO_TASK = {"code": -32602, "message": "There is no such task."}

running_recorder = running(Asking)


@pytest.fixture
async def agent(toolset: Toolset, stack: Stack, play: Play, rule: AddRule) -> Agent:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    return play(REVISION)


async def begun(agent: Agent, tool: str = "rec.echo", **arguments: Any) -> dict[str, Any]:
    given = arguments or ({"text": "x"} if tool == "rec.echo" else {})
    reply = await agent.call(tool, given, task={"ttl": 60_000})
    assert reply.status == 200, reply.body
    task: dict[str, Any] = reply.result["task"]
    return task


async def about(agent: Agent, method: str, task: dict[str, Any]) -> Reply:
    return await agent.ask(f"tasks/{method}", {"taskId": task["taskId"]})


async def ended(agent: Agent, task: dict[str, Any]) -> dict[str, Any]:
    async def once() -> dict[str, Any] | None:
        seen: dict[str, Any] = (await about(agent, "get", task)).result
        return seen if seen["status"] != "working" else None

    found: dict[str, Any] = await until(once)
    return found


async def test_only_this_revision_offers_them(play: Play, toolset: Toolset) -> None:
    for revision in (REVISION, "2025-06-18", "2025-03-26"):
        agent = play(revision)
        offered = (await agent.begin()).result["capabilities"].get("tasks")
        assert offered == (CAPABILITY if revision == REVISION else None)
        tools = {one["name"]: one for one in (await agent.ask("tools/list")).result["tools"]}
        said = {"taskSupport": "optional"} if revision == REVISION else None
        assert tools["rec_echo"].get("execution") == said
        assert "execution" not in tools["countersign_await_call"]
    modern = (await play(MODERN).ask("tools/list")).result["tools"]
    assert not any("execution" in one for one in modern)


async def test_a_held_call_is_a_task_that_works(agent: Agent, stack: Stack) -> None:
    reply = await agent.call("rec.echo", {"text": "x"}, task={})

    call = await the_call()
    task, meta = reply.result["task"], reply.result["_meta"]
    assert reply.result.keys() == {"task", "_meta"}
    assert task["status"] == "working"
    assert f"{stack.web_url}/calls/{call.pk}/" in task["statusMessage"]
    assert task["createdAt"] == task["lastUpdatedAt"]
    assert task["createdAt"].endswith("Z")
    assert (task["ttl"], task["pollInterval"]) == (61 * 24 * 3600 * 1000, 2000)
    assert meta["countersign/call"] == str(call.pk)
    assert meta[RELATED] == {"taskId": task["taskId"]}
    seen = (await about(agent, "get", task)).result
    assert seen == task
    assert (call.state, call.revision) == (State.HELD, REVISION)


@pytest.mark.long
async def test_the_result_waits_for_the_person(agent: Agent, alice: User) -> None:
    task = await begun(agent)
    deciding = asyncio.create_task(decide_soon(alice, after=0.5))

    reply = await about(agent, "result", task)

    await deciding
    assert reply.text == "x"
    assert reply.result["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert reply.call_id == str((await the_call()).pk)
    done = (await about(agent, "get", task)).result
    assert done["status"] == "completed"
    assert done["createdAt"] == task["createdAt"] <= done["lastUpdatedAt"]
    # As often as it likes.
    assert (await about(agent, "result", task)).result == reply.result


async def test_a_no_is_a_failed_task_with_the_reason(agent: Agent, alice: User) -> None:
    task = await begun(agent)

    await decide(alice, approve=False, reason="Too loud.")

    done = await ended(agent, task)
    assert done["status"] == "failed"
    assert "Too loud." in done["statusMessage"]
    result = (await about(agent, "result", task)).result
    assert result["isError"] is True
    assert "Too loud." in result["content"][0]["text"]


async def test_an_error_of_the_tool_is_a_failed_task(agent: Agent, upstream: Asking) -> None:
    # Its server had a task of its own for it.
    meta = {"a": 1, RELATED: {"taskId": "theirs"}}
    said = {"content": [{"type": "text", "text": "no"}], "isError": True, "_meta": meta}
    upstream.results["say"] = json.dumps(said).encode()

    task = await begun(agent, "rec.say")

    done = await ended(agent, task)
    assert (done["status"], "error" in done["statusMessage"]) == ("failed", True)
    result = (await about(agent, "result", task)).result
    call = str((await the_call()).pk)
    ours = {"a": 1, RELATED: {"taskId": task["taskId"]}, "countersign/call": call}
    assert result == {**said, "_meta": ours}


async def test_a_protocol_error_is_the_result_of_a_failed_task(agent: Agent) -> None:
    task = await begun(agent, "rec.fail")

    assert (await ended(agent, task))["status"] == "failed"
    assert (await about(agent, "result", task)).error["code"] == 1234


async def test_what_rules_deny_or_does_not_fit_is_a_failed_task(
    agent: Agent, rule: AddRule, upstream: Asking
) -> None:
    await rule(Effect.DENY, "erase", reason="Never.")
    for tool, arguments, why in (
        ("rec.erase", {}, "Never."),
        ("rec.echo", {"text": 7}, "do not fit"),
    ):
        task = (await agent.call(tool, arguments, task={})).result["task"]
        assert task["status"] == "working"
        assert why in task["statusMessage"]
        assert (await ended(agent, task))["status"] == "failed"
        result = (await about(agent, "result", task)).result
        assert result["isError"] is True
        assert why in result["content"][0]["text"]
    assert upstream.calls == []


async def test_cancelling_withdraws_what_nobody_decided(agent: Agent, upstream: Asking) -> None:
    task = await begun(agent)

    reply = await about(agent, "cancel", task)
    again = await about(agent, "cancel", task)

    assert reply.result["status"] == "cancelled"
    assert reply.result["taskId"] == task["taskId"]
    assert again.error == {"code": -32602, "message": "The task has ended: it is cancelled."}
    assert (await the_call()).state == State.WITHDRAWN
    assert (await about(agent, "result", task)).result["isError"] is True
    assert upstream.calls == []


async def test_what_was_cancelled_stays_so(agent: Agent, upstream: Asking) -> None:
    task = await begun(agent, "rec.hang")

    async def running() -> bool:
        return bool(upstream.calls)

    await until(running)
    reply = await about(agent, "cancel", task)

    assert reply.result["status"] == "cancelled"

    async def over() -> bool:
        return (await the_call()).finished_at is not None

    await until(over)
    # Whether its server stopped in time, nobody knows; the call says so, and the task stays.
    assert (await the_call()).state == State.UNKNOWN
    assert (await about(agent, "get", task)).result["status"] == "cancelled"
    assert (await about(agent, "result", task)).result["isError"] is True
    (one,) = (await agent.ask("tasks/list")).result["tasks"]
    assert one["status"] == "cancelled"


async def test_a_task_that_has_ended_is_not_cancelled(agent: Agent) -> None:
    task = await begun(agent, "rec.say")
    await ended(agent, task)

    reply = await about(agent, "cancel", task)

    assert reply.error == {"code": -32602, "message": "The task has ended: it is completed."}
    assert (await about(agent, "get", task)).result["status"] == "completed"


@pytest.mark.long
async def test_they_are_listed_in_pages_newest_first(
    agent: Agent, scout: AgentRow, bob: User
) -> None:
    @sync_to_async
    def many() -> None:
        ids = rows.queue(scout, bob, "say", count=100)
        listed = [ListedTask(call_id=one, agent_id=scout.pk) for one in ids]
        ListedTask.objects.bulk_create(listed)

    await many()
    last = await begun(agent)

    first = (await agent.ask("tasks/list")).result
    second = (await agent.ask("tasks/list", {"cursor": first["nextCursor"]})).result

    assert (len(first["tasks"]), len(second["tasks"]), "nextCursor" in second) == (100, 1, False)
    assert first["tasks"][0]["taskId"] == last["taskId"]
    times = [one["createdAt"] for one in first["tasks"] + second["tasks"]]
    assert times == sorted(times, reverse=True)
    assert len({one["taskId"] for one in first["tasks"] + second["tasks"]}) == 101
    for cursor in ("nonsense", "", 7, "AAAA"):
        reply = await agent.ask("tasks/list", {"cursor": cursor})
        assert reply.error["code"] == -32602


@pytest.mark.parametrize("method", ["get", "result", "cancel"])
async def test_another_agents_task_is_like_one_that_does_not_exist(
    agent: Agent, play: Play, toolset: Toolset, bob: User, method: str
) -> None:
    task = await begun(agent)
    thief = play(REVISION, token=await another_agent(toolset, bob))

    for who, task_id in ((thief, task["taskId"]), (agent, "x"), (agent, 7), (agent, None)):
        reply = await who.ask(f"tasks/{method}", {"taskId": task_id})
        assert (reply.status, reply.error) == (200, NO_TASK)
    assert (await thief.ask("tasks/list")).result == {"tasks": []}
    assert (await the_call()).state == State.HELD


async def test_what_was_no_task_of_this_revision_is_none(agent: Agent, play: Play) -> None:
    made = (await play(capabilities=TASKS).call("rec.echo", {"text": "x"})).result

    assert (await about(agent, "get", made)).error == NO_TASK
    assert (await agent.ask("tasks/list")).result == {"tasks": []}

    # The same again joins what waits, and is a task from then on.
    task = await begun(agent)
    assert task["taskId"] == made["taskId"]
    assert (await about(agent, "get", task)).result["status"] == "working"
    assert len((await agent.ask("tasks/list")).result["tasks"]) == 1
    assert await Call.objects.acount() == 1


@pytest.mark.parametrize("wish", [7, None, [], {"ttl": "long"}, {"ttl": -1}, {"ttl": True}])
async def test_what_is_no_wish_for_a_task_is_refused(agent: Agent, wish: Any) -> None:
    reply = await agent.call("rec.say", task=wish)

    assert reply.error["code"] == -32602
    assert "params.task" in reply.error["message"]
    assert await Call.objects.acount() == 0


async def test_a_tool_of_ours_is_never_a_task(agent: Agent) -> None:
    reply = await agent.call("countersign.my_waiting_calls", task={})

    assert reply.error["code"] == -32601


@pytest.mark.parametrize("revision", [MODERN, "2025-06-18", "2025-03-26"])
async def test_other_revisions_know_no_such_wish(play: Play, revision: str) -> None:
    agent = play(revision)

    reply = await agent.call("rec.say", task={"ttl": 1})

    assert reply.result["content"]
    assert await ListedTask.objects.acount() == 0
    if revision != MODERN:
        for method in ("get", "result", "list", "cancel"):
            assert (await agent.ask(f"tasks/{method}")).error["code"] == -32601


async def test_an_unknown_tool_is_no_task(agent: Agent) -> None:
    reply = await agent.call("rec.nothing", task={})

    assert reply.error["code"] == -32602
    assert await ListedTask.objects.acount() == 0


async def test_what_its_server_asks_is_asked_on_the_stream_of_its_result(
    play: Play, stack: Stack, upstream: Asking
) -> None:
    assert stack.worker
    agent = play(REVISION, capabilities={"elicitation": {}})
    task = await begun(agent, "rec.ask")
    assert (await ended(agent, task))["status"] == "input_required"
    # One that has shown no forms at its session's start is not asked.
    plain = play(REVISION)
    assert (await about(plain, "get", task)).result["status"] == "working"

    message = await agent.message("tasks/result", {"taskId": task["taskId"]})
    async with agent.open(message) as response:
        heard = events(response)
        asked = await following(heard)
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": ANN}
        await agent.post(answer, headers=agent.headers(message))
        last = await following(heard)

    assert asked["method"] == "elicitation/create"
    form: Any = FORM["params"]
    assert asked["params"] == {**form, "_meta": {RELATED: {"taskId": task["taskId"]}}}
    assert json.loads(last["result"]["content"][0]["text"])
    assert last["result"]["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert (await about(agent, "get", task)).result["status"] == "completed"


async def test_what_its_server_says_of_tasks_is_said_here(
    agent: Agent, toolset: Toolset, upstream: Asking, rule: AddRule, bob: User
) -> None:
    said = {"must": "required", "may": "optional", "never": "forbidden"}
    upstream.tools = {
        name: {"inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
        for name, support in said.items()
    }
    await server("work", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")

    tools = {one["name"]: one for one in (await agent.ask("tools/list")).result["tools"]}

    for name, support in said.items():
        assert tools[f"work_{name}"]["execution"] == {"taskSupport": support}


@pytest.mark.long
async def test_the_official_client_follows_one(agent: Agent, alice: User, tmp_path: Path) -> None:
    deciding = asyncio.create_task(decide_when_held(alice))
    said = await by_sdk(agent, "rec_echo", {"text": "x"})
    await deciding

    assert said[0]["type"] == "taskCreated"
    assert [one["task"]["status"] for one in said if one["type"] == "taskStatus"][-1] == "completed"
    assert said[-2]["result"]["content"] == [{"type": "text", "text": "x"}]
    assert [one["status"] for one in said[-1]["tasks"]] == ["completed"]


async def test_the_official_client_is_asked(agent: Agent, upstream: Asking) -> None:
    said = await by_sdk(agent, "rec.ask", {})

    (asked,) = (one for one in said if one["type"] == "asked")
    assert asked["params"]["message"] == "What is your name?"
    assert "Ann" in said[-2]["result"]["content"][0]["text"]


async def test_they_are_forgotten_when_nobody_may_ask_for_them(agent: Agent) -> None:
    old, young = await begun(agent, text="old"), await begun(agent, text="young")
    call = await Call.objects.order_by("id").afirst()
    assert call is not None
    past = call.asked_at - timedelta(days=61)
    await ListedTask.objects.filter(pk=call.pk).aupdate(listed_at=past)

    await sync_to_async(expire_results)()

    assert (await about(agent, "get", old)).error == NO_TASK
    (left,) = (await agent.ask("tasks/list")).result["tasks"]
    assert left["taskId"] == young["taskId"]


async def decide_when_held(by: User) -> None:
    async def held() -> bool:
        return await Call.objects.filter(state=State.HELD).aexists()

    await until(held, seconds=25)
    await decide(by)


async def by_sdk(agent: Agent, tool: str, arguments: dict[str, Any]) -> list[Any]:
    argv = [node(), str(SCRIPT), agent.url, agent.token, tool, json.dumps(arguments)]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(30):
            written, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return [json.loads(line) for line in written.decode().splitlines()]
