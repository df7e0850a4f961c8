"""What calls go by while something else is true already, and the next snapshot is being made."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from core.errors import RecordUnavailable
from gateway.process import runtime as runtimes
from gateway.process.runtime import FRESH_S, Runtime, Snapshot
from registry import services
from tests.gateway.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    made = Runtime()
    await made.start()
    yield made
    await made.aclose()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is not set, no snapshot is made."""
    opened, load = threading.Event(), runtimes._load
    opened.set()

    def held_up() -> Snapshot:
        opened.wait()
        return load()

    monkeypatch.setattr(runtimes, "_load", held_up)
    yield opened
    opened.set()


async def change(runtime: Runtime, bob: User) -> None:
    """And this process has heard of it."""
    before = runtime.call_runtime.listener.generation
    await sync_to_async(services.create_toolset)("another", by=bob)

    async def heard() -> bool:
        return runtime.call_runtime.listener.generation > before

    await until(heard)


def is_there(snapshot: Snapshot) -> bool:
    return snapshot.catalogue.toolset("another") is not None


async def test_of_few_tools_the_next_is_waited_for(
    runtime: Runtime, gate: threading.Event, bob: User
) -> None:
    await runtime.newest()
    gate.clear()
    await change(runtime, bob)
    waiting = [asyncio.create_task(runtime.fresh()) for _ in range(3)]
    await asyncio.sleep(0)

    gate.set()

    after, *others = await asyncio.gather(*waiting)
    assert is_there(after)
    assert all(other is after for other in others)


async def test_of_many_tools_the_one_before_serves_while_it_is_fresh(
    runtime: Runtime, gate: threading.Event, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "MANY", -1)
    before = await runtime.newest()
    gate.clear()
    await change(runtime, bob)

    runtime._true_at = time.monotonic()
    assert await runtime.fresh() is before
    assert await runtime.newer() is before

    runtime._true_at -= FRESH_S
    waiting = asyncio.create_task(runtime.fresh())
    assert not (await asyncio.wait([waiting], timeout=0.05))[0]
    gate.set()
    assert is_there(await waiting)


async def test_whoever_tells_of_changes_tells_of_every_one(
    runtime: Runtime, gate: threading.Event, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "MANY", -1)
    await runtime.newest()
    await change(runtime, bob)
    runtime._true_at = time.monotonic()

    assert is_there(await runtime.changed())


async def test_what_cannot_be_read_serves_as_long_as_it_is_fresh(
    runtime: Runtime, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await runtime.newest()
    await change(runtime, bob)

    def fails() -> Snapshot:
        raise OSError("no database")

    monkeypatch.setattr(runtimes, "_load", fails)
    runtime._true_at = time.monotonic()
    assert await runtime.fresh() is before

    runtime._true_at -= FRESH_S
    with pytest.raises(RecordUnavailable):
        await runtime.fresh()
