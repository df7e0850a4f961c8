"""How often one address or token may ask, counted in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import ceil
from typing import NamedTuple

# Addresses that are remembered at once: beyond that the oldest windows are forgotten.
ADDRESSES_MAX = 10_000


class Quota(NamedTuple):
    """The rest of a window. `wait_s`: 0 if the request is answered."""

    left: int
    reset_s: int
    wait_s: int


class RequestRate:
    """`amount` requests of one address within `window_s` seconds, from its first one on."""

    def __init__(
        self, amount: int, window_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.amount, self.window_s, self._clock = amount, window_s, clock
        self._lock = threading.Lock()
        # By address: when its window began, and how many requests came since. The oldest first.
        self._windows: dict[str, tuple[float, int]] = {}

    def wait_s(self, address: str) -> int:
        """Counts a request; after how many seconds the next one is answered, 0 if this one is."""
        return self.take(address).wait_s

    def take(self, address: str) -> Quota:
        """Counts a request."""
        now = self._clock()
        with self._lock:
            began, count = self._windows.get(address, (now, 0))
            if now - began >= self.window_s:
                began, count = now, 0
            if count == 0:
                # A new window is the youngest.
                self._windows.pop(address, None)
            self._windows[address] = began, count + 1
            while len(self._windows) > ADDRESSES_MAX:
                del self._windows[next(iter(self._windows))]
        reset_s = ceil(began + self.window_s - now)
        left = max(0, self.amount - count - 1)
        return Quota(left, reset_s, 0 if count < self.amount else reset_s)
