"""Whether entries say times in which they can have been sealed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from audit.verify import Root, moment

# So long an entry may go without its leaf, or come after younger ones: the transaction_timeout of
# the application's role (docs/install.md), and ten seconds.
LATE = timedelta(seconds=60)
# Two clocks that are set right do not differ by more.
STEP = timedelta(seconds=10)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def clock_steps(roots: Iterable[Root]) -> tuple[dict[int, int], list[str]]:
    """Where the clock was set back, which the checkpoints tell: the first leaf of the batch in
    which it was → the first after it. And a sentence on each."""
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


def put_in(pk: int, at: datetime, index: int, newest: datetime) -> str:
    """What is said of a row that somebody put in later, and that was sealed after those which it
    claims to precede."""
    return (
        f"Entry {pk} says {moment(at)}, and was put in after one of {moment(newest)}: as leaf "
        f"{index}."
    )


class Order:
    """Leaves come nearly in the order of their entries' times, from leaf `first` on; where the
    clock was set back it begins anew."""

    def __init__(self, steps: Mapping[int, int], first: int = 0) -> None:
        self.newest, self.steps = LONG_AGO, steps
        # Of those that came before the clock was set back: (at, id, leaf).
        self.oldest: tuple[datetime, int, int] | None = None
        self.stepped = False
        self._until = max((last for begun, last in steps.items() if begun <= first), default=0)

    def late(self, index: int, pk: int, at: datetime) -> bool:
        self._until = self.steps.get(index, self._until)
        if index < self._until:
            self.newest, self.stepped = at, True
        late = at + LATE < self.newest
        if not (late or self.stepped) and (self.oldest is None or at < self.oldest[0]):
            self.oldest = at, pk, index
        self.newest = max(self.newest, at)
        return late
