"""Every way to ask for a call leads through one door: what is denied reaches no server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from calls.tasks import run_call
from policies.models import Effect
from registry.models import Toolset
from tests.gateway.agent import LEGACY, MODERN, TASKS, URLS, Agent
from tests.gateway.conftest import AddRule, Play
from tests.gateway.test_rest import Rest
from tests.gateway.test_trying import Open, window  # noqa: F401 a fixture
from tests.mostly_long import mostly_long
from tests.processes import ROOT, Stack
from tests.upstreams.library import Library
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

Door = Callable[[], Awaitable[None]]
DOORS = [
    MODERN,
    *LEGACY,
    "one server",
    "tasks",
    "elicitation",
    "batch",
    "rest",
    "command",
    "try",
    "worker",
]


@pytest.fixture
def doors(
    play: Play,
    stack: Stack,
    http: aiohttp.ClientSession,
    toolset: Toolset,
    scout_token: str,
    window: Open,  # noqa: F811
    bob: User,
) -> dict[str, Door]:
    async def mcp(agent: Agent, tool: str = "rec.erase") -> None:
        reply = await agent.call(tool, {"all": True})
        assert reply.result["isError"] is True

    async def batch() -> None:
        agent = play("2025-03-26")
        params = {"name": "rec.erase", "arguments": {}}
        message = await agent.message("tools/call", params)
        reply = await agent.post([message], headers=agent.headers(message))
        assert reply.last[0]["result"]["isError"] is True

    async def rest() -> None:
        assert stack.web
        reply = await Rest(http, stack.web_url, scout_token).call("rec.erase")
        assert reply.status == 403

    async def command() -> None:
        argv = [sys.executable, "manage.py", "call", "scout", "desk", "rec.erase"]
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=ROOT, env=dict(os.environ), capture_output=True, check=False
        )
        assert done.returncode == 3, done.stderr

    async def tried() -> None:
        tab = await window(bob)
        await tab.submit("rec.erase", await tab.open("rec.erase"))

    async def worker() -> None:
        """A message that names a refused call, as a broker that repeats itself would send."""
        assert stack.worker
        await mcp(play())
        call = await Call.objects.aget()
        began = stack.worker.text().count("succeeded in")
        await sync_to_async(run_call.delay)(str(call.pk))
        async with asyncio.timeout(10):
            while stack.worker.text().count("succeeded in") == began:
                await asyncio.sleep(0.05)

    return {
        **{revision: lambda r=revision: mcp(play(r)) for revision in (MODERN, *LEGACY)},  # type: ignore[misc]
        "one server": lambda: mcp(play(at="desk/rec"), "erase"),
        "tasks": lambda: mcp(play(capabilities=TASKS)),
        "elicitation": lambda: mcp(play(capabilities=URLS)),
        "batch": batch,
        "rest": rest,
        "command": command,
        "try": tried,
        "worker": worker,
    }


@pytest.mark.parametrize("door", DOORS)
async def test_what_is_denied_is_recorded_and_never_sent(
    doors: dict[str, Door], upstream: Recorder, door: str, rule: AddRule
) -> None:
    await rule(Effect.DENY, "erase")

    await doors[door]()

    assert upstream.received == []
    call = await Call.objects.aget()
    assert (call.state, call.tool_name, call.executed) == (State.REFUSED, "rec.erase", "no")
    entries = [entry async for entry in Entry.objects.filter(call_id=call.pk)]
    assert [(entry.action, entry.actor, entry.to_state) for entry in entries] == [
        ("call.refused", "scout", "refused")
    ]
    assert entries[0].details["refusal"] == "policy"


READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
ASKED: dict[str, dict[str, Any]] = {
    READ: {"uri": "notes://today"},
    GET: {"name": "lib.greet"},
    COMPLETE: {
        "ref": {"type": "ref/prompt", "name": "lib.review"},
        "argument": {"name": "tone", "value": "k"},
    },
}


@pytest.mark.long
@pytest.mark.parametrize("method", mostly_long(ASKED, READ))
async def test_what_is_no_tool_comes_by_the_same_door(
    play: Play,
    stack: Stack,
    http: aiohttp.ClientSession,
    library: Library,
    scout_token: str,
    rule: AddRule,
    method: str,
) -> None:
    await rule(Effect.DENY, method)
    # Where tools have their servers' names, prompts have their own.
    tool, arguments = f"lib.{method}", json.dumps(ASKED[method]).replace("lib.", "")
    assert stack.web

    for revision in (MODERN, *LEGACY):
        reply = await play(revision).ask(method, ASKED[method])
        assert reply.error["data"]["refusal"]["kind"] == "policy"
    rest = await Rest(http, stack.web_url, scout_token).call(tool, json.loads(arguments))
    assert rest.status == 403
    argv = [sys.executable, "manage.py", "call", "scout", "desk", tool, arguments]
    done = await asyncio.to_thread(
        subprocess.run, argv, cwd=ROOT, env=dict(os.environ), capture_output=True, check=False
    )
    assert done.returncode == 3, done.stderr

    assert library.received == []
    calls = [call async for call in Call.objects.all()]
    assert [(call.state, call.tool_name) for call in calls] == [(State.REFUSED, tool)] * 6
    entries = Entry.objects.filter(call_id__in=[call.pk for call in calls])
    assert await entries.acount() == 6
