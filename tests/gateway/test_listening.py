"""Agents that listen hear when the tools change that they may see, and of nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import aiohttp
import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, User
from registry import services
from registry.models import Tool, Toolset
from tests.gateway.agent import LEGACY, MODERN, Agent, data_of
from tests.gateway.conftest import Play, server
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    """Each message as it comes."""
    rest = ""
    async for chunk in response.content.iter_any():
        *blocks, rest = (rest + chunk.decode()).split("\n\n")
        for block in blocks:
            if data := "\n".join(data_of(block)):
                yield json.loads(data)


async def following(heard: AsyncIterator[Any]) -> Any:
    async with asyncio.timeout(10):
        return await anext(heard)


async def listening(agent: Agent, on: AsyncExitStack, wanted: Any, **options: Any) -> Any:
    message = await agent.message("subscriptions/listen", {"notifications": wanted}, **options)
    response = await on.enter_async_context(agent.open(message))
    assert response.status == 200
    return events(response)


async def get_stream(agent: Agent, on: AsyncExitStack) -> Any:
    headers = {"Authorization": f"Bearer {agent.token}", "Accept": "text/event-stream"}
    response = await on.enter_async_context(
        agent.http.get(agent.url, headers=headers | agent.headers({}))
    )
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/event-stream"
    return events(response)


@pytest.mark.long
@pytest.mark.parametrize("request_id", [7, "seven"])
async def test_a_new_server_is_heard_of(
    agent: Agent, toolset: Toolset, upstream: Recorder, bob: User, request_id: Any
) -> None:
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True}, request_id=request_id)
        acknowledged = await following(heard)
        await server("two", toolset, upstream, by=bob)
        changed = await following(heard)
        names = {tool["name"] for tool in (await agent.ask("tools/list")).result["tools"]}

    tag = {SUBSCRIPTION: request_id}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"notifications": {"toolsListChanged": True}, "_meta": tag}
    assert changed == {"jsonrpc": "2.0", "method": CHANGED, "params": {"_meta": tag}}
    assert "two_echo" in names


@pytest.mark.long
@pytest.mark.parametrize("revision", LEGACY)
async def test_earlier_revisions_hear_it_beside_their_session(
    play: Play, toolset: Toolset, upstream: Recorder, bob: User, revision: str
) -> None:
    agent = play(revision)
    begun = await agent.begin()
    async with AsyncExitStack() as on:
        heard = await get_stream(agent, on)
        await server("two", toolset, upstream, by=bob)

        assert await following(heard) == {"jsonrpc": "2.0", "method": CHANGED}
    assert begun.result["capabilities"]["tools"] == {"listChanged": True}


async def test_search_mode_is_another_list(agent: Agent, toolset: Toolset, bob: User) -> None:
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True})
        await following(heard)
        await sync_to_async(services.set_search_mode)(toolset, True, by=bob)
        await following(heard)
        names = {tool["name"] for tool in (await agent.ask("tools/list")).result["tools"]}
    assert "countersign_search_tools" in names


@pytest.mark.long
async def test_what_changes_elsewhere_is_not_told(
    agent: Agent, toolset: Toolset, upstream: Recorder, bob: User, scout: AgentRow
) -> None:
    other = await sync_to_async(services.create_toolset)("other", by=bob)
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True})
        await following(heard)
        await server("elsewhere", other, upstream, by=bob)
        tool = await Tool.objects.aget(server__slug="rec", name="echo")
        await sync_to_async(services.retire)(tool, by=bob)
        await following(heard)
        # One change of this list, one message: what follows is of the next.
        await server("two", toolset, upstream, by=bob)
        await following(heard)
        names = {tool["name"] for tool in (await agent.ask("tools/list")).result["tools"]}
    assert "two_echo" in names


async def test_at_one_server_only_its_tools_count(
    play: Play, toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    agent = play(at="desk/rec")
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True})
        await following(heard)
        await server("two", toolset, upstream, by=bob)
        tool = await Tool.objects.aget(server__slug="rec", name="echo")
        await sync_to_async(services.retire)(tool, by=bob)
        await following(heard)
        names = {tool["name"] for tool in (await agent.ask("tools/list")).result["tools"]}
    assert "echo" not in names


async def test_what_is_not_offered_is_not_acknowledged(agent: Agent) -> None:
    wanted = {"promptsListChanged": 1, "resourceSubscriptions": ["file:///a"], "x": True}
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, wanted)
        assert (await following(heard))["params"]["notifications"] == {}


async def test_a_revoked_token_hears_no_more(
    agent: Agent, scout: AgentRow, bob: User, toolset: Toolset
) -> None:
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True}, request_id="x")
        await following(heard)
        async for token in AgentToken.objects.filter(agent=scout):
            await sync_to_async(accounts.revoke_token)(token, by=bob)

        ended = await following(heard)
        with pytest.raises(StopAsyncIteration):
            await following(heard)
    assert ended["id"] == "x"
    assert ended["result"] == {"resultType": "complete", "_meta": {SUBSCRIPTION: "x"}}


async def test_an_expired_token_hears_no_more(agent: Agent, scout: AgentRow) -> None:
    """Nothing else changes meanwhile that would have anybody look at it."""
    soon = timezone.now() + timedelta(seconds=8)
    await AgentToken.objects.filter(agent=scout).aupdate(expires_at=soon)
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True}, request_id="x")
        await following(heard)

        ended = await following(heard)
    assert (ended["id"], ended["result"]["resultType"]) == ("x", "complete")
    assert timezone.now() >= soon


async def test_an_agent_taken_off_the_toolset_hears_no_more(
    play: Play, scout: AgentRow, bob: User, toolset: Toolset
) -> None:
    agent = play("2025-11-25")
    await agent.begin()
    async with AsyncExitStack() as on:
        heard = await get_stream(agent, on)
        await sync_to_async(services.unassign)(toolset, scout, by=bob)
        with pytest.raises(StopAsyncIteration):
            await following(heard)


@pytest.mark.long
async def test_a_process_that_stops_says_so_at_once(
    play: Play, own_stack: Stack, toolset: Toolset
) -> None:
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True}, request_id=1)
        await following(heard)
        stopping = asyncio.create_task(asyncio.to_thread(own_stack.agents.stop, seconds=4))
        assert (await following(heard))["id"] == 1
        # Sooner than uvicorn would have cut it off.
        await stopping


@pytest.mark.parametrize("wanted", [None, [], "tools"])
async def test_what_to_hear_of_must_be_said(agent: Agent, wanted: Any) -> None:
    reply = await agent.ask("subscriptions/listen", {"notifications": wanted})
    assert reply.error["code"] == -32602
    assert "notifications" in reply.error["message"]


async def test_streams_of_an_agent_are_counted(agent: Agent) -> None:
    async with AsyncExitStack() as on:
        for _ in range(32):
            await following(await listening(agent, on, {"toolsListChanged": True}))
        reply = await agent.ask("subscriptions/listen", {"notifications": {}})
        assert reply.status == 429
        assert "32 streams" in reply.error["message"]

    async with AsyncExitStack() as on, asyncio.timeout(10):
        # The places of those who went away are free again.
        while True:
            message = await agent.message("subscriptions/listen", {"notifications": {}})
            response = await on.enter_async_context(agent.open(message))
            if response.status == 200:
                break


async def test_a_get_needs_a_session_and_an_ear(play: Play) -> None:
    agent = play("2025-11-25")
    await agent.begin()
    shown = {"Authorization": f"Bearer {agent.token}", "Accept": "text/event-stream"}
    for headers, status in (
        (shown, 405),
        ({**shown, **agent.headers({}), "Accept": "application/json"}, 406),
        ({**shown, "Mcp-Session-Id": "nonsense"}, 404),
        ({**shown, "MCP-Protocol-Version": MODERN}, 405),
        ({**agent.headers({}), "Accept": "text/event-stream"}, 401),
    ):
        async with agent.http.get(agent.url, headers=headers) as response:
            assert response.status == status, headers


@pytest.mark.long
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_hears_it(
    agent: Agent, toolset: Toolset, upstream: Recorder, bob: User, mode: Any
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(getattr(getattr(message, "root", message), "method", ""))

    headers = {"Authorization": f"Bearer {agent.token}"}
    async with AsyncExitStack() as on:
        http = await on.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
        link = streamable_http_client(agent.url, http_client=http)
        client = await on.enter_async_context(Client(link, mode=mode, message_handler=hear))
        if mode == "auto":
            told = await on.enter_async_context(client.listen(tools_list_changed=True))
        await server("two", toolset, upstream, by=bob)
        async with asyncio.timeout(10):
            if mode == "auto":
                await anext(aiter(told))
            else:
                while await heard.get() != CHANGED:
                    pass
        listed = await client.list_tools()
    assert "two_echo" in {tool.name for tool in listed.tools}
