"""Pending approvals that a person may decide: for the overview, and for the way after sign-in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.models import User
from approvals.eligibility import addressed
from approvals.models import Approval
from policies.thresholds import DECIDE

# So many of the oldest pending ones are looked at: the database takes some milliseconds for each.
LOOKED_AT = 25
# `is_open`: this person has no vote on it and no part in it.
OLDEST = """
    SELECT a.call_id, a.asked_at, a.thresholds, a.widened_min, NOT EXISTS (
        SELECT FROM approvals_vote v
        WHERE v.approval_id = a.call_id AND v.person_id = %(person)s AND v.fallen_at IS NULL
    ) AND NOT EXISTS (
        SELECT FROM approvals_excluded(a.call_id) x WHERE x.person_id = %(person)s
    ) AS is_open
    FROM (
        SELECT * FROM approvals_approval WHERE state = 'waiting' AND denies_at IS NULL
        ORDER BY asked_at, call_id LIMIT %(looked_at)s
    ) a
    ORDER BY a.asked_at, a.call_id
"""


@dataclass(frozen=True, slots=True)
class Decidable:
    """How many pending approvals wait for one person, and since when."""

    count: int = 0
    oldest: datetime | None = None
    # There may be more, which were not looked at.
    is_least: bool = False


def find_decidable(person: User) -> Decidable:
    """Among the oldest pending ones: those on which this person's vote would count."""
    if not person.has_perm(DECIDE) or not person.is_vouched_for:
        return Decidable()
    given = {"looked_at": LOOKED_AT, "person": person.pk}
    groups = person.group_names
    oldest = list(Approval.objects.raw(OLDEST, given))
    theirs = [one for one in oldest if _is_open(one) and addressed(one, person, groups)]
    if not theirs:
        return Decidable()
    return Decidable(len(theirs), theirs[0].asked_at, is_least=len(oldest) == LOOKED_AT)


def _is_open(approval: Any) -> bool:
    return bool(approval.is_open)
