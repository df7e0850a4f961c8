"""Results as servers sent them, where cleaning changed or blocked them: who sees them, how long."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import Error, connection
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from calls.content import received_results
from calls.models import Call, ReceivedResult
from calls.tasks import expire_results
from inspection.results import ResultRules, clean
from tests.conftest import person
from tests.gateway.agent import Agent
from tests.gateway.conftest import Play
from tests.gateway.test_result_rules import ALL, CLEAN, DIRTY, KEY, Choose, choose, last_entry, said
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

__all__ = ["choose"]

pytestmark = pytest.mark.django_db(transaction=True)

Look = Callable[..., Any]


@pytest.fixture
def look(client: Client) -> Look:
    def look(call_id: str, by: User, method: str = "post") -> Any:
        client.force_login(by)
        return getattr(client, method)(reverse("calls:received", args=[call_id]))

    return sync_to_async(look)


@sync_to_async
def auditor() -> User:
    return person("ann", Role.AUDITOR)


async def looks(call_id: str) -> list[str]:
    found = Entry.objects.filter(action="received_result.viewed", call_id=call_id)
    return [entry.actor async for entry in found]


@pytest.mark.long
async def test_an_auditor_sees_both_sides_and_each_look_is_an_entry(
    agent: Agent, upstream: Recorder, choose: Choose, look: Look, client: Client
) -> None:
    upstream.results["say"] = said(DIRTY, structuredContent={"same": "as before", "n": 1.0})
    await choose(ALL)
    call_id = (await agent.call("rec.say")).call_id
    ann = await auditor()

    came = (await last_entry(call_id)).details["result"]["came"]

    asked = await look(call_id, ann, "get")
    assert KEY not in asked.text
    assert await looks(call_id) == []
    first, _second = await look(call_id, ann), await look(call_id, ann)

    assert KEY in first.text
    assert CLEAN in first.text
    changed = first.text.partition("<tbody>")[2].partition("</tbody>")[0]
    assert "as before" not in changed
    assert "no-store" in first["Cache-Control"]
    assert await looks(call_id) == ["ann", "ann"]
    page = await sync_to_async(client.get)(reverse("calls:detail", args=[call_id]))
    assert reverse("calls:received", args=[call_id]) in page.text
    assert KEY not in page.text
    assert came in page.text


@pytest.mark.long
async def test_what_was_blocked_is_shown_too(
    agent: Agent, upstream: Recorder, choose: Choose, look: Look
) -> None:
    upstream.results["say"] = said("n", structuredContent={str(n): n for n in range(200)})
    await choose(ResultRules(max_bytes=1024))
    call_id = (await agent.call("rec.say")).call_id

    page = await look(call_id, await auditor())

    assert "The agent did not get the result." in page.text
    assert "cannot be cut" in page.text
    assert "199" in page.text


@pytest.mark.long
async def test_nobody_else_sees_it(
    agent: Agent, upstream: Recorder, choose: Choose, look: Look, client: Client, bob: User
) -> None:
    upstream.results["say"] = said(DIRTY)
    await choose(ALL)
    call_id = (await agent.call("rec.say")).call_id
    entry = await last_entry(call_id)
    came = entry.details["result"]["came"]
    others = [bob, await sync_to_async(person)("app", Role.APPROVER, Role.ADMINISTRATOR)]

    for other in others:
        for method in ("get", "post"):
            answer = await look(call_id, other, method)
            assert answer.status_code in (403, 404)
            assert KEY not in answer.text
        page = await sync_to_async(client.get)(reverse("calls:detail", args=[call_id]))
        assert reverse("calls:received", args=[call_id]) not in page.text
        # Beside the masked text, a digest of what came would tell which it was.
        assert "[masked: aws key]" in page.text
        assert came not in page.text
    page = await sync_to_async(client.get)(reverse("audit:detail", args=[entry.pk]))
    assert "masked.aws_key" in page.text
    assert came not in page.text
    assert "The whole entry as JSON" not in page.text
    await sync_to_async(client.force_login)(await auditor())
    page = await sync_to_async(client.get)(reverse("audit:detail", args=[entry.pk]))
    assert page.text.count(came) >= 2
    assert "The whole entry as JSON" in page.text
    assert await looks(call_id) == []


async def test_it_is_sealed_and_opens_for_its_call_alone(
    agent: Agent, upstream: Recorder, choose: Choose, look: Look
) -> None:
    upstream.results["say"] = said(DIRTY)
    await choose(ALL)
    mine, other = [(await agent.call("rec.say", {"n": n})).call_id for n in range(2)]
    rows = {str(row.pk): bytes(row.sealed) async for row in ReceivedResult.objects.all()}
    assert not any(KEY.encode() in sealed for sealed in rows.values())
    assert rows.keys() == {mine, other}

    await ReceivedResult.objects.filter(pk=UUID(mine)).aupdate(sealed=rows[other])
    page = await look(mine, await auditor())

    assert KEY not in page.text
    assert "Nothing is stored as received." in page.text
    assert await looks(mine) == []


async def test_a_result_that_did_not_change_is_not_kept(
    agent: Agent, upstream: Recorder, choose: Choose
) -> None:
    upstream.results["say"] = said("harmless")
    await choose(ALL)
    await agent.call("rec.say")
    await choose(ResultRules())
    upstream.results["say"] = said(DIRTY)
    await agent.call("rec.say")

    assert not await ReceivedResult.objects.aexists()


async def test_large_ones_and_errors_are_kept_whole(
    agent: Agent, upstream: Recorder, choose: Choose
) -> None:
    body = upstream.results["say"] = said(f"{DIRTY}\n{'so long a text ' * 60_000}", isError=True)
    await choose(ALL)
    call_id = (await agent.call("rec.say")).call_id
    ann = await auditor()

    call = await Call.objects.select_related("agent", "server").aget(pk=call_id)
    assert await sync_to_async(received_results.look_at)(call, by=ann) == body


@pytest.mark.long
async def test_after_its_time_it_is_removed(
    play: Play, own_stack: Stack, upstream: Recorder, choose: Choose, look: Look
) -> None:
    own_stack.env["COUNTERSIGN_RECEIVED_RESULTS_DAYS"] = "0.00001"
    assert own_stack.agents
    upstream.results["say"] = said(DIRTY)
    await choose(ALL)
    call_id = (await play(at_stack=own_stack).call("rec.say")).call_id
    kept = await ReceivedResult.objects.aget(pk=UUID(call_id))
    assert kept.kept_until

    # It lasts for a second: until then nothing goes.
    while await ReceivedResult.objects.aexists():
        await sync_to_async(expire_results)()

    page = await look(call_id, await auditor())
    assert "Nothing is stored as received." in page.text
    entry = await Entry.objects.aget(action="received_results.expired")
    assert entry.details == {"count": 1}
    assert len((await last_entry(call_id)).details["result"]["came"]) == 64
    assert (await Call.objects.aget(pk=call_id)).result_digest


@pytest.mark.long
async def test_with_no_days_nothing_is_kept(
    play: Play, own_stack: Stack, upstream: Recorder, choose: Choose
) -> None:
    own_stack.env["COUNTERSIGN_RECEIVED_RESULTS_DAYS"] = "0"
    assert own_stack.agents
    upstream.results["say"] = said(DIRTY)
    await choose(ALL)
    reply = await play(at_stack=own_stack).call("rec.say")

    assert reply.text == CLEAN
    assert not await ReceivedResult.objects.aexists()


async def test_the_database_takes_none_for_a_call_that_does_not_run(
    agent: Agent, upstream: Recorder, choose: Choose
) -> None:
    upstream.results["say"] = said(DIRTY)
    await choose(ALL)
    call_id = (await agent.call("rec.say")).call_id

    def change(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, [call_id])

    for sql in (
        "UPDATE calls_receivedresult SET kept_until = now() WHERE call_id = %s",
        "INSERT INTO calls_receivedresult (call_id, sealed, kept_until)"
        " SELECT id, 'x', now() FROM calls_call WHERE id = %s",
    ):
        with pytest.raises(Error):
            await sync_to_async(change)(sql)


def test_texts_are_compared_one_by_one() -> None:
    came = json.dumps({"a": "x\u200b", "b": ["same", KEY]}).encode()
    went = json.dumps({"a": "x", "b": ["same", "[masked: aws key]"]}).encode()

    assert [*received_results.changes(came, went)] == [
        ("a", "x\u200b", "x", 0, 0),
        ("b", KEY, "[masked: aws key]", 0, 0),
    ]


def test_bytes_that_are_none_do_not_shift_the_texts_after_them() -> None:
    forged = {"content": [{"data": "A" * 300 + "\u200b"}, {"text": "one"}, {"text": f"a {KEY}"}]}
    came = json.dumps(forged).encode()

    went = clean(came, ResultRules(hidden="remove", secrets=True)).body

    assert [*received_results.changes(came, went)] == [
        ("data", "A" * 300 + "\u200b", "A" * 300, 0, 0),
        ("text", f"a {KEY}", "a [masked: aws key]", 0, 0),
    ]


async def test_a_change_far_into_a_text_is_shown_with_how_much_is_not(
    agent: Agent, upstream: Recorder, choose: Choose, look: Look
) -> None:
    upstream.results["say"] = said(f"{'same ' * 10_000}{DIRTY}{' rest' * 10_000}")
    await choose(ALL)
    call_id = (await agent.call("rec.say")).call_id

    page = await look(call_id, await auditor())

    changed = page.text.partition("<tbody>")[2].partition("</tbody>")[0]
    assert KEY in changed
    assert "Not shown: 49,801 equal characters before and 30,2" in changed
