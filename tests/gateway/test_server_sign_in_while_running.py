"""Access tokens that expire while a call runs: the call goes on, and begins at no server twice."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from calls.record.states import State
from calls.running.execution import ACCEPTED_S
from registry import services
from registry.discovery import discovery
from registry.models import Server, ServerCredential, Toolset
from tests.gateway.conftest import Play, the_call
from tests.signing_in import connect, set_up
from tests.upstreams.asking import Asking
from tests.upstreams.guarded import Guarded
from tests.upstreams.tasking import Tasking

pytestmark = pytest.mark.django_db(transaction=True)

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
ANN = {"action": "accept", "content": {"name": "Ann"}}


@dataclass
class GuardedTasking(Guarded, Tasking):
    """Makes tasks, for those with an access token."""


@dataclass
class GuardedAsking(Guarded, Asking):
    """Asks in the middle of calls, of those with an access token."""


def register(guarded: Guarded, toolset: Toolset, bob: User) -> None:
    guarded.reset()
    server = services.register(
        "acme", transport="http", url=guarded.url, owner=bob, by=bob, publish=True
    )
    services.set_relays(server, ["elicitation"], by=bob)
    services.add_server(toolset, server, by=bob)
    set_up(server, Server.SignIn.PERSON, by=bob)
    connect(bob, "acme")
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary


def refreshes(guarded: Guarded) -> int:
    return [one["grant_type"] for one in guarded.grants].count("refresh_token")


def is_renewed(guarded: Guarded, times: int) -> bool:
    return refreshes(guarded) == times


def is_looked_at(guarded: GuardedTasking, before: int) -> bool:
    return len(guarded.about_tasks) > before


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_a_task_outlives_the_access_token_that_began_it(
    play: Play, toolset: Toolset, bob: User
) -> None:
    with GuardedTasking() as acme:
        await sync_to_async(register)(acme, toolset, bob)
        acme.otherwise = "task"
        call = asyncio.create_task(play().call("acme.hang"))
        await until(lambda: "tasks/get" in acme.about_tasks)

        for renewal in (1, 2):
            acme.expire()
            await until(partial(is_renewed, acme, renewal))
            await until(partial(is_looked_at, acme, len(acme.about_tasks)))
            await asyncio.sleep(ACCEPTED_S + 0.2)
        acme.release()

        async with asyncio.timeout(10):
            assert (await call).text == "done"
        assert len(acme.calls) == 1


@pytest.mark.long
async def test_answers_go_to_a_server_whose_access_token_expired_meanwhile(
    play: Play, toolset: Toolset, bob: User
) -> None:
    """It took the call and asked: from the beginning again, it may act twice."""
    with GuardedAsking() as acme:
        await sync_to_async(register)(acme, toolset, bob)
        agent = play(capabilities=FORMS)
        asked = (await agent.call("acme.ask")).result
        acme.expire()

        reply = await agent.ask(
            "tools/call",
            {
                "name": "acme.ask",
                "arguments": {},
                "requestState": asked["requestState"],
                "inputResponses": dict.fromkeys(asked["inputRequests"], ANN),
            },
        )

        assert '"Ann"' in reply.text
        assert refreshes(acme) == 1
        assert ["inputResponses" in one.message["params"] for one in acme.calls] == [False, True]
    assert (await ServerCredential.objects.aget()).ended == ""


async def test_a_task_that_nobody_can_be_asked_about_any_more_ends_unknown_with_the_link(
    play: Play, toolset: Toolset, bob: User
) -> None:
    with GuardedTasking() as acme:
        await sync_to_async(register)(acme, toolset, bob)
        acme.otherwise = "task"
        call = asyncio.create_task(play().call("acme.hang"))
        await until(partial(is_looked_at, acme, 0))

        acme.refresh.clear()
        acme.expire()

        async with asyncio.timeout(10):
            reply = await call
        assert "/connections/acme/" in reply.text
        assert (await the_call(reply.call_id)).state == State.UNKNOWN
        assert len(acme.calls) == 1
