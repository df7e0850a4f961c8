"""Whether entries say times in which they can have been sealed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from audit.verify import Root, moment

# So long an entry may go without its leaf, or come after younger ones: the transaction_timeout of
# the application's role (docs/en/guides/install.md), and ten seconds.
LATE = timedelta(seconds=60)
# Two clocks that are set right do not differ by more.
STEP = timedelta(seconds=10)
# Times of entries are compared as microseconds since 1970.
LATE_US = LATE // timedelta(microseconds=1)
LONG_AGO = -(2**62)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def clock_steps(roots: Iterable[Root]) -> tuple[dict[int, int], list[str]]:
    """Steps of the clock that the checkpoints show: first leaf of the batch in which it was set
    back → first leaf after it; and a sentence on each."""
    steps: dict[int, int] = {}
    notes: list[str] = []
    before: tuple[int, datetime] | None = None
    for root in roots:
        at = datetime.fromisoformat(root.time)
        if before and at < before[1] - STEP:
            steps[before[0]] = root.size
            notes.append(
                f"The clock went back from {moment(before[1])} to {moment(at)}, at leaf "
                f"{before[0]}: times before and after do not compare."
            )
        before = root.size, at
    return steps, notes


def put_in(pk: int, at: int, index: int, newest: int) -> str:
    """The finding for an entry that was inserted after entries that it claims to precede."""
    return (
        f"Entry {pk} says {moment(as_datetime(at))}, and was put in after one of "
        f"{moment(as_datetime(newest))}: as leaf {index}."
    )


class TimeOrder:
    """Leaves come nearly in the order of their entries' times, from leaf `first` on; where the
    clock was set back it begins anew."""

    def __init__(self, steps: Mapping[int, int], first: int = 0) -> None:
        self.newest, self.steps = LONG_AGO, steps
        # Of those that came before the clock was set back: (at, id, leaf).
        self.oldest: tuple[int, int, int] | None = None
        self.stepped = False
        self._until = max((last for begun, last in steps.items() if begun <= first), default=0)

    def is_late(self, index: int, pk: int, at: int) -> bool:
        self._until = self.steps.get(index, self._until)
        if index < self._until:
            self.newest, self.stepped = at, True
        late = at + LATE_US < self.newest
        if not (late or self.stepped) and (self.oldest is None or at < self.oldest[0]):
            self.oldest = at, pk, index
        self.newest = max(self.newest, at)
        return late
