"""People try a tool in the console: as their own agent, through the door of every other call."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from accounts import services as accounts
from accounts.models import User
from accounts.roles import Role
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry.models import Tool, Toolset
from registry.publishing.override_service import show
from tests.conftest import person
from tests.forms import submitted
from tests.gateway.conftest import AddRule
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Tab:
    """A tool's Try tab in somebody's window."""

    http: aiohttp.ClientSession
    base: str
    cookie: str

    async def open(self, tool: str, query: str = "") -> str:
        return await self._read("GET", f"/tools/{tool}/try/{query}")

    async def submit(self, tool: str, html: str, do: str = "", **changes: str) -> str:
        data = submitted(html, do=do, **changes)
        token = data["csrfmiddlewaretoken"]
        return await self._read("POST", f"/tools/{tool}/try/", data, csrftoken=token)

    async def _read(
        self, method: str, path: str, data: dict[str, str] | None = None, **cookies: str
    ) -> str:
        every = {"sessionid": self.cookie, **cookies}
        jar = "; ".join(f"{name}={value}" for name, value in every.items())
        headers = {"Cookie": jar, "Referer": self.base}
        url = f"{self.base}{path}"
        async with self.http.request(method, url, data=data, headers=headers) as response:
            assert response.status in (200, 404), await response.text()
            return await response.text()


Open = Callable[[User], Awaitable[Tab]]


@pytest.fixture
def window(stack: Stack, http: aiohttp.ClientSession) -> Open:
    assert stack.web

    async def opened(who: User) -> Tab:
        client = Client()
        await sync_to_async(client.force_login)(who)
        return Tab(http, stack.web_url, client.cookies["sessionid"].value)

    return opened


@pytest.fixture
async def bobs(window: Open, toolset: Toolset, bob: User) -> Tab:
    return await window(bob)


async def test_a_form_becomes_a_call_of_ones_own_agent(bobs: Tab, upstream: Recorder) -> None:
    page = await bobs.open("rec.form")
    names = dict(re.findall(r'<label for="(field-[^"]+)">\s*<span class="mono">(\w+)</span>', page))
    city, days = (next(i for i, n in names.items() if n == name) for name in ("city", "days"))

    after = await bobs.submit(
        "rec.form", page, **{key_of(page, city): "Utrecht", key_of(page, days): "3"}
    )

    call = await Call.objects.select_related("agent", "person").aget()
    assert (call.origin, call.state) == ("console", State.SUCCEEDED)
    assert (call.agent.name, call.person.username) == ("scout", "bob")
    assert upstream.calls[0].arguments == b'{"city":"Utrecht","days":3}'
    assert "Succeeded" in after
    assert str(call.pk) in after


def key_of(page: str, field_id: str) -> str:
    found = re.search(rf'id="{field_id}" name="([^"]+)"', page)
    assert found, field_id
    return found[1]


async def test_what_a_toolset_fixes_is_not_asked_again(bobs: Tab, toolset: Toolset) -> None:
    page = await bobs.submit("rec.form", await bobs.open("rec.form"), "json")
    await bobs.submit("rec.form", page, raw='{"city": "Ulm", "days": 3}')
    call = await Call.objects.aget()

    tool = await Tool.objects.aget(exposed_name="rec.form")
    await sync_to_async(partial(show, toolset, tool, by=None, pinned='{"days": 3}'))()
    again = await bobs.open("rec.form", f"?call={call.pk}")

    assert "Ulm" in again
    assert "other members" not in again


async def test_raw_json_is_sent_byte_for_byte(bobs: Tab, upstream: Recorder) -> None:
    page = await bobs.submit("rec.form", await bobs.open("rec.form"), "json")
    await bobs.submit("rec.form", page, raw='{"city": "Ulm",  "days": 1.0}')

    assert upstream.calls[0].arguments == b'{"city": "Ulm",  "days": 1.0}'


async def test_what_does_not_fit_is_said_at_its_field_and_makes_no_call(
    bobs: Tab, upstream: Recorder
) -> None:
    page = await bobs.submit("rec.form", await bobs.open("rec.form"))

    assert "is required" in page
    assert 'aria-invalid="true"' in page
    assert not await Call.objects.aexists()
    assert upstream.received == []


async def test_one_may_look_first(bobs: Tab, upstream: Recorder, rule: AddRule) -> None:
    await rule(Effect.DENY, "echo", reason="Not today.")
    page = await bobs.submit("rec.echo", await bobs.open("rec.echo"), "json")

    page = await bobs.submit("rec.echo", page, "look", raw='{"text": "it\'s"}')

    assert "Not today." in page
    assert "It will be blocked" in page
    assert "tools/call" in page
    assert not await Call.objects.aexists()
    assert upstream.received == []


async def test_what_is_denied_is_recorded_and_never_sent(
    bobs: Tab, upstream: Recorder, rule: AddRule
) -> None:
    await rule(Effect.DENY, "erase", reason="Never.")

    page = await bobs.submit("rec.erase", await bobs.open("rec.erase"))

    call = await Call.objects.aget()
    assert call.state == State.REFUSED
    assert "Never." in page
    assert upstream.received == []


@pytest.mark.long
async def test_a_held_try_waits_for_somebody_else(
    bobs: Tab, upstream: Recorder, rule: AddRule, bob: User
) -> None:
    await rule(Effect.ASK, "echo")
    page = await bobs.submit("rec.echo", await bobs.open("rec.echo"), "json")

    page = await bobs.submit("rec.echo", page, raw='{"text": "hi"}')

    call = await Call.objects.aget()
    assert call.state == State.HELD
    assert f"/live/calls/{call.pk}/" in page
    assert "Cancel this call" in page
    assert upstream.received == []


async def test_an_earlier_try_is_done_again(bobs: Tab, upstream: Recorder) -> None:
    page = await bobs.submit("rec.echo", await bobs.open("rec.echo"), "json")
    page = await bobs.submit("rec.echo", page, raw='{"text": "once"}')
    call = await Call.objects.aget()

    page = await bobs.open("rec.echo", f"?call={call.pk}")
    await bobs.submit("rec.echo", page)

    assert await Call.objects.acount() == 2
    assert [found.arguments for found in upstream.calls][1] == b'{"text":"once"}'


async def test_nobody_tries_as_somebody_elses_agent(
    window: Open, toolset: Toolset, upstream: Recorder
) -> None:
    eve = await sync_to_async(person)("eve", Role.OPERATOR)
    tab = await window(eve)

    page = await tab.open("rec.echo")
    assert "None of your agents may use it" in page
    await tab.submit("rec.echo", page, agent="scout", mode="json", raw='{"text": "x"}')

    assert not await Call.objects.aexists()
    assert upstream.received == []


async def test_anothers_try_is_not_shown(
    window: Open, bobs: Tab, toolset: Toolset, upstream: Recorder
) -> None:
    page = await bobs.submit("rec.echo", await bobs.open("rec.echo"), "json")
    await bobs.submit("rec.echo", page, raw='{"text": "between us"}')
    call_id: UUID = (await Call.objects.aget()).pk
    eve = await sync_to_async(person)("eve", Role.OPERATOR)
    await sync_to_async(own_agent)(eve, toolset)

    page = await (await window(eve)).open("rec.echo", f"?call={call_id}")

    assert "between us" not in page


async def test_what_is_not_published_is_not_tried(bobs: Tab, toolset: Toolset) -> None:
    await Tool.objects.filter(name="echo").aupdate(state=Tool.State.CHANGED)

    assert "Nobody can call it until it is reviewed" in await bobs.open("rec.echo")

    await Tool.objects.filter(name="echo").aupdate(state=Tool.State.NEW)

    assert "Nobody can call it yet" in await bobs.open("rec.echo")


def own_agent(who: User, toolset: Toolset) -> None:
    agent = accounts.create_agent(f"{who.username}s", owner=who, by=who)
    toolset.agents.add(agent)
