"""What changes while a request is on its way: it is looked at again before anything is sent."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, User
from approvals import freezes
from calls.models import Call
from calls.record.states import Executed
from gateway.process.runtime import Runtime
from gateway.protocol.context import RequestContext
from gateway.protocol.errors import RpcError
from gateway.protocol.headers import Headers
from registry.models import Toolset
from tests.gateway.conftest import Play, forget_agreements, the_call, until
from tests.upstreams.recorder import Recorder, running

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class SlowToGreet(Recorder):
    """Answers the greeting once it is `greeting`."""

    greeting: threading.Event = field(default_factory=threading.Event)

    def reset(self) -> None:
        super().reset()
        self.greeting.set()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        while not self.greeting.is_set():
            await asyncio.sleep(0.01)
        await super().app(scope, receive, send)


running_recorder = running(SlowToGreet)


@pytest.fixture
def upstream(running_recorder: SlowToGreet) -> SlowToGreet:
    running_recorder.reset()
    return running_recorder


@pytest.mark.long
async def test_a_stop_that_comes_while_its_server_greets_keeps_a_call_from_being_sent(
    play: Play, upstream: SlowToGreet, toolset: Toolset, olga: User
) -> None:
    await sync_to_async(forget_agreements)()
    upstream.greeting.clear()
    calling = asyncio.create_task(play().call("rec.echo", {"text": "x"}))
    await until(Call.objects.filter(state="running").aexists)
    await sync_to_async(freezes.begin)(by=olga, reason="Odd things happen.")
    # As long as nobody would have called short.
    await until(Call.objects.filter(sent_at__lt=Now() - timedelta(seconds=1)).aexists)

    upstream.greeting.set()
    reply = await calling

    assert upstream.calls == []
    assert reply.result["isError"] is True
    assert "Emergency stop" in reply.text
    call = await the_call()
    assert (call.state, call.executed) == ("failed", Executed.NO)


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    made = Runtime()
    await made.start()
    yield made
    await made.aclose()


async def test_who_looks_again_shows_a_token_that_is_still_valid(
    runtime: Runtime, toolset: Toolset, scout: AgentRow, bob: User
) -> None:
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    snapshot = await runtime.newest()
    bearer, found = snapshot.tokens.bearer(token), snapshot.catalogue.toolset(toolset.slug)
    assert bearer is not None
    assert found is not None
    context = RequestContext(runtime, snapshot, bearer, found, "", found.by_exposed, Headers([]))
    assert (await context.renewed()).bearer == bearer

    await sync_to_async(accounts.revoke_token)(
        await AgentToken.objects.aget(public_id=token[4:12]), by=bob
    )

    with pytest.raises(RpcError) as refused:
        await context.renewed()
    assert refused.value.status == 401
