"""Figures of this process, counted in memory: a call pays for no lock, no query and no task.

Not even for a function of ours: what was measured is put at the end of a queue, and sorted into
buckets later, by a thread and by whoever reads it (config/process_figures.py).
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter, deque

# Seconds; the upper bounds of buckets, and one more beyond them.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
SORT_EVERY_S = 2.0
# Where nobody sorts, nobody reads either: the oldest are dropped.
UNSORTED_MAX = 50_000


class Durations:
    """A histogram of seconds; `note` takes one of them."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total_s = 0.0
        self._unsorted: deque[float] = deque(maxlen=UNSORTED_MAX)
        self._sorting = threading.Lock()
        self.note = self._unsorted.append

    def sort(self) -> None:
        with self._sorting:
            while self._unsorted:
                seconds = self._unsorted.popleft()
                self.counts[bisect_left(BOUNDS, seconds)] += 1
                self.total_s += seconds


# Of a call: `submit` is all of it, until it is answered, held or queued; the others are its parts.
SUBMIT, DECIDE, OPEN, SEND, OUTCOME = (Durations() for _ in range(5))
STAGES = {"submit": SUBMIT, "decide": DECIDE, "open": OPEN, "send": SEND, "outcome": OUTCOME}
# Of the record: one commit of the journal, which many calls share.
COMMIT = Durations()
# Requests to the agents' endpoint that were refused before anything was asked of a tool, by status.
refused: Counter[int] = Counter()
# Rounds of the sealer that failed: the record differs from what was signed, or anything else.
sealing_failures: Counter[str] = Counter(inconsistent=0, failed=0)


def sort_on() -> None:
    """In a process whose figures are read: sorts for as long as it lives."""
    threading.Thread(target=_sort_on, name="figures", daemon=True).start()


def _sort_on() -> None:
    while True:
        time.sleep(SORT_EVERY_S)
        for durations in (*STAGES.values(), COMMIT):
            durations.sort()
