"""The one WebSocket of a tab: whom it tells what, and when it stops."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.models import User
from audit.models import ClockTime
from calls.models import Call
from calls.queue.stale_leases import StaleLeases
from calls.record.states import State
from calls.views import call_page
from config.routing import websocket_urlpatterns
from core.consumers import OUT_OF_SIGHT, SIGNED_OUT
from core.ids import uuid7
from core.live import notify
from tests.console import scenery

pytestmark = pytest.mark.django_db(transaction=True)

application: Any = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))


@pytest.fixture
def running(held: UUID) -> UUID:
    call = Call.objects.for_page().get(pk=held)
    assert call.tool
    call_id = scenery.call(call.agent, call.tool, {**scenery.MAIL, "body": "other"}, State.QUEUED)
    scenery.run(call_id)
    return call_id


@asynccontextmanager
async def connected(
    person: User | None, path: str = "/live/"
) -> AsyncIterator[WebsocketCommunicator]:
    socket = WebsocketCommunicator(application, path, await headers(person))
    accepted, _protocol = await socket.connect(timeout=10)
    assert accepted
    yield socket
    await socket.disconnect()


@database_sync_to_async
def headers(person: User | None) -> list[tuple[bytes, bytes]]:
    if person is None:
        return []
    client = Client()
    client.force_login(person)
    return [(b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())]


async def told(socket: WebsocketCommunicator) -> dict[str, str]:
    message: dict[str, str] = json.loads(await socket.receive_from(timeout=10))
    return message


async def greeting(socket: WebsocketCommunicator, *groups: str) -> None:
    assert {(await told(socket))["changed"] for _ in groups} == set(groups)


async def is_closed(socket: WebsocketCommunicator) -> int:
    message = await socket.receive_output(timeout=10)
    assert message["type"] == "websocket.close"
    code: int = message["code"]
    return code


async def test_it_rings_for_what_one_may_see(alice: User) -> None:
    async with connected(alice) as socket:
        await greeting(socket, "queue", "calls", "frozen")

        await notify("queue")

        assert await told(socket) == {"changed": "queue"}


async def test_it_is_silent_about_the_rest(vera: User) -> None:
    async with connected(vera) as socket:
        await greeting(socket, "calls", "frozen")

        await notify("queue")
        await notify("calls")

        assert await told(socket) == {"changed": "calls"}


async def test_mallory_hears_nothing(mallory: User) -> None:
    async with connected(mallory) as socket:
        await notify("queue")
        await notify("calls")

        assert await socket.receive_nothing(timeout=0.5)


async def test_a_stranger_is_closed_out() -> None:
    async with connected(None) as socket:
        assert await is_closed(socket) == SIGNED_OUT


async def test_a_session_that_ends_ends_the_connection(alice: User) -> None:
    async with connected(alice) as socket:
        await greeting(socket, "queue", "calls", "frozen")

        await database_sync_to_async(Session.objects.all().delete)()
        await notify("queue")

        assert await is_closed(socket) == SIGNED_OUT


async def test_a_person_who_is_switched_off_is_closed_out(alice: User) -> None:
    async with connected(alice) as socket:
        await greeting(socket, "queue", "calls", "frozen")

        await database_sync_to_async(User.objects.filter(pk=alice.pk).update)(is_active=False)
        await notify("calls")

        assert await is_closed(socket) == SIGNED_OUT


async def test_a_lost_role_is_lost_at_once(alice: User) -> None:
    async with connected(alice) as socket:
        await greeting(socket, "queue", "calls", "frozen")

        await database_sync_to_async(alice.groups.clear)()
        await notify("queue")

        assert await socket.receive_nothing(timeout=0.5)


async def test_a_call_is_drawn_again_when_it_changes(alice: User, running: UUID) -> None:
    async with connected(alice, f"/live/calls/{running}/") as socket:
        await greeting(socket, "queue", "calls", "frozen")
        assert 'data-state="running"' in (await told(socket))["html"]

        result = {"content": [{"type": "text", "text": "Sent."}]}
        await database_sync_to_async(scenery.finish)(running, result)
        await notify(f"call.{running}")

        picture = (await told(socket))["html"]
        assert 'data-state="succeeded"' in picture
        assert "Sent." in picture


async def test_only_what_changed_of_a_call_is_sent(alice: User, running: UUID) -> None:
    async with connected(alice, f"/live/calls/{running}/") as socket:
        await greeting(socket, "queue", "calls", "frozen")
        whole = (await told(socket))["html"]
        assert "call-timeline" in whole

        await advance(running, "page 18 of 30")
        await notify(f"call.{running}")

        picture = (await told(socket))["html"]
        assert "page 18 of 30" in picture
        assert "call-timeline" not in picture


async def test_those_who_see_the_same_of_a_call_share_its_picture(
    alice: User, bob: User, vera: User, running: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        sockets = []
        for person in (alice, alice, bob, vera):
            path = f"/live/calls/{running}/"
            sockets.append(await stack.enter_async_context(connected(person, path)))
            while "html" not in await told(sockets[-1]):
                pass
        drawn = Mock(side_effect=call_page.seen_with)
        monkeypatch.setattr(call_page, "seen_with", drawn)

        await advance(running, "page 18 of 30")
        await notify(f"call.{running}")

        for socket in sockets:
            assert "page 18 of 30" in (await told(socket))["html"]
        # Two may read what is in it, and one may not.
        assert drawn.call_count == 2


@database_sync_to_async
def advance(call_id: UUID, message: str) -> None:
    Call.objects.filter(pk=call_id).update(progress=18, progress_message=message)


async def test_a_page_says_when_nothing_is_heard_of_a_call_any_more(
    alice: User, running: UUID
) -> None:
    silence = StaleLeases()
    async with connected(alice, f"/live/calls/{running}/") as socket:
        await greeting(socket, "queue", "calls", "frozen")
        assert SILENT not in (await told(socket))["html"]

        await heard_of(running, settings.LEASE_S - 1)
        await database_sync_to_async(silence.look)()
        assert SILENT in (await told(socket))["html"]

        await heard_of(running, 0)
        await database_sync_to_async(silence.look)()
        assert SILENT not in (await told(socket))["html"]


SILENT = "Last sign of it:"


@database_sync_to_async
def heard_of(call_id: UUID, seconds_ago: float) -> None:
    left = timedelta(seconds=settings.LEASE_S - seconds_ago)
    Call.objects.filter(pk=call_id).update(lease_until=ClockTime() + left)


async def test_a_ring_of_all_calls_is_enough_to_see_the_end_of_one(
    alice: User, running: UUID
) -> None:
    async with connected(alice, f"/live/calls/{running}/") as socket:
        await greeting(socket, "queue", "calls", "frozen")
        await told(socket)

        await database_sync_to_async(scenery.finish)(running, {"content": []})
        await notify("calls")

        await greeting(socket, "calls")
        assert 'data-state="succeeded"' in (await told(socket))["html"]


async def test_whoever_may_not_read_a_call_is_not_sent_its_content(
    vera: User, running: UUID
) -> None:
    async with connected(vera, f"/live/calls/{running}/") as socket:
        await greeting(socket, "calls", "frozen")
        await told(socket)

        result = {"content": [{"type": "text", "text": "for bob's eyes"}]}
        await database_sync_to_async(scenery.finish)(running, result)
        await notify(f"call.{running}")

        picture = (await told(socket))["html"]
        assert 'data-state="succeeded"' in picture
        assert "for bob's eyes" not in picture


async def test_a_lost_role_ends_the_picture_of_a_call(vera: User, running: UUID) -> None:
    async with connected(vera, f"/live/calls/{running}/") as socket:
        await greeting(socket, "calls", "frozen")
        await told(socket)

        await database_sync_to_async(vera.groups.clear)()
        await notify(f"call.{running}")

        assert await is_closed(socket) == OUT_OF_SIGHT


async def test_a_call_that_never_was_is_no_picture(alice: User) -> None:
    async with connected(alice, f"/live/calls/{uuid7()}/") as socket:
        await greeting(socket, "queue", "calls", "frozen")

        assert await is_closed(socket) == OUT_OF_SIGHT
