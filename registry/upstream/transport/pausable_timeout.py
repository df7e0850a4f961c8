"""A request's time limits, which stand still while its server waits for an answer of ours."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

# Sets for how long the server may be silent; None: as long as it likes.
AllowSilence = Callable[[float | None], None]


class PausableTimeout:
    __slots__ = ("_idle_s", "_left_s", "_silence", "_waiting", "timeout")

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        # Of the request as a whole, while it lasts.
        self.timeout: asyncio.Timeout | None = None
        self._silence: AllowSilence | None = None
        self._waiting, self._left_s = 0, 0.0

    def over(self) -> None:
        self.timeout = self._silence = None

    def on(self, silence: AllowSilence) -> None:
        """The connection that the answer comes by."""
        self._silence = silence
        if self._waiting:
            silence(None)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        self._waiting += 1
        if self._waiting == 1:
            self._stop()
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._go_on()

    def _stop(self) -> None:
        if self.timeout is not None and (when := self.timeout.when()) is not None:
            self._left_s = when - asyncio.get_running_loop().time()
            self.timeout.reschedule(None)
        if self._silence is not None:
            self._silence(None)

    def _go_on(self) -> None:
        # Over by now, if the server did not wait for its answer after all.
        if self.timeout is not None and not self.timeout.expired():
            self.timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)
        if self._silence is not None:
            self._silence(self._idle_s)
