"""A reply that comes after its call was given up is kept, shown, and settles nothing by itself."""

from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call, LateReply
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from registry.models import Toolset
from tests.calls import rows
from tests.calls.flaky import Flaky
from tests.gateway.conftest import until
from tests.processes import Stack


@pytest.fixture
async def late(toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Flaky) -> UUID:
    """A call that the sweep gave up while its server was still at it."""
    assert stack.worker
    (call_id,) = await sync_to_async(rows.queue)(scout, bob, "hang")

    async def arrived() -> bool:
        return bool(upstream.calls)

    async def told() -> bool:
        return await LateReply.objects.filter(call_id=call_id).aexists()

    await until(arrived)
    lost = Move(call_id, State.RUNNING, State.UNKNOWN, SYSTEM, executed=Executed.UNKNOWN)
    assert await sync_to_async(move_now)(lost)
    upstream.release()
    await until(told)
    return call_id


@pytest.mark.long
async def test_it_is_evidence_and_moves_nothing(late: UUID) -> None:
    reply = await LateReply.objects.aget()

    assert (await Call.objects.aget(pk=late)).state == State.UNKNOWN
    assert (reply.state, reply.executed) == (State.SUCCEEDED, Executed.YES)
    assert b'"text":"0"' in bytes(reply.body)
    entry = await Entry.objects.aget(action="call.late_reply")
    assert (entry.call_id, entry.result_digest) == (late, reply.digest)


@pytest.mark.long
async def test_it_is_shown_and_taken_with_one_press(late: UUID, client: Client, olga: User) -> None:
    await sync_to_async(client.force_login)(olga)
    page = await sync_to_async(client.get)(reverse("calls:detail", args=[late]))
    assert "It answered after all" in page.text
    # First what the server said, with the only primary button; by hand comes second.
    main = page.text.partition("<main")[2].partition("</main>")[0]
    assert main.index("Use this as the outcome") < main.index("Record the outcome by hand")
    assert main.count("button primary") == main.count('id="call-late"') == 1
    assert "no answer came back" not in main
    reply = await LateReply.objects.aget()

    await sync_to_async(client.post)(reverse("calls:resolve", args=[late]), {"late": reply.pk})

    call = await Call.objects.aget(pk=late)
    assert (call.state, call.executed) == (State.RESOLVED, Executed.YES)
    assert "came late" in call.outcome


async def test_a_reply_of_another_call_is_not_taken(late: UUID, client: Client, olga: User) -> None:
    await sync_to_async(client.force_login)(olga)

    refused = await sync_to_async(client.post)(
        reverse("calls:resolve", args=[late]), {"late": "999999"}
    )

    assert refused.status_code == 404
    assert (await Call.objects.aget(pk=late)).state == State.UNKNOWN
