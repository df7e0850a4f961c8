"""Who watches is told together, in turns, and never left with a layer that says nothing."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.test import override_settings

from config.embedded.service import wait_until
from config.embedded.valkey import Valkey
from core import die_with_parent
from core import hub as hubs
from core.hub import ChannelLayerDown, Hub
from core.live import notify
from tests.services import running


class Leaky(InMemoryChannelLayer):
    """What is said while it leaks is lost. Groups may be joined later than it says."""

    leaks = False
    obeys: asyncio.Event | None = None

    async def group_add(self, group: str, channel: str) -> None:
        if self.obeys is None:
            await super().group_add(group, channel)
        else:
            self.later = asyncio.create_task(self._add_later(self.obeys, group, channel))

    async def _add_later(self, obeys: asyncio.Event, group: str, channel: str) -> None:
        await obeys.wait()
        await super().group_add(group, channel)

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        if not self.leaks:
            await super().send(channel, message)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        if not self.leaks:
            await super().group_send(group, message)


class House:
    """A hub, and what its watchers were told."""

    def __init__(self) -> None:
        self.turns: asyncio.Queue[dict[str, set[str]]] = asyncio.Queue()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.reading = asyncio.Event()
        self.gone: asyncio.Queue[str] = asyncio.Queue()
        self.cannot_be_sent = ""
        self.hub: Hub[str] = Hub(self._tell, self._turn_away)

    async def _tell(self, due: Mapping[str, set[str]]) -> None:
        self.reading.set()
        await self.may_read.wait()
        if "nobody can read this" in due:
            raise OSError("the database is away")
        self.turns.put_nowait(dict(due))

    async def _turn_away(self, watchers: Iterable[str]) -> None:
        for watcher in watchers:
            self.hub.drop(watcher)
            if watcher == self.cannot_be_sent:
                self.cannot_be_sent = ""
                raise OSError("the page is away")
            self.gone.put_nowait(watcher)

    async def watch(self, watcher: str, *groups: str) -> None:
        await self.hub.join(watcher, groups)
        self.hub.activate(watcher)
        assert await self.told() == {watcher: set(groups)}

    async def told(self) -> dict[str, set[str]]:
        return await asyncio.wait_for(self.turns.get(), 10)

    async def turned_away(self) -> str:
        return await asyncio.wait_for(self.gone.get(), 10)


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(hubs, "PULSE_S", 0.05)
    monkeypatch.setattr(hubs, "OPEN_S", 1.0)
    layers = {"default": {"BACKEND": f"{__name__}.Leaky"}}
    with override_settings(CHANNEL_LAYERS=layers):
        house = House()
        yield house
        for watcher in list(house.hub._joined):
            await house.hub.leave(watcher)
        # Nothing listens for nobody.
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not so():
            await asyncio.sleep(0.005)


def layer() -> Any:
    return get_channel_layer()


async def test_a_ring_is_told_in_one_turn_to_those_of_its_group(house: House) -> None:
    await house.watch("one", "queue", "call.1")
    await house.watch("two", "queue")
    await house.watch("three", "call.1")

    await notify("queue")

    assert await house.told() == {"one": {"queue"}, "two": {"queue"}}


async def test_what_rings_while_others_are_told_waits_for_the_next_turn(house: House) -> None:
    await house.watch("one", "queue", "calls")
    house.may_read.clear()
    house.reading.clear()
    await notify("queue")
    await house.reading.wait()
    for _ in range(3):
        await notify("calls")
    await until(lambda: house.hub._due == {"one": {"calls"}})
    house.may_read.set()

    assert await house.told() == {"one": {"queue"}}
    assert await house.told() == {"one": {"calls"}}


async def test_who_left_is_told_nothing(house: House) -> None:
    await house.watch("one", "queue")
    await house.watch("two", "queue")
    await house.hub.leave("one")

    await notify("queue")

    assert await house.told() == {"two": {"queue"}}


async def test_what_was_lost_on_the_way_is_read_again(house: House) -> None:
    await house.watch("one", "queue", "calls")
    layer().leaks = True
    await notify("queue")
    await until(lambda: house.hub._missed_echoes > 1)
    layer().leaks = False

    assert await house.told() == {"one": {"queue", "calls"}}


async def test_who_joins_is_greeted_once_the_group_is_heard(house: House) -> None:
    await house.watch("one", "calls")
    layer().obeys = obeys = asyncio.Event()
    joining = asyncio.create_task(house.hub.join("two", ["queue"]))
    await until(lambda: "queue" in house.hub._echoes)

    # Nobody would hear this, so nobody was told yet that they would.
    await notify("queue")
    assert not joining.done()
    obeys.set()
    await joining
    house.hub.activate("two")

    assert await house.told() == {"two": {"queue"}}
    await notify("queue")
    assert await house.told() == {"two": {"queue"}}


async def test_a_group_that_is_never_heard_is_refused(house: House) -> None:
    await house.watch("one", "calls")
    layer().obeys = obeys = asyncio.Event()

    with pytest.raises(ChannelLayerDown):
        await house.hub.join("two", ["queue"])

    obeys.set()
    await layer().later
    await house.watch("three", "queue")


async def test_who_cannot_be_turned_away_keeps_nobody_waiting(house: House) -> None:
    await house.watch("one", "calls")
    await house.hub.join("nobody can read this", ["queue"])
    house.cannot_be_sent = "nobody can read this"
    house.hub.activate("nobody can read this")
    await until(lambda: house.cannot_be_sent == "")

    await notify("calls")

    assert await house.told() == {"one": {"calls"}}


async def test_nobody_stays_with_a_layer_that_is_away(house: House) -> None:
    await house.watch("one", "queue")
    layer().leaks = True

    assert await house.turned_away() == "one"
    with pytest.raises(ChannelLayerDown):
        await house.hub.join("two", ["queue"])
    await house.hub.leave("one")
    with pytest.raises(ChannelLayerDown):
        await house.hub.join("two", ["queue"])

    layer().leaks = False
    await house.watch("two", "queue")


async def test_those_who_could_not_be_told_come_again(house: House) -> None:
    await house.watch("one", "queue")
    await house.hub.join("nobody can read this", ["queue"])
    house.hub.activate("nobody can read this")

    assert await house.turned_away() == "nobody can read this"
    await notify("calls")
    await house.watch("three", "queue")


async def test_a_killed_broker_is_noticed_and_met_again(house: House, tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    valkey = Valkey(tmp_path)
    with running(valkey, tmp_path / "valkey.log") as first:
        hosts = [valkey.urls()["REDIS_URL"]]
        real = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}
        with override_settings(CHANNEL_LAYERS={"default": real | {"CONFIG": {"hosts": hosts}}}):
            await met(house, "one")
            await notify("queue")
            assert await house.told() == {"one": {"queue"}}

            first.kill()
            assert await house.turned_away() == "one"
            await house.hub.leave("one")
            with pytest.raises(ChannelLayerDown):
                await house.hub.join("two", ["queue"])

            with again(valkey):
                await met(house, "two")
                await notify("queue")
                assert "two" in await house.told()
                await house.hub.leave("two")
            await layer().flush()


async def met(house: House, watcher: str) -> None:
    async with asyncio.timeout(20):
        while True:
            # As a page tries again and again.
            with contextlib.suppress(ChannelLayerDown):
                await house.watch(watcher, "queue")
                return


@contextmanager
def again(valkey: Valkey) -> Iterator[None]:
    """At the address that it had."""
    argv, env = valkey.command()
    process = subprocess.Popen(argv, env=env, pass_fds=die_with_parent.lifelines())
    try:
        wait_until(lambda: valkey.is_ready(process.pid), seconds=30)
        yield
    finally:
        process.terminate()
        process.wait(30)
