"""A browser tab's one connection: told that rows changed, or sent the new picture of them."""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib import auth
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from core.http import lacks_factor
from core.hub import ChannelLayerDown, Hub

log = logging.getLogger(__name__)

# live.js reloads the page on these: whoever was signed in no longer is, or may no longer see it.
SIGNED_OUT = 4403
OUT_OF_SIGHT = 4404
# And comes back on this.
AGAIN = 1013
# What was written leaves when the loop turns.
AT_ONCE = 50


@dataclass(frozen=True)
class Viewer:
    """Whose session it is now, and which of the bells' permissions they have now."""

    person: AbstractUser
    permissions: frozenset[str]


class ConsoleConsumer(AsyncWebsocketConsumer):
    """Rings for groups that this person may hear.

    Who it is and what they may is read again at every ring: a lost permission ends it.
    """

    # The hub hears for all of them.
    channel_layer_alias = "none"

    def __init__(self, *, bells: Mapping[str, str]) -> None:
        """`bells`: group → the permission to hear it ring; config/routing.py knows them all."""
        super().__init__()
        self.bells = bells

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await hub().leave(self)

    async def connect(self) -> None:
        try:
            await hub().join(self, (*self.bells, *self.own_groups()))
        except ChannelLayerDown as error:
            # Refused, not closed: the page waits longer each time.
            log.warning("live: a page was refused: %s", error)
            await self.close()
            return
        # A browser learns the reason of a close only of a connection that was accepted.
        await self.accept()
        hub().activate(self)

    @property
    def session_key(self) -> str | None:
        key: str | None = self.scope["session"].session_key
        return key

    def own_groups(self) -> tuple[str, ...]:
        """Further groups of a subclass, without doorbells."""
        return ()

    async def give(self, text: str) -> None:
        # Daphne keeps what a slow page has not read yet, and drops it when it answers no ping.
        try:
            await self.send(text)
        except Exception:
            log.exception("live: a page could not be written to")
            hub().drop(self)

    async def end(self, code: int) -> None:
        hub().drop(self)
        # One that is gone already keeps nobody else from being told.
        try:
            await self.close(code)
        except Exception:
            log.exception("live: a page could not be closed")


class FragmentConsumer(ConsoleConsumer, ABC):
    """Also sends the picture of one row."""

    @abstractmethod
    def wants_picture(self, groups: Collection[str], heard: Collection[str]) -> bool:
        """All `groups` rang; of the bells among them, this person `heard` some."""

    @abstractmethod
    def same_picture(self) -> Hashable:
        """The key of what is shown; watchers with one key share one rendering."""

    @abstractmethod
    async def pictures(self, people: Collection[AbstractUser]) -> Mapping[Any, Any]:
        """The current picture by person; None if it is no longer theirs to see."""

    @abstractmethod
    def frame(self, picture: Any, frames: dict[Hashable, str]) -> str | None:
        """The frame to send; `frames` caches it for watchers who had the same before."""


def hub() -> Hub[ConsoleConsumer]:
    return _of_loops.setdefault(asyncio.get_running_loop(), Hub(tell, turn_away))


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub[ConsoleConsumer]] = WeakKeyDictionary()


Viewers = dict[FragmentConsumer, AbstractUser]


async def turn_away(tabs: Iterable[ConsoleConsumer]) -> None:
    for tab in tabs:
        await tab.end(AGAIN)


async def tell(due: Mapping[ConsoleConsumer, set[str]]) -> None:
    permissions = {permission for tab in due for permission in tab.bells.values()}
    seen = await _viewers({tab.session_key for tab in due}, permissions)
    viewers: dict[Hashable, Viewers] = {}
    breath = Yielder()
    for tab, groups in due.items():
        who = seen[tab.session_key]
        if who is None:
            await tab.end(SIGNED_OUT)
            continue
        heard = [g for g in tab.bells if g in groups and tab.bells[g] in who.permissions]
        for group in heard:
            await tab.give(_ring(group))
            await breath.taken()
        if isinstance(tab, FragmentConsumer) and tab.wants_picture(groups, heard):
            viewers.setdefault(tab.same_picture(), {})[tab] = who.person
    for tabs in viewers.values():
        await _show(tabs)


async def _show(tabs: Viewers) -> None:
    people = {person.pk: person for person in tabs.values()}
    try:
        pictures = await next(iter(tabs)).pictures(people.values())
    except Exception:
        log.exception("live: no picture for %s pages", len(tabs))
        await turn_away(tabs)
        return
    frames: dict[Hashable, str] = {}
    breath = Yielder()
    for tab, person in tabs.items():
        picture = pictures[person.pk]
        if picture is None:
            await tab.end(OUT_OF_SIGHT)
        elif frame := tab.frame(picture, frames):
            await tab.give(frame)
        await breath.taken()


class Yielder:
    """Lets other tasks run during a loop over many receivers."""

    def __init__(self) -> None:
        self._sent = 0

    async def taken(self) -> None:
        self._sent += 1
        if self._sent % AT_ONCE == 0:
            await asyncio.sleep(0)


@cache
def _ring(group: str) -> str:
    return json.dumps({"changed": group})


@database_sync_to_async
def _viewers(keys: Iterable[str | None], permissions: set[str]) -> dict[str | None, Viewer | None]:
    return {key: _of_session(key, permissions) for key in keys}


def _of_session(key: str | None, permissions: set[str]) -> Viewer | None:
    session = SessionStore(key)
    person = auth.get_user(cast(HttpRequest, SimpleNamespace(session=session)))
    if not isinstance(person, AbstractUser) or not person.is_active or lacks_factor(person):
        return None
    return Viewer(person, frozenset(p for p in permissions if person.has_perm(p)))
