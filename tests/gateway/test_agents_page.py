"""The page for those who write agents: its examples are sent, and do what it says."""

import asyncio
import json
import os
import re
import subprocess
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals.models import Comment
from calls.record import idempotency
from calls.record.refusal import RetryAdvice
from policies.models import Effect
from registry.models import OwnTool, Toolset
from tests.gateway.agent import TASKS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, server
from tests.processes import ROOT, Stack
from tests.upstreams.recorder import TEXT, Recorder

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (ROOT / "docs" / "en" / "reference" / "mcp.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def example(which: str) -> Any:
    """The one that holds these words."""
    (found,) = (json.loads(block) for block in blocks("json") if which in block)
    return found


@pytest.fixture
async def mail(toolset: Toolset, upstream: Recorder, bob: User) -> None:
    upstream.tools = {"send": {"inputSchema": TEXT}}
    await server("mail", toolset, upstream, by=bob)
    upstream.received.clear()


async def send(agent: Agent, params: dict[str, Any]) -> Reply:
    message = await agent.message("tools/call", params)
    message["params"]["_meta"] |= params.get("_meta", {})
    return await agent.post(message, headers=agent.headers(message))


async def test_its_key_makes_one_call_of_two(
    mail: None, play: Play, stack: Stack, upstream: Recorder, scout_token: str
) -> None:
    agent = play()
    await agent.ask("tools/list")
    (command,) = blocks("sh")
    command = command.replace("http://127.0.0.1:8001/mcp/default", f"{stack.agents_url}/mcp/desk")
    env = {**os.environ, "COUNTERSIGN_TOKEN": scout_token}

    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-c", command],
        env=env,
        capture_output=True,
        check=True,
    )
    again = await send(agent, example("idempotencyKey"))

    first = json.loads(done.stdout)["result"]
    assert first["content"] == [{"type": "text", "text": "Your receipt"}]
    assert again.call_id == first["_meta"]["countersign/call"]
    assert again.result["_meta"]["countersign/repeated"] is True
    assert len(upstream.calls) == 1


async def test_what_it_sends_again_on_purpose_is_sent(
    mail: None, play: Play, upstream: Recorder
) -> None:
    agent = play()
    for _ in range(2):
        assert (await send(agent, example("countersign/again"))).text == "Your receipt"

    assert len(upstream.calls) == 2


async def test_its_justification_is_kept(mail: None, play: Play, rule: AddRule) -> None:
    agent = play(capabilities=TASKS)
    await rule(Effect.ASK, "send")
    held = await agent.call("mail_send", {"text": "x"})
    params = example("countersign_justify")
    params["arguments"]["call_id"] = held.call_id

    said = await agent.call(params["name"], params["arguments"])

    assert not said.result.get("isError")
    comment = await sync_to_async(Comment.objects.get)()
    assert comment.text == params["arguments"]["text"]


async def test_a_refusal_has_the_members_that_it_shows(
    mail: None, play: Play, rule: AddRule
) -> None:
    await rule(Effect.DENY, "send", reason="No mail.")

    reply = await play().call("mail_send", {"text": "x"})

    told = reply.result["_meta"]["countersign/refusal"]
    assert told.keys() == example('"kind"').keys()


def test_its_numbers_and_names_are_the_products() -> None:
    assert idempotency.KEY_S == 24 * 3600
    assert idempotency.GUARD_S == 600
    for name in OwnTool.values:
        assert f"`countersign_{name}(" in PAGE
    for again in RetryAdvice.values:
        assert f"`{again}`" in PAGE
