"""The address that an agent comes from is known before its call is judged."""

from datetime import timedelta
from random import randint

import pytest
from aiohttp import ClientSession, TCPConnector
from django.utils import timezone

from accounts.models import Agent as AgentRow
from accounts.models import AgentAddress
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry.models import Toolset
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule
from tests.gateway.test_rest import Rest, rest
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

__all__ = ["rest"]

pytestmark = pytest.mark.django_db(transaction=True)


async def known_since(scout: AgentRow, days: int) -> None:
    at = timezone.now() - timedelta(days=days)
    await AgentAddress.objects.acreate(agent=scout, address="192.0.2.1", first_at=at, last_at=at)


async def test_the_first_call_from_a_new_address_is_held_and_its_reason_said(
    stack: Stack,
    toolset: Toolset,
    scout: AgentRow,
    scout_token: str,
    rule: AddRule,
    upstream: Recorder,
) -> None:
    assert stack.agents
    await known_since(scout, 8)
    await rule(Effect.ALLOW, "echo")
    await rule(Effect.ASK, "e*", when="unusual.address", reason="A new address.")
    # From here on only the one below is new.
    await AgentAddress.objects.exclude(address="192.0.2.1").adelete()

    # One that no process has seen.
    address = f"127.{randint(1, 250)}.{randint(0, 250)}.{randint(1, 250)}"
    connector = TCPConnector(local_addr=(address, 0))
    async with ClientSession(connector=connector) as session:
        agent = Agent(session, f"{stack.agents_url}/mcp/desk", scout_token)
        await agent.call("rec.echo", {"text": "hi"})

    call = await Call.objects.aget()
    assert (call.state, call.reason) == (State.HELD, "A new address.")
    assert upstream.calls == []
    assert [one.address async for one in AgentAddress.objects.order_by("pk")][1:] == [address]


async def test_rest_notes_it_too(rest: Rest, scout: AgentRow, rule: AddRule) -> None:
    await rule(Effect.ALLOW, "echo")
    await AgentAddress.objects.all().adelete()

    assert (await rest.call("rec.echo", {"text": "hi"})).status == 201

    assert [one.address async for one in AgentAddress.objects.all()] == ["127.0.0.1"]


async def test_a_header_without_a_trusted_proxy_is_no_address(
    agent: Agent, scout: AgentRow, rule: AddRule
) -> None:
    await rule(Effect.ALLOW, "echo")
    await AgentAddress.objects.all().adelete()
    message = await agent.message("tools/call", {"name": "rec.echo", "arguments": {"text": "x"}})
    forged = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}

    await agent.post(message, headers={**agent.headers(message), **forged})

    known = {one.address async for one in AgentAddress.objects.all()}
    assert "203.0.113.9" not in known
