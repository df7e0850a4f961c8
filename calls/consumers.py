from __future__ import annotations

from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from django.contrib.auth.models import AbstractUser
from django.template.loader import render_to_string

from accounts.models import User
from calls import pictures
from core import sharing
from core.consumers import OUT_OF_SIGHT, ConsoleConsumer


class CallConsumer(ConsoleConsumer):
    """Shows one call's progress to one browser, as HTML ready to swap in."""

    async def joined(self, person: AbstractUser) -> None:
        self.call_id: UUID = self.scope["url_route"]["kwargs"]["call_id"]
        self.last_drawn = ""
        self.is_live = True
        group = f"call.{self.call_id}"
        await self.channel_layer.group_add(group, self.channel_name)
        self.groups.append(group)
        await self.picture_changed(person)

    async def rang(self, group: str, person: AbstractUser) -> None:
        # Short calls end with a ring of all calls alone: one of their own would cost each of them.
        if group == "calls" and self.is_live:
            await self.picture_changed(person)

    async def picture_changed(self, person: AbstractUser) -> None:
        key = ("picture", self.call_id, person.pk)
        picture = await sharing.here().ask(key, lambda: self._picture(person))
        if picture is None:
            await self.close(OUT_OF_SIGHT)
            return
        self.is_live, html = picture["is_live"], picture["html"]
        if html != self.last_drawn:
            self.last_drawn = html
            await self.draw(html)

    @database_sync_to_async
    def _picture(self, person: AbstractUser) -> dict[str, Any] | None:
        assert isinstance(person, User)
        picture = pictures.of_call(self.call_id, person)
        if picture is None:
            return None
        return picture | {"html": render_to_string("calls/live.html", picture)}
