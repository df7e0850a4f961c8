"""A browser tab's one connection: told that rows changed, or sent the new picture of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib import auth
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from core import sharing

# live.js reloads the page on these: whoever was signed in no longer is, or may no longer see it.
SIGNED_OUT = 4403
OUT_OF_SIGHT = 4404


class ConsoleConsumer(AsyncWebsocketConsumer):
    """Rings for groups that this person may hear. Subclasses add a picture of one row.

    Who it is and what they may is read again at every ring: a lost permission ends it.
    """

    def __init__(self, *, bells: Mapping[str, str]) -> None:
        """`bells`: group → the permission to hear it ring; config/routing.py knows them all."""
        super().__init__()
        self.bells = bells

    async def connect(self) -> None:
        # A browser learns the reason of a close only of a connection that was accepted.
        await self.accept()
        person = await self.person()
        if person is None:
            await self.close(SIGNED_OUT)
            return
        for group in await self._audible(person):
            await self.channel_layer.group_add(group, self.channel_name)
            self.groups.append(group)
            # Something may have changed between the page's render and this connection.
            await self.ring(group)
        await self.joined(person)

    async def joined(self, person: AbstractUser) -> None:
        """For subclasses: join a group of one's own and send the first picture."""

    async def picture_changed(self, person: AbstractUser) -> None:
        """For subclasses: a group that is no bell rang."""

    async def rang(self, group: str, person: AbstractUser) -> None:
        """For subclasses: a bell rang, and this person heard it."""

    async def changed(self, event: dict[str, Any]) -> None:
        person = await self.person()
        if person is None:
            await self.close(SIGNED_OUT)
        elif event["group"] not in self.bells:
            await self.picture_changed(person)
        elif event["group"] in await self._audible(person):
            await self.ring(event["group"])
            await self.rang(event["group"], person)

    async def ring(self, group: str) -> None:
        await self.send(json.dumps({"changed": group}))

    async def draw(self, html: str) -> None:
        await self.send(json.dumps({"html": html}))

    async def person(self) -> AbstractUser | None:
        # A person's tabs, and a thousand of them, look once for each ring.
        key = ("person", self.scope["session"].session_key)
        return await sharing.here().ask(key, self._person)

    @database_sync_to_async
    def _person(self) -> AbstractUser | None:
        session = SessionStore(self.scope["session"].session_key)
        person = auth.get_user(cast(HttpRequest, SimpleNamespace(session=session)))
        return person if isinstance(person, AbstractUser) and person.is_active else None

    @database_sync_to_async
    def _audible(self, person: AbstractUser) -> list[str]:
        return [group for group, permission in self.bells.items() if person.has_perm(permission)]
