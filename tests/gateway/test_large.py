"""Large results: kept in parts for a while, links to agents, downloads for people."""

import base64
import hashlib
import json
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts import services as accounts
from accounts.models import User
from audit.models import Entry
from calls.content.large_results import LARGE, PART
from calls.models import Call, Result, ResultPart
from calls.tasks import expire_results
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from tests.gateway.agent import MODERN, TASKS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "ein langer Bericht ü\n" * 100_000
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(400_000)).decode()
MAX = "countersign/maxResultBytes"


def said(*items: Any, **more: Any) -> bytes:
    return json.dumps({"content": items, **more}).encode()


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


IMAGE = {"type": "image", "mimeType": "image/png", "data": PNG}


async def capped(agent: Agent, most: Any, tool: str = "rec.say") -> Reply:
    message = await agent.message("tools/call", {"name": tool, "arguments": {}})
    message["params"].setdefault("_meta", {})[MAX] = most
    return await agent.post(message, headers=agent.headers(message))


@sync_to_async
def bytes_kept(call_id: str) -> tuple[bytes, bytes]:
    parts = ResultPart.objects.filter(call_id=UUID(call_id))
    row = Result.objects.get(call_id=UUID(call_id))
    return bytes(row.body), b"".join(bytes(part.body) for part in parts)


@pytest.mark.long
async def test_a_large_result_is_kept_in_parts_and_read_by_its_link(
    any_agent: Agent, upstream: Recorder
) -> None:
    body = upstream.results["say"] = said(text("short"), text(LONG), IMAGE)

    reply = await any_agent.call("rec.say")

    short, link, image = reply.result["content"]
    assert short == text("short")
    # As few as will do.
    assert image == IMAGE
    uri = f"countersign://calls/{reply.call_id}/result/1"
    if any_agent.revision == "2025-03-26":
        assert uri in link["text"]
    else:
        assert (link["type"], link["uri"], link["mimeType"]) == ("resource_link", uri, "text/plain")
    read = await any_agent.ask("resources/read", {"uri": uri})
    assert read.result["contents"] == [{"uri": uri, "mimeType": "text/plain", "text": LONG}]
    assert ("cacheScope" in read.result) == (any_agent.revision == MODERN)
    whole = await any_agent.ask("resources/read", {"uri": uri.removesuffix("/1")})
    assert whole.result["contents"][0]["text"].encode() == body
    row, parts = await bytes_kept(reply.call_id)
    assert (row, parts) == (b"", body)
    call = await Call.objects.aget()
    assert call.result_digest == hashlib.sha256(body).hexdigest()
    assert call.result_size == len(body)


async def test_an_agent_says_how_much_it_takes(agent: Agent, upstream: Recorder) -> None:
    upstream.results["say"] = said(text("x" * 5000), IMAGE, structuredContent={"n": [1.0, 2]})

    everything = await capped(agent, 8_000_000)
    little = await capped(agent, 2000)
    nonsense = await capped(agent, "all")

    assert everything.result["content"] == nonsense.result["content"]
    assert everything.result["content"][1] == IMAGE
    assert [item["type"] for item in little.result["content"]] == ["resource_link"] * 2
    assert little.result["structuredContent"] == {"n": [1.0, 2]}
    uri = little.result["content"][1]["uri"]
    read = await agent.ask("resources/read", {"uri": uri})
    assert read.result["contents"] == [{"uri": uri, "mimeType": "image/png", "blob": PNG}]


async def test_a_tasks_result_has_links_too(
    play: Play, rule: AddRule, stack: Stack, upstream: Recorder, toolset: Toolset
) -> None:
    assert stack.worker
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    # By its return the gateway knows what is above, too.
    await rule(Effect.ALLOW, "say")
    upstream.results["say"] = said(text(LONG))
    agent = play(capabilities=TASKS)
    task = (await agent.call("rec.say")).result["taskId"]

    async def done() -> Any:
        reply = await agent.ask("tasks/get", {"taskId": task})
        return reply.result.get("result")

    result = await until(done)
    assert result["content"][0]["type"] == "resource_link"


@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 2 * PART, 2 * PART + 1])
async def test_around_the_limits_not_a_byte_is_lost(
    agent: Agent, upstream: Recorder, size: int
) -> None:
    frame = len(said(text("")))
    body = upstream.results["say"] = said(text("x" * (size - frame)))
    assert len(body) == size

    reply = await agent.call("rec.say")

    row, parts = await bytes_kept(reply.call_id)
    assert row + parts == body
    assert bool(row) == (size <= LARGE)
    assert len(reply.text) == size - frame


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


async def test_another_agents_result_is_like_one_that_does_not_exist(
    any_agent: Agent, play: Play, toolset: Toolset, bob: User, upstream: Recorder
) -> None:
    upstream.results["say"] = said(text(LONG))
    reply = await any_agent.call("rec.say")
    thief = play(any_agent.revision, token=await another_agent(toolset, bob))
    own = f"countersign://calls/{reply.call_id}/result"

    for who, uri in ((thief, own), (thief, f"{own}/0"), (any_agent, f"{own}/1")):
        refused = await who.ask("resources/read", {"uri": uri})
        modern = any_agent.revision == MODERN
        assert refused.error["code"] == (-32602 if modern else -32002), refused.body
        assert refused.error["data"] == {"uri": uri}


@pytest.mark.parametrize(
    "uri",
    [
        "countersign://calls/x/result",
        "countersign://calls/0192f000-0000-7000-8000-000000000000/result/01",
        "file:///etc/passwd",
        7,
        None,
    ],
)
async def test_what_is_no_uri_of_ours_is_refused(agent: Agent, uri: Any) -> None:
    refused = await agent.ask("resources/read", {"uri": uri})

    assert refused.status == 400
    assert refused.error["code"] == -32602


async def test_the_lists_are_empty_and_say_how_uris_look(any_agent: Agent) -> None:
    listed = await any_agent.ask("resources/list")
    templates = await any_agent.ask("resources/templates/list")

    assert listed.result["resources"] == []
    (template,) = templates.result["resourceTemplates"]
    assert template["uriTemplate"] == "countersign://calls/{call}/result/{item}"


async def test_people_who_may_download_it_and_that_is_an_entry(
    agent: Agent, upstream: Recorder, client: Client, bob: User, mallory: User
) -> None:
    body = upstream.results["say"] = said(text(LONG))
    call_id = (await agent.call("rec.say")).call_id

    def download(person: User) -> Any:
        client.force_login(person)
        return client.get(reverse("calls:result", args=[call_id]))

    refused = await sync_to_async(download)(mallory)
    response = await sync_to_async(download)(bob)

    assert refused.status_code in (403, 404)
    assert response.content == body
    assert response["Content-Disposition"] == f'attachment; filename="result-{call_id}.json"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    looked = Entry.objects.filter(action="payload.viewed", call_id=call_id)
    assert [entry.actor async for entry in looked] == ["bob"]


@pytest.mark.long
async def test_after_its_time_it_is_gone_and_everybody_is_told_so(
    play: Play, own_stack: Stack, upstream: Recorder, client: Client, bob: User
) -> None:
    own_stack.env["COUNTERSIGN_LARGE_RESULTS_DAYS"] = "0"
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    upstream.results["say"] = said(text(LONG))
    call_id = (await agent.call("rec.say")).call_id
    upstream.results["say"] = said(text("short"))
    short = (await agent.call("rec.say")).call_id

    await sync_to_async(expire_results)()

    def seen(name: str) -> Any:
        client.force_login(bob)
        return client.get(reverse(name, args=[call_id]))

    page = await sync_to_async(seen)("calls:detail")
    assert "It expired" in page.text
    assert (await sync_to_async(seen)("calls:result")).status_code == 404
    told = await agent.call("countersign.await_call", {"call_id": call_id})
    assert "its large result was kept until" in told.text
    read = await agent.ask("resources/read", {"uri": f"countersign://calls/{call_id}/result"})
    assert read.error["code"] == -32602
    assert await bytes_kept(short) == (said(text("short")), b"")
    entry = await Entry.objects.aget(action="results.expired")
    assert entry.details["count"] > 0


async def test_an_agent_is_told_that_the_tool_ran_whose_result_is_too_large(
    any_agent: Agent, upstream: Recorder
) -> None:
    upstream.results["say"] = said(text("x" * (8 * 1024 * 1024)))

    reply = await any_agent.call("rec.say")

    assert reply.result["isError"] is True
    assert "larger than 8388608 bytes. The tool was executed" in reply.text
    meta = reply.result["_meta"]
    assert meta["countersign/executed"] == "yes"
    refusal = meta["countersign/refusal"]
    assert (refusal["kind"], refusal["try_again"]) == ("too_large", "no")
    call = await Call.objects.aget()
    assert (call.state, call.executed) == ("failed", "yes")
