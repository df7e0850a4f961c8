"""What a server logs while it runs a call stands on the call's page, as far as it is kept."""

from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from calls.models import LogLine
from calls.record.states import State
from calls.running.log_book import CHARACTERS_MAX, LINES_MAX
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.gateway.agent import META, TASKS
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import Stack
from tests.upstreams.chatty import Chatty
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)

running_recorder = running(Chatty)


async def asked(play: Play, rule: AddRule, *lines: Any) -> str:
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    # By its return the gateway knows what is above, too.
    await rule(Effect.ALLOW, "say")
    reply = await play(capabilities=TASKS).call("rec.say", {"lines": lines})
    return reply.call_id


async def kept(count: int) -> list[LogLine]:
    async def there() -> bool:
        return await LogLine.objects.acount() >= count

    await until(there)
    return [line async for line in LogLine.objects.all()]


def page_of(client: Client, person: User, call_id: str) -> str:
    client.force_login(person)
    return client.get(reverse("calls:detail", args=[call_id])).text


@pytest.mark.long
async def test_they_are_shown_while_it_runs_and_hide_nothing(
    play: Play, rule: AddRule, stack: Stack, upstream: Chatty, client: Client, bob: User
) -> None:
    assert stack.worker
    call_id = await asked(
        play,
        rule,
        {"level": "info", "logger": "db", "data": "opened\u202e it"},
        {"level": "error", "data": {"left": 3, "zero": "\0"}},
        {"data": 1},
    )

    first, second, third = await kept(3)

    assert (first.level, first.logger, first.text) == ("info", "db", "opened\u202e it")
    assert orjson.loads(second.text) == {"left": 3, "zero": "\0"}
    assert (third.level, third.logger, third.text) == ("", "", "1")
    page = await sync_to_async(page_of)(client, bob, call_id)
    assert "What the server logged" in page
    # Named, where it would have turned the line around.
    assert "\u202e" not in page
    assert "202E" in page
    sent = upstream.calls[0].message["params"]["_meta"]
    assert sent[f"{META}logLevel"] == "info"
    upstream.release()


async def test_they_are_for_those_who_may_read_what_was_asked(
    play: Play, rule: AddRule, stack: Stack, upstream: Chatty, client: Client
) -> None:
    assert stack.worker
    call_id = await asked(play, rule, {"level": "info", "data": "a secret"})
    await kept(1)
    looker = await sync_to_async(scenery.person)("vera", Role.VIEWER)

    page = await sync_to_async(page_of)(client, looker, call_id)

    assert "a secret" not in page
    upstream.release()


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        ([{"data": f"line {n}"} for n in range(LINES_MAX + 7)], LINES_MAX),
        ([{"data": "x" * 10_000} for _ in range(40)], CHARACTERS_MAX // 2000),
    ],
)
async def test_they_are_capped_and_the_call_ends_all_the_same(
    play: Play, rule: AddRule, stack: Stack, upstream: Chatty, lines: list[Any], most: int
) -> None:
    assert stack.worker
    upstream.release()
    call_id = await asked(play, rule, *lines)

    found = await kept(most + 1)

    assert len(found) == most + 1
    left = len(lines) - most
    assert found[-1].text == f"{left} more lines were not kept."
    assert max(len(line.text) for line in found) <= 2000

    async def succeeded() -> bool:
        page = LogLine.objects.filter(call_id=call_id, call__state=State.SUCCEEDED)
        return await page.aexists()

    await until(succeeded)


async def test_short_calls_ask_for_none(
    play: Play, toolset: Toolset, scout: Agent, upstream: Chatty
) -> None:
    upstream.release()

    reply = await play().call("rec.say", {"lines": [{"level": "info", "data": "hello"}]})

    assert reply.text == "done"
    assert f"{META}logLevel" not in upstream.calls[0].message["params"]["_meta"]
    assert await LogLine.objects.acount() == 0
