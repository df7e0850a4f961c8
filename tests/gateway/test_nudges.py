"""What listens to the database goes on whatever its handlers do, and is seen where it does not."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from accounts.models import User
from config.health import health_first
from core import listen
from core.listen import LEVEL, Listener
from gateway.http.endpoint import Endpoint
from gateway.process import current
from gateway.process.runtime import Runtime, Snapshot
from registry import services
from tests.gateway.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    yield await current.get_runtime()
    await current.close_runtime()


@sync_to_async
def notify(payload: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [LEVEL, payload])


def fail(said: object) -> None:
    raise LookupError(f"nobody expected {said}")


async def test_a_handler_that_fails_keeps_nobody_from_being_told(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    listener, heard = Listener(runtime.call_runtime.listener._conninfo), asyncio.Queue[str]()
    listener.on(LEVEL, fail)
    listener.on(LEVEL, heard.put_nowait)
    listener.start()
    try:
        await until(known(listener))
        for said in ("once", "twice"):
            await notify(said)
            assert await asyncio.wait_for(heard.get(), 5) == said
    finally:
        await listener.aclose()

    assert f"A handler of {LEVEL} failed." in caplog.text


async def test_an_unexpected_error_ends_no_listener(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    listener, look = runtime.call_runtime.listener, Listener._look
    await until(known(listener))

    async def odd(self: Listener, link: Any) -> None:
        monkeypatch.setattr(Listener, "_look", look)
        raise LookupError("no such row")

    monkeypatch.setattr(Listener, "_look", odd)
    await until(sync_to_async(lambda: Listener._look is look))

    since = listener.known_at
    await until(known(listener, since))
    assert "The listener failed; it connects anew." in caplog.text


def known(listener: Listener, since: float = float("-inf")) -> Any:
    async def is_known() -> bool:
        return listener.known_at > since

    return is_known


@pytest.mark.long
async def test_who_fails_on_hearing_of_a_change_keeps_nobody_else_from_it(
    runtime: Runtime, bob: User
) -> None:
    heard = asyncio.Queue[Snapshot]()
    runtime.config_changes.join(fail)
    runtime.config_changes.join(heard.put_nowait)
    await asyncio.wait_for(heard.get(), 5)

    await sync_to_async(services.create_toolset)("another", by=bob)

    async with asyncio.timeout(5):
        while (await heard.get()).catalogue.toolset("another") is None:
            pass


async def test_health_tells_of_a_process_that_does_not_listen(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = health_first(None)
    assert await health_of(Endpoint()) == (200, "ok")
    assert await health_of(console) == (200, "ok")

    monkeypatch.setattr(listen, "SILENT_S", 0.0)

    for app in (Endpoint(), console):
        assert await health_of(app) == (503, "not listening")
        assert await health_of(app, "/livez") == (200, "ok")


async def health_of(app: Any, path: str = "/readyz") -> tuple[int, str]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "path": path, "method": "GET"}, None, send)
    return sent[0]["status"], json.loads(sent[1]["body"])["status"]
