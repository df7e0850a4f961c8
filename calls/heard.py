"""What a server says of a call while it runs, and who hears it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from calls.logs import LogBook
from calls.progress import Meter, OnStep

Turned = Literal["asked", "task"]


@dataclass(frozen=True, slots=True)
class Ear:
    """What whoever asked for a call hears of it while it runs, in the process that runs it."""

    on_step: OnStep | None = None
    on_log: Callable[[dict[str, Any]], None] | None = None
    # It asked its agent something, or goes on as a task: nothing to wait for.
    on_turn: Callable[[Turned], None] | None = None


DEAF = Ear()


class Heard:
    """Writes what is heard of one call, and passes it on."""

    def __init__(self, meter: Meter, log_book: LogBook | None, ear: Ear) -> None:
        self.meter = meter
        self._log_book = log_book
        self._ear = ear

    @property
    def wants_log(self) -> bool:
        return self._log_book is not None

    def progress(self, progress: float, total: float | None, message: str) -> None:
        step = self.meter.step(progress, total, message)
        if step is not None and self._ear.on_step is not None:
            self._ear.on_step(step)

    def line(self, line: dict[str, Any]) -> None:
        if self._log_book is not None:
            self._log_book.hear(line)
        if self._ear.on_log is not None:
            self._ear.on_log(line)

    def close(self) -> None:
        self.meter.close()
        if self._log_book is not None:
            self._log_book.close()
