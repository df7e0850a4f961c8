"""Completes the address of a Telegram bot by the chat that the bot was added to.

Source: core.telegram.org/bots/api, getUpdates: the updates of the last 24 hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from core.english import gettext as _
from core.text import revealed
from notifications.guarded_requests import json_of, post
from notifications.outcomes import Failed

API = "https://api.telegram.org"
BOT_FATHER = "https://t.me/BotFather"
# A token, after it the id of a chat where the bot is in several.
_GIVEN = re.compile(r"(?P<token>\d{4,20}:[\w-]{16,100})(?:\s+(?P<chat>-?\d{1,20}))?", re.ASCII)
TITLE_MAX = 80


class TelegramChat(NamedTuple):
    id: int
    title: str

    def __str__(self) -> str:
        return f"“{revealed(self.title)[:TITLE_MAX]}” ({self.id})"


def complete(given: str) -> tuple[str, str]:
    """The whole address of a bot that was given by its token, and the name of the chat that was
    found; any other address as it is. Raises Failed."""
    found = _GIVEN.fullmatch(given)
    if found is None:
        return given, ""
    bot = f"{API}/bot{found['token']}"
    if found["chat"]:
        return _address(bot, found["chat"]), ""
    chat = _only_chat(bot)
    return _address(bot, chat.id), str(chat)


def _address(bot: str, chat: object) -> str:
    return f"{bot}/sendMessage?chat_id={chat}"


def _only_chat(bot: str) -> TelegramChat:
    """Chooses none of several: any user of Telegram can add a bot to a chat, by its name alone."""
    chats = _chats(bot)
    if len(chats) == 1:
        return chats[0]
    if chats:
        several = "; ".join(str(one) for one in chats)
        raise Failed(
            _("Enter the token, a space, and the number of one of the bot’s chats: %(chats)s")
            % {"chats": several}
        )
    raise Failed(
        _("The bot was added to no group or channel in the last 24 hours: add it, then save again.")
    )


def _chats(bot: str) -> list[TelegramChat]:
    """Groups and channels that the bot is in, as far as its last updates name them."""
    reply = post(
        f"{bot}/getUpdates", {"Content-Type": "application/json"}, b"{}", is_answer_needed=True
    )
    chats: dict[int, TelegramChat] = {}
    match json_of(reply):
        case {"ok": True, "result": list(updates)}:
            for chat, is_left in _chats_of_updates(updates):
                chats.pop(chat.id, None)
                if not is_left:
                    chats[chat.id] = chat
            return list(chats.values())
        case {"ok": False, "description": str(why)}:
            raise Failed(_("Telegram answered: %(why)s.") % {"why": revealed(why)[:200]})
    raise Failed(_("The answer is not Telegram’s."))


def _chats_of_updates(updates: list[Any]) -> Iterator[tuple[TelegramChat, bool]]:
    """Each chat that an update is about, oldest first, and whether the bot left it with that."""
    for about in (value for one in updates if isinstance(one, dict) for value in one.values()):
        match about:
            case {"chat": {"id": int(number), "title": str(title)}, **more}:
                yield TelegramChat(number, title), _is_left(more)


def _is_left(update: dict[Any, Any]) -> bool:
    match update:
        case {"new_chat_member": {"status": "left" | "kicked"}} | {"migrate_to_chat_id": int()}:
            return True
    return False
