"""Log lines of servers, for the stream of the agent that called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from calls.running.log_book import FIRST, Place
from core.levels import LEVELS


class NotificationStream(Protocol):
    def push(self, note: bytes) -> None: ...


class LogStream:
    """One stream's: what is important enough, each line once, whether it is heard in this process
    or read as it was kept."""

    def __init__(self, reply: NotificationStream, level: str, *, place: Place = FIRST) -> None:
        self._reply = reply
        self._least = LEVELS.index(level)
        # Of the first line that was not told.
        self.place = place

    def say(self, line: Mapping[str, Any]) -> None:
        """Sends a line as it arrives. It is of the first attempt, since retries run in workers."""
        self._tell((1, self.place[1]), line)

    def pass_on(self, place: Place, line: Mapping[str, Any]) -> None:
        if place >= self.place:
            self._tell(place, line)

    def _tell(self, place: Place, line: Mapping[str, Any]) -> None:
        self.place = (place[0], place[1] + 1)
        said = line.get("level")
        if said in LEVELS and LEVELS.index(said) < self._least:
            return
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": line}
        self._reply.push(orjson.dumps(note))
