"""Legacy clients: the handshake, the session that travels in its own id, and its end."""

import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from gateway.protocol import sessions
from registry import services
from registry.models import Toolset
from tests.gateway.agent import LEGACY, Agent
from tests.gateway.conftest import Play, the_call
from tests.processes import Stack

pytestmark = pytest.mark.django_db(transaction=True)


def hello(version: Any = "2025-06-18", **params: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


@pytest.mark.parametrize("version", LEGACY)
async def test_a_revision_that_we_speak_is_agreed_upon(play: Play, version: str) -> None:
    reply = await play(version).begin()

    assert reply.result["protocolVersion"] == version
    changing = {"listChanged": True}
    tasks: dict[str, Any] = {
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    }
    assert reply.result["capabilities"] == {
        "tools": changing,
        "resources": changing | {"subscribe": True},
        "prompts": changing,
        "completions": {},
        "logging": {},
        **(tasks if version == "2025-11-25" else {}),
    }
    assert reply.result["serverInfo"]["name"] == "countersign"


@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", "", "2026-07-28"])
async def test_for_one_that_we_do_not_we_offer_our_newest(agent: Agent, version: str) -> None:
    reply = await agent.post(hello(version))

    assert reply.result["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("version", [None, 20250618, ["2025-06-18"]])
async def test_a_handshake_without_a_version_is_refused(agent: Agent, version: Any) -> None:
    reply = await agent.post(hello(version))

    assert (reply.status, reply.error["code"]) == (400, -32602)


async def test_ping_is_answered(legacy_agent: Agent) -> None:
    assert (await legacy_agent.ask("ping")).result == {}


async def test_notifications_and_answers_are_taken(legacy_agent: Agent) -> None:
    await legacy_agent.begin()
    headers = legacy_agent.headers({})
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/madeUp", "params": {"x": 1}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}},
    ):
        reply = await legacy_agent.post(message, headers=headers)

        assert (reply.status, reply.body) == (202, b"")


async def test_the_session_names_the_client_in_the_record(legacy_agent: Agent) -> None:
    reply = await legacy_agent.call("rec.echo", {"text": "x"})

    call = await the_call(reply.call_id)
    assert (call.client, call.revision) == (f"{legacy_agent.client} 1", legacy_agent.revision)


async def test_a_client_without_a_session_is_served(play: Play) -> None:
    agent = play()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    assert (await agent.post(message)).status == 200
    listed = await agent.post(message, headers={"MCP-Protocol-Version": "2025-11-25"})
    assert listed.status == 200


async def test_a_session_speaks_the_revision_that_was_agreed_upon(play: Play) -> None:
    agent = play("2025-06-18")
    await agent.begin()
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    headers = {"Mcp-Session-Id": agent.session, "MCP-Protocol-Version": "2025-11-25"}
    reply = await agent.post(message, headers=headers)

    assert (reply.status, reply.error["code"]) == (400, -32600)


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


async def test_another_agents_session_is_like_one_that_never_was(
    play: Play, toolset: Toolset, bob: User
) -> None:
    mine = play("2025-11-25")
    await mine.begin()
    theirs = play("2025-11-25", token=await another_agent(toolset, bob))
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    theirs.session = mine.session
    stolen = await theirs.post(message, headers=theirs.headers(message))
    theirs.session = "made-up"
    unknown = await theirs.post(message, headers=theirs.headers(message))

    assert stolen.status == unknown.status == 404
    assert stolen.body == unknown.body


async def test_an_altered_session_is_over(play: Play) -> None:
    agent = play("2025-11-25")
    await agent.begin()
    letter = "A" if agent.session[20] != "A" else "B"
    agent.session = agent.session[:20] + letter + agent.session[21:]

    assert (await agent.ask("ping")).status == 404


async def test_an_expired_session_is_over(
    play: Play, scout: AgentRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = play("2025-11-25")
    long_ago = time.time() - sessions.LASTS_S - 1
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: long_ago)
        agent.session = sessions.begin(scout.pk, revision="2025-11-25", client="", abilities=())

    reply = await agent.ask("ping")

    assert reply.status == 404
    assert "initialize" in reply.error["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
async def test_only_post_is_for_agents(play: Play, stack: Stack, method: str) -> None:
    agent = play()
    headers = {"Authorization": f"Bearer {agent.token}"}
    async with agent.http.request(method, agent.url, headers=headers) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"


async def test_a_batch_of_the_oldest_revision_is_answered_as_one(play: Play) -> None:
    agent = play("2025-03-26")
    await agent.begin()
    call = {"name": "rec.echo", "arguments": {"text": "a"}}
    batch: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "2", "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
    ]

    reply = await agent.post(batch, headers=agent.headers({}))

    assert reply.status == 200
    answers = {answer["id"]: answer for answer in reply.last}
    assert answers[1]["result"]["content"][0]["text"] == "a"
    assert answers["2"]["result"] == {}
    assert answers[3]["error"]["code"] == -32601
    assert len(answers) == 3


async def test_a_batch_of_notifications_alone_has_no_answer(play: Play) -> None:
    agent = play("2025-03-26")
    await agent.begin()

    reply = await agent.post(
        [{"jsonrpc": "2.0", "method": "notifications/initialized"}], headers=agent.headers({})
    )

    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01"])
async def test_no_other_revision_has_batches(agent: Agent, version: str) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]

    reply = await agent.post(batch, headers={"MCP-Protocol-Version": version})

    assert (reply.status, reply.error["code"]) == (400, -32600)


@pytest.mark.parametrize(
    "batch",
    [
        [],
        [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(51)],
        [hello()],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, 5],
        [[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]],
    ],
    ids=["empty", "too many", "a handshake", "a number", "a batch"],
)
async def test_a_batch_that_is_none_is_refused(agent: Agent, batch: Any) -> None:
    reply = await agent.post(batch)

    assert (reply.status, reply.error["code"]) == (400, -32600)
