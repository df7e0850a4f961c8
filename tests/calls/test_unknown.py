"""Calls of unknown outcome are work for people: found, answered, or asked for anew."""

from collections.abc import AsyncIterator
from uuid import UUID

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse
from yarl import URL

from accounts.models import Agent as AgentRow
from accounts.models import User
from approvals.models import Approval
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.calls.flaky import Flaky
from tests.console import scenery
from tests.gateway.conftest import AddRule, decide, until
from tests.processes import Stack

LINK = "/calls/unknown/"
CSRF = "c" * 32


def lose(scout: AgentRow, tool: Tool) -> UUID:
    call_id = scenery.call(scout, tool, {"text": "hello"}, State.QUEUED, toolset="desk")
    scenery.run(call_id)
    assert move_now(Move(call_id, State.RUNNING, State.UNKNOWN, SYSTEM, executed=Executed.UNKNOWN))
    return call_id


@pytest.fixture
async def lost(toolset: Toolset, scout: AgentRow) -> UUID:
    tool = await Tool.objects.select_related("server", "latest").aget(name="echo")
    return await sync_to_async(lose)(scout, tool)


@pytest.fixture
async def as_olga(olga: User, stack: Stack) -> AsyncIterator[aiohttp.ClientSession]:
    client = Client()
    await sync_to_async(client.force_login)(olga)
    cookies = {"sessionid": client.cookies["sessionid"].value, "csrftoken": CSRF}
    # Unsafe: cookies of an address without a name, such as loopback's.
    jar = aiohttp.CookieJar(unsafe=True)
    jar.update_cookies(cookies, URL(stack.web_url))
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"X-CSRFToken": CSRF}) as session:
        assert stack.web
        yield session


async def again(session: aiohttp.ClientSession, stack: Stack, call_id: UUID) -> str:
    async with session.post(f"{stack.web_url}/calls/{call_id}/again/") as response:
        return f"{response.status} {await response.text()}"


@pytest.mark.long
def test_who_may_resolve_is_led_there_only_while_there_are_any(
    client: Client, olga: User, scout: AgentRow
) -> None:
    client.force_login(olga)
    server = scenery.server("calculator", olga, scenery.ADD)
    assert LINK not in client.get(reverse("calls:list")).text

    call_id = lose(scout, server.tools.for_catalogue().get())

    assert LINK in client.get(reverse("calls:list")).text
    listed = client.get(reverse("calls:unknown")).text
    assert reverse("calls:detail", args=[call_id]) in listed


@pytest.mark.long
def test_others_are_not_led_there(client: Client, olga: User, scout: AgentRow, bob: User) -> None:
    server = scenery.server("calculator", olga, scenery.ADD)
    lose(scout, server.tools.for_catalogue().get())
    client.force_login(bob)

    assert LINK not in client.get(reverse("calls:list")).text


def test_mallory_does_not_see_it(client: Client, mallory: User) -> None:
    client.force_login(mallory)

    assert client.get(reverse("calls:unknown")).status_code == 403


@pytest.mark.long
async def test_it_is_asked_for_again_as_a_call_that_people_decide_on(
    lost: UUID, as_olga: aiohttp.ClientSession, stack: Stack, alice: User, upstream: Flaky
) -> None:
    assert stack.worker

    page = await again(as_olga, stack, lost)

    new = await Call.objects.aget(state=State.HELD)
    old = await Call.objects.aget(pk=lost)
    # Rules allow it; all the same a person decides.
    assert "olga retries the call" in (await Approval.objects.aget()).reason
    assert (old.state, old.executed) == (State.RESOLVED, Executed.UNKNOWN)
    assert str(lost) in page, "the new call leads to the old one"
    async with as_olga.get(f"{stack.web_url}/calls/{lost}/") as response:
        assert str(new.pk) in await response.text()

    await decide(alice)

    async def done() -> bool:
        return await Call.objects.filter(pk=new.pk, state=State.SUCCEEDED).aexists()

    await until(done)
    assert [call.arguments for call in upstream.calls] == [bytes(old.arguments)]


@pytest.mark.long
async def test_two_who_press_make_one_new_call(
    lost: UUID, as_olga: aiohttp.ClientSession, stack: Stack
) -> None:
    await again(as_olga, stack, lost)

    assert "not unknown, or no longer" in await again(as_olga, stack, lost)
    assert await Call.objects.exclude(pk=lost).acount() == 1


async def test_what_policy_denies_by_now_is_not_asked_for(
    lost: UUID, as_olga: aiohttp.ClientSession, stack: Stack, rule: AddRule
) -> None:
    await rule(Effect.DENY, "echo", reason="Not any more.")

    said = await again(as_olga, stack, lost)
    assert "Not any more." in said
    assert (await Call.objects.aget(pk=lost)).state == State.UNKNOWN


async def test_who_may_not_cancel_calls_may_not_have_them_run_again(
    lost: UUID, as_olga: aiohttp.ClientSession, stack: Stack, olga: User
) -> None:
    await olga.groups.aclear()

    assert (await again(as_olga, stack, lost)).startswith("403")
    assert await Call.objects.acount() == 1
