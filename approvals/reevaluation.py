"""Looks at pending approvals again when something changed: who counts, and what would be sent."""

from __future__ import annotations

import logging
import time
from bisect import bisect
from collections import deque
from uuid import UUID

from django.db import connection

from approvals.models import Approval
from approvals.services import DecisionRefused, reconsider
from core.listen import GENERATION
from core.outage import AWAY
from policies import decide

log = logging.getLogger(__name__)

# What no change of configuration tells of (a token's end, a probation that is over) is seen then.
EVERY_S = 10.0
# The sweep has other things to do: what is left over is for its next round.
AT_MOST_S = 0.5


class Reevaluation:
    """`look` is called about once a second, by one thread."""

    def __init__(self) -> None:
        self._generation = -1
        self._looked_at = float("-inf")
        self._left: deque[UUID] = deque()
        # However often configuration changes, a round goes on behind the last one that was seen.
        self._last = UUID(int=0)
        # Approved by their votes, and without room in a limit when last looked at.
        self._kept: deque[UUID] = deque()

    def look(self) -> None:
        """Decides what the votes that are there decide by now, and supersedes what changed."""
        self._find_work()
        if not (self._left or self._kept):
            return
        book = decide.load()
        kept, self._kept = self._kept, deque()
        self._work_off(kept, book)
        # Those for which there was no time come first the next time.
        self._kept.extendleft(reversed(kept))
        self._work_off(self._left, book, is_round=True)

    def _work_off(self, pks: deque[UUID], book: decide.RuleBook, *, is_round: bool = False) -> None:
        until = time.monotonic() + AT_MOST_S
        while pks:
            pk = pks.popleft()
            if is_round:
                self._last = pk
            approval = Approval.objects.filter(pk=pk).first()
            if approval is not None and _reevaluate(approval, book) and pk not in self._kept:
                self._kept.append(pk)
            if time.monotonic() >= until:
                break

    def _find_work(self) -> None:
        generation, now = _read_generation(), time.monotonic()
        is_due = not self._left and now - self._looked_at > EVERY_S
        if generation == self._generation and not is_due:
            return
        self._generation, self._looked_at = generation, now
        waiting = list(Approval.objects.waiting().order_by("pk").values_list("pk", flat=True))
        self._left = deque(waiting)
        self._left.rotate(-bisect(waiting, self._last))


def _reevaluate(approval: Approval, book: decide.RuleBook) -> bool:
    """Whether it waits for nothing but room in a limit."""
    try:
        return reconsider(approval, book)
    except DecisionRefused:
        # Somebody was first, or its time is over, which the sweep sees elsewhere, or nobody may.
        pass
    except AWAY:
        raise
    except Exception:
        log.exception("Approval %s could not be looked at again; the others are.", approval.pk)
    return False


def _read_generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute(GENERATION)
        (n,) = cursor.fetchone()
    return int(n)
