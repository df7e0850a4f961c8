"""In-process callbacks for a running call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from calls.running.cleaning import ServerWords
from calls.running.log_book import LogBook
from calls.running.message_cleaner import MessageCleaner
from calls.running.progress import OnStep, ProgressStep, ProgressThrottle
from core.journal import GroupCommit
from core.live import Notifier

EarlyReply = Literal["asked", "task", "unwritten"]


@dataclass(frozen=True, slots=True)
class CallListener:
    """Callbacks of the caller, called in the process that runs the call."""

    on_step: OnStep | None = None
    on_log: Callable[[dict[str, Any]], None] | None = None
    # It asked its agent something, or goes on as a task: nothing to wait for.
    on_early_reply: Callable[[EarlyReply], None] | None = None


NO_LISTENER = CallListener()
# Which attempt of which call, and where what is heard of it goes.
About = tuple[UUID, int, GroupCommit, Notifier]


class CallEvents:
    """Writes what is heard of one call, and passes it on. Of most calls nothing is heard."""

    __slots__ = (
        *("_about", "_cleaner", "_listener", "_log_book", "_throttle", "_words"),
        "wants_log",
    )

    def __init__(
        self,
        about: About,
        call_listener: CallListener,
        *,
        wants_log: bool,
        words: ServerWords | None = None,
    ) -> None:
        self._about, self._words = about, words
        self._listener = call_listener
        # Made for the first message.
        self._cleaner: MessageCleaner | None = None
        self._throttle: ProgressThrottle | None = None
        self._log_book: LogBook | None = None
        self.wants_log = wants_log

    def progress(self, progress: float, total: float | None, message: str) -> None:
        def pass_on(said: str) -> None:
            self._pass_on(self._throttle_of_call().step(progress, total, said))

        self._clean(message, self._words and message and self._words.text, pass_on)

    def say(self, message: str) -> None:
        """Passes on a status message."""

        def pass_on(said: str) -> None:
            self._pass_on(self._throttle_of_call().say(said))

        self._clean(message, self._words and message and self._words.text, pass_on)

    def _clean(self, message: Any, clean: Any, pass_on: Callable[[Any], None]) -> None:
        """Passes on the message, cleaned where `clean` is something."""
        if self._words is not None and self._words.is_slow:
            self._cleaner = self._cleaner or MessageCleaner()
            self._cleaner.clean(message, clean or (lambda said: said), pass_on)
        else:
            pass_on(clean(message) if clean else message)

    def _pass_on(self, step: ProgressStep | None) -> None:
        if step is not None and self._listener.on_step is not None:
            self._listener.on_step(step)

    def line(self, line: dict[str, Any]) -> None:
        self._clean(line, self._words and self._words.log_line, self._pass_line)

    def _pass_line(self, line: dict[str, Any]) -> None:
        if self._log_book is None:
            self._log_book = LogBook(*self._about)
        self._log_book.hear(line)
        if self._listener.on_log is not None:
            self._listener.on_log(line)

    async def drain(self) -> None:
        """Waits for messages that are still cleaned."""
        if self._cleaner is not None:
            await self._cleaner.drain()

    def close(self) -> None:
        for part in (self._cleaner, self._throttle, self._log_book):
            if part is not None:
                part.close()

    def _throttle_of_call(self) -> ProgressThrottle:
        if self._throttle is None:
            self._throttle = ProgressThrottle(*self._about)
        return self._throttle
