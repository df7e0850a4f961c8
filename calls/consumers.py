from __future__ import annotations

from uuid import UUID

from channels.db import database_sync_to_async
from django.contrib.auth.models import AbstractUser
from django.template.loader import render_to_string

from accounts.models import User
from calls import pictures
from core.consumers import OUT_OF_SIGHT, ConsoleConsumer


class CallConsumer(ConsoleConsumer):
    """Shows one call's progress to one browser, as HTML ready to swap in."""

    async def joined(self, person: AbstractUser) -> None:
        self.call_id: UUID = self.scope["url_route"]["kwargs"]["call_id"]
        group = f"call.{self.call_id}"
        await self.channel_layer.group_add(group, self.channel_name)
        self.groups.append(group)
        await self.picture_changed(person)

    async def picture_changed(self, person: AbstractUser) -> None:
        html = await self._picture(person)
        if html is None:
            await self.close(OUT_OF_SIGHT)
        else:
            await self.draw(html)

    @database_sync_to_async
    def _picture(self, person: AbstractUser) -> str | None:
        assert isinstance(person, User)
        picture = pictures.of_call(self.call_id, person)
        return None if picture is None else render_to_string("calls/live.html", picture)
