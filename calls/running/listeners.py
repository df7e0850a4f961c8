"""What a server says of a call while it runs, and who hears it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from calls.running.log_book import LogBook
from calls.running.progress import OnStep, ProgressThrottle

EarlyReply = Literal["asked", "task", "unwritten"]


@dataclass(frozen=True, slots=True)
class CallListener:
    """What whoever asked for a call hears of it while it runs, in the process that runs it."""

    on_step: OnStep | None = None
    on_log: Callable[[dict[str, Any]], None] | None = None
    # It asked its agent something, or goes on as a task: nothing to wait for.
    on_early_reply: Callable[[EarlyReply], None] | None = None
    # It has ended, and the record does not take it.
    on_unwritten: Callable[[], None] | None = None


NO_LISTENER = CallListener()


class CallEvents:
    """Writes what is heard of one call, and passes it on."""

    def __init__(
        self,
        progress_throttle: ProgressThrottle,
        log_book: LogBook | None,
        call_listener: CallListener,
    ) -> None:
        self.progress_throttle = progress_throttle
        self._log_book = log_book
        self._ear = call_listener

    @property
    def wants_log(self) -> bool:
        return self._log_book is not None

    def progress(self, progress: float, total: float | None, message: str) -> None:
        step = self.progress_throttle.step(progress, total, message)
        if step is not None and self._ear.on_step is not None:
            self._ear.on_step(step)

    def line(self, line: dict[str, Any]) -> None:
        if self._log_book is not None:
            self._log_book.hear(line)
        if self._ear.on_log is not None:
            self._ear.on_log(line)

    def close(self) -> None:
        self.progress_throttle.close()
        if self._log_book is not None:
            self._log_book.close()
