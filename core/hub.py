"""One subscription a process to each group of the channel layer, shared by all who watch here.

A layer says nothing when it loses messages. So the hub speaks to itself: what does not come back
was lost, and rows are read again; when nothing comes back at all the watchers are turned away,
and whoever comes again reads its rows. Watchers are told in turns, one after another: nobody is
sent an older picture after a newer one, and what changes meanwhile waits for the next turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from channels.layers import get_channel_layer

from core.events_in_time import set_within

log = logging.getLogger(__name__)

W = TypeVar("W")

PULSE_S = 1.0
# So many pulses in a row that did not come back.
NO_ECHO_MAX = 4
OPEN_S = 4.0
# So long an echo is waited for before one asks again.
ECHO_S = 0.1


class ChannelLayerDown(Exception):
    """Changes cannot be heard here at present."""


class Hub(Generic[W]):
    """One for each event loop. `tell` is given watchers with the groups that rang for each."""

    def __init__(
        self,
        tell: Callable[[Mapping[W, set[str]]], Awaitable[None]],
        turn_away: Callable[[Iterable[W]], Awaitable[None]],
    ) -> None:
        self._tell, self._turn_away = tell, turn_away
        self._joined: dict[W, tuple[str, ...]] = {}
        self._watching: dict[str, set[W]] = {}
        self._active: set[W] = set()
        self._due: dict[W, set[str]] = {}
        self._some_due = asyncio.Event()
        self._echoes: dict[str, asyncio.Event] = {}
        self._moving = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._channel = ""
        self._heard = asyncio.Event()
        self._missed_echoes = 0

    async def join(self, watcher: W, groups: Iterable[str]) -> None:
        """Subscribes the watcher to `groups`; `activate` begins to tell it of changes."""
        self._joined[watcher] = tuple(groups)
        try:
            async with self._moving:
                if not self._tasks:
                    await self._open()
                if self._missed_echoes >= NO_ECHO_MAX:
                    raise ChannelLayerDown("nothing comes back from the channel layer")
                for group in self._joined[watcher]:
                    if group not in self._watching:
                        await self._follow(group)
                        self._watching[group] = set()
                    self._watching[group].add(watcher)
        except Exception as error:
            await self.leave(watcher)
            raise ChannelLayerDown(str(error)) from error

    def activate(self, watcher: W) -> None:
        """Something may have changed since the watcher read its rows: all its groups ring."""
        self._active.add(watcher)
        self._mark(watcher, self._joined[watcher])

    def drop(self, watcher: W) -> None:
        """It is told nothing more; `leave` follows."""
        self._active.discard(watcher)
        self._due.pop(watcher, None)

    async def leave(self, watcher: W) -> None:
        self.drop(watcher)
        async with self._moving:
            for group in self._joined.pop(watcher, ()):
                await self._forget(group, watcher)
            if not self._joined:
                await self._close()

    async def _follow(self, group: str) -> None:
        # A broker takes the order without a word, and what is said before it obeys is lost. What
        # was said to the group and came back says that it does.
        echo = self._echoes[group] = asyncio.Event()
        try:
            async with asyncio.timeout(OPEN_S):
                await _layer().group_add(group, self._channel)
                while not echo.is_set():
                    await _layer().group_send(group, {"type": "echo", "group": group})
                    await set_within(echo, ECHO_S)
        except BaseException:
            await self._unfollow(group)
            raise
        finally:
            del self._echoes[group]

    async def _unfollow(self, group: str) -> None:
        # Of a layer that is away: whoever comes next finds out.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(PULSE_S):
                await _layer().group_discard(group, self._channel)

    async def _forget(self, group: str, watcher: W) -> None:
        watchers = self._watching.get(group, set())
        watchers.discard(watcher)
        if group in self._watching and not watchers:
            del self._watching[group]
            await self._unfollow(group)

    async def _open(self) -> None:
        self._heard.clear()
        self._missed_echoes = 0
        try:
            async with asyncio.timeout(OPEN_S):
                self._channel = await _layer().new_channel()
                loop = asyncio.get_running_loop()
                jobs = (self._listening(), self._telling(), self._pulsing())
                self._tasks = [loop.create_task(job) for job in jobs]
                await self._heard.wait()
        except BaseException:
            await self._close()
            raise

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _listening(self) -> None:
        while True:
            event: dict[str, Any] = await _layer().receive(self._channel)
            if event["type"] == "pulse":
                self._hears()
            elif event["type"] == "echo":
                if event["group"] in self._echoes:
                    self._echoes[event["group"]].set()
            else:
                for watcher in self._watching.get(event["group"], ()):
                    if watcher in self._active:
                        self._mark(watcher, (event["group"],))

    def _hears(self) -> None:
        self._heard.set()
        missed, self._missed_echoes = self._missed_echoes > 1, 0
        if missed:
            for watcher in self._active:
                self._mark(watcher, self._joined[watcher])

    async def _pulsing(self) -> None:
        while True:
            self._missed_echoes += 1
            with contextlib.suppress(Exception):
                async with asyncio.timeout(PULSE_S):
                    await _layer().send(self._channel, {"type": "pulse"})
            await asyncio.sleep(PULSE_S)
            if self._missed_echoes >= NO_ECHO_MAX:
                log.warning("live: nothing comes back from the channel layer")
                await self._send_away(list(self._active))

    async def _send_away(self, watchers: Iterable[W]) -> None:
        # Whoever cannot even be told that: the others are still to be told of what comes.
        try:
            await self._turn_away(watchers)
        except Exception:
            log.exception("live: watchers were not turned away")

    def _mark(self, watcher: W, groups: Iterable[str]) -> None:
        self._due.setdefault(watcher, set()).update(groups)
        self._some_due.set()

    async def _telling(self) -> None:
        while True:
            await self._some_due.wait()
            self._some_due.clear()
            due, self._due = self._due, {}
            try:
                await self._tell(due)
            except Exception:
                log.exception("live: %s watchers were not told", len(due))
                await self._send_away(due)


def _layer() -> Any:
    layer = get_channel_layer()
    assert layer is not None
    return layer
