"""What a server says while it runs a call is cleaned as its results are: progress, logs, questions,
statuses, and what prompts and completion bring."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from audit.models import Entry
from calls.models import Call, Input, LogLine
from inspection.results import ResultRules
from registry.models import Tool
from tests.gateway.agent import LEGACY, META, MODERN, TASKS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, the_call, until
from tests.gateway.test_inputs import ALL as EVERYTHING
from tests.gateway.test_inputs import converse, relay
from tests.gateway.test_result_rules import ALL, CLEAN, DIRTY, KEY, Choose, choose
from tests.processes import Stack
from tests.upstreams.asking import QUESTIONS, Asking
from tests.upstreams.chatty import Chatty
from tests.upstreams.recorder import running

__all__ = ["choose"]

pytestmark = pytest.mark.django_db(transaction=True)

LINE = {"level": "info", "logger": "db\u200b", "data": {"said": DIRTY, "password": "hunter2!"}}


class Talkative(Chatty, Asking):
    """Says how far it is, and logs, in words that are to be cleaned."""

    def notes(self, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        token = params["_meta"].get("progressToken")
        yield "progress", {"progressToken": token, "progress": 1, "message": DIRTY}
        yield "message", LINE


running_recorder = running(Talkative)


async def heard(agent: Agent, upstream: Talkative) -> tuple[Reply, dict[str, Any]]:
    """The reply, and by method what was said before it."""
    upstream.release()
    params = {"name": "rec.say", "arguments": {}, "_meta": {f"{META}logLevel": "debug"}}
    message = await agent.message("tools/call", params, token="t")
    reply = await agent.post(message, headers=agent.headers(message))
    return reply, {one["method"]: one["params"] for one in reply.messages if "method" in one}


async def test_progress_and_logs_are_cleaned_for_the_agent_that_waits(
    play: Play, upstream: Talkative, choose: Choose
) -> None:
    await choose(ALL)

    reply, said = await heard(play(), upstream)

    assert said["notifications/progress"]["message"] == CLEAN
    assert said["notifications/message"] == {
        "level": "info",
        "logger": "db",
        "data": {"said": CLEAN, "password": "[masked: password]"},
    }
    assert KEY.encode() not in reply.body


async def test_and_beside_the_loop_where_that_may_take_long(
    play: Play, upstream: Talkative, choose: Choose
) -> None:
    await choose(ALL._replace(patterns="number: [0-9]{9}", marking="found"))

    reply, said = await heard(play(), upstream)

    assert said["notifications/progress"]["message"] == CLEAN
    assert said["notifications/message"]["data"]["said"] == CLEAN
    # None comes after the result.
    assert [one.get("method") for one in reply.messages] == [
        "notifications/progress",
        "notifications/message",
        None,
    ]


async def test_and_for_pages_and_tasks(
    play: Play, rule: AddRule, stack: Stack, upstream: Talkative, choose: Choose
) -> None:
    assert stack.worker
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    await choose(ALL)
    agent = play(capabilities=TASKS)
    task = (await agent.call("rec.say")).result["taskId"]

    async def kept() -> bool:
        return await LogLine.objects.aexists() and bool((await the_call()).progress_message)

    await until(kept)
    shown = (await agent.ask("tasks/get", {"taskId": task})).result
    upstream.release()

    line = await LogLine.objects.aget()
    assert (line.logger, json.loads(line.text)) == (
        "db",
        {"said": CLEAN, "password": "[masked: password]"},
    )
    assert (await the_call()).progress_message == CLEAN
    assert KEY not in json.dumps(shown)


@pytest.mark.parametrize("revision", [MODERN, LEGACY[0]])
async def test_questions_are_cleaned_and_addresses_stay(
    revision: str,
    play: Play,
    upstream: Talkative,
    choose: Choose,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await relay("elicitation", "sampling")
    name = {"type": "string", "title": DIRTY}
    schema = {"type": "object", "properties": {"name": name}}
    form = {
        "method": "elicitation/create",
        "params": {"message": DIRTY, "requestedSchema": schema},
    }
    url = "https://example.com/in?token=s3cr3t-S3CR3T-9"
    link = {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": DIRTY, "url": url, "elicitationId": "e1"},
    }
    said = {"role": "user", "content": {"type": "text", "text": DIRTY}}
    sample = {
        "method": "sampling/createMessage",
        "params": {"maxTokens": 9, "messages": [said], "systemPrompt": DIRTY},
    }
    monkeypatch.setitem(QUESTIONS, "many", [{"who": form, "in": link, "what": sample}])
    await choose(ALL, "many")

    talk = await converse(play(revision, capabilities=EVERYTHING), "rec.many")

    asked = {one["params"].get("mode", one["method"]): one["params"] for one in talk.asked}
    assert asked["elicitation/create"]["message"] == CLEAN
    shown = asked["elicitation/create"]["requestedSchema"]["properties"]["name"]
    assert shown == {"type": "string", "title": CLEAN}
    assert (asked["url"]["message"], asked["url"]["url"]) == (CLEAN, url)
    assert asked["sampling/createMessage"]["messages"][0]["content"]["text"] == CLEAN
    assert asked["sampling/createMessage"]["systemPrompt"] == CLEAN
    assert not [row async for row in Input.objects.all() if KEY in row.request + row.message]
    entries = Entry.objects.filter(action="call.input_asked")
    assert not [one async for one in entries if KEY in str(one.reason)]
    assert list(talk.answers[0]) == ["who", "in", "what"]


async def test_a_key_that_hides_something_is_asked_of_nobody(
    play: Play, upstream: Talkative, choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    (form,) = QUESTIONS["ask"][0].values()
    monkeypatch.setitem(QUESTIONS, "ask", [{f"who\u200b {KEY}": form}])
    await choose(ALL, "ask")

    reply = await play(capabilities=EVERYTHING).call("rec.ask")

    assert reply.result["isError"] is True
    assert not await Input.objects.aexists()
    assert (await Call.objects.aget()).state != "running"


async def test_without_a_choice_they_pass_as_they_are(
    play: Play, upstream: Talkative, choose: Choose
) -> None:
    await choose(ResultRules("block"))

    _reply, said = await heard(play(), upstream)

    assert said["notifications/progress"]["message"] == DIRTY
    assert said["notifications/message"] == LINE
