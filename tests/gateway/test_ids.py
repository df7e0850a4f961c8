"""Everybody calls everything 1: every answer reaches the one who asked, and nobody else."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from registry import services
from registry.models import Toolset
from tests.gateway.agent import MODERN, Agent
from tests.gateway.conftest import NEWEST, OLDER, Play
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = 500


@pytest.fixture
async def crowd() -> AsyncIterator[aiohttp.ClientSession]:
    """Hundreds at once, each on a connection of its own: more than are recorded within two seconds
    on a busy machine would be turned away."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=300)) as session:
        yield session


@sync_to_async
def token_of_another(name: str, toolset: Toolset, bob: User) -> str:
    agent: AgentRow = accounts.create_agent(name, owner=bob, by=bob)
    services.assign(toolset, agent, by=bob)
    return accounts.issue_token(agent, by=bob)


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN, NEWEST, *OLDER])
async def test_a_thousand_calls_that_are_all_number_one(
    play: Play,
    toolset: Toolset,
    upstream: Recorder,
    bob: User,
    crowd: aiohttp.ClientSession,
    revision: str,
) -> None:
    others = await token_of_another("clerk", toolset, bob)
    agents = {"scout": play(revision), "clerk": play(revision, token=others)}
    for agent in agents.values():
        agent.http = crowd
    for agent in agents.values():
        if revision != MODERN:
            # One session for all five hundred.
            await agent.begin()

    async def ask(name: str, agent: Agent, number: int) -> None:
        said = f"{name} asks {number}"
        params = {"name": "rec.echo", "arguments": {"text": said}}
        message = await agent.message("tools/call", params, request_id=1)
        # Every second one hears how far it is, and so gets a stream.
        if number % 2:
            message["params"].setdefault("_meta", {})["progressToken"] = 1
        reply = await agent.post(message, headers=agent.headers(message))
        assert reply.status == 200, reply.body
        assert [m["id"] for m in reply.messages if "id" in m] == [1]
        assert reply.text == said

    asked = [ask(name, agent, n) for n in range(CALLS) for name, agent in agents.items()]
    await asyncio.gather(*asked)

    texts = [json.loads(call.arguments)["text"] for call in upstream.calls]
    assert sorted(texts) == sorted(f"{name} asks {n}" for name in agents for n in range(CALLS))
