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

    def look(self) -> None:
        """Decides what the votes that are there decide by now, and supersedes what changed."""
        self._find_work()
        if not self._left:
            return
        book, until = decide.load(), time.monotonic() + AT_MOST_S
        while self._left:
            self._last = self._left.popleft()
            approval = Approval.objects.filter(pk=self._last).first()
            if approval is not None:
                _reevaluate(approval, book)
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


def _reevaluate(approval: Approval, book: decide.RuleBook) -> None:
    try:
        reconsider(approval, book)
    except DecisionRefused:
        # Somebody was first, or its time is over, which the sweep sees elsewhere, or nobody may.
        pass
    except AWAY:
        raise
    except Exception:
        log.exception("Approval %s could not be looked at again; the others are.", approval.pk)


def _read_generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute(GENERATION)
        (n,) = cursor.fetchone()
    return int(n)
