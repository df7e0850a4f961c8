from __future__ import annotations

import json
from collections.abc import Collection, Hashable
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.template.loader import render_to_string
from django.utils.translation import override

from accounts.models import User
from calls.models import Call
from calls.views import call_page as pictures
from core.consumers import FragmentConsumer

# Elements of a call's page, each with an id of its own.
PARTS = ("state_line", "progress", "questions", "log", "late", "result", "timeline")


class CallFragment(NamedTuple):
    is_live: bool
    parts: tuple[str, ...]


class CallConsumer(FragmentConsumer):
    """Shows one call's progress to one browser, as HTML ready to swap in."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.is_live = True
        self.shown: tuple[str, ...] = ("",) * len(PARTS)

    @property
    def call_id(self) -> UUID:
        call_id: UUID = self.scope["url_route"]["kwargs"]["call_id"]
        return call_id

    def own_groups(self) -> tuple[str, ...]:
        return (f"call.{self.call_id}",)

    def wants_picture(self, groups: Collection[str], heard: Collection[str]) -> bool:
        # Short calls end with a ring of all calls alone: one of their own would cost each of them.
        return f"call.{self.call_id}" in groups or ("calls" in heard and self.is_live)

    @property
    def language(self) -> str:
        """The language of the page that shows it, as its address names it."""
        asked = parse_qs(self.scope["query_string"].decode()).get("language", [""])[0]
        return asked if asked in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE

    def same_picture(self) -> Hashable:
        return self.call_id, self.language

    async def pictures(self, people: Collection[AbstractUser]) -> dict[Any, CallFragment | None]:
        return await _pictures(self.call_id, people, self.language)

    def frame(self, picture: CallFragment, frames: dict[Hashable, str]) -> str | None:
        """The parts that this page does not show yet."""
        before, self.shown = self.shown, picture.parts
        self.is_live = picture.is_live
        if before not in frames:
            pairs = zip(before, picture.parts, strict=True)
            html = "".join(part for old, part in pairs if old != part)
            frames[before] = json.dumps({"html": html}) if html else ""
        return frames[before]


@database_sync_to_async
def _pictures(
    call_id: UUID, people: Collection[AbstractUser], language: str
) -> dict[Any, CallFragment | None]:
    """Renderings by person; people with equal permissions share one."""
    call = pictures.find_call(call_id)
    drawn: dict[pictures.ViewerRights | None, CallFragment | None] = {None: None}
    shown = {}
    for person in people:
        assert isinstance(person, User)
        eyes = pictures.eyes(call, person)
        if call and eyes and eyes not in drawn:
            with override(language):
                drawn[eyes] = _draw(call, eyes)
        shown[person.pk] = drawn[eyes]
    return shown


def _draw(call: Call, eyes: pictures.ViewerRights) -> CallFragment:
    picture = pictures.seen_with(eyes, call)
    parts = tuple(render_to_string(f"calls/{part}.html", picture) for part in PARTS)
    return CallFragment(picture["is_live"], parts)
