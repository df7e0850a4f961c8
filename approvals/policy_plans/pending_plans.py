"""Plans in the queue: one person confirmed them, and another is still needed."""

from __future__ import annotations

from django.utils import timezone

from accounts.models import User
from approvals.policy_plans.applying import (
    CONFIRM,
    VALID_FOR,
    is_stale,
    needed,
    permissions_of,
    valid_confirmations,
)
from policies.models import PolicyPlan

# The newest ones: each is compared with what there is.
LISTED = 5


def plans_for(person: User) -> list[PolicyPlan]:
    """Plans that wait for one more person, and that `person` may confirm."""
    if needed() < 2 or not person.has_perm(CONFIRM):
        return []
    fresh = PolicyPlan.objects.filter(applied_at=None, created_at__gt=timezone.now() - VALID_FOR)
    confirmed = fresh.filter(confirmations__isnull=False).exclude(confirmations__person=person)
    newest = confirmed.distinct().select_related("account", "person").order_by("-pk")[:LISTED]
    return [one for one in newest if _waits_for(one, person)]


def _waits_for(plan: PolicyPlan, person: User) -> bool:
    if not person.has_perms(permissions_of(plan)) or is_stale(plan):
        return False
    return 0 < len(valid_confirmations(plan)) < needed()
