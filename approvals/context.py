from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from approvals.models import Approval

# The badge says "99+": counting further would only cost.
COUNTED = 100


def waiting(request: HttpRequest) -> dict[str, Any]:
    """For the navigation: how many calls wait. Read only by pages that draw it."""
    return {"waiting": lambda: count_waiting() if _may_see(request) else 0}


def count_waiting() -> int:
    return len(Approval.objects.waiting().values_list("pk")[:COUNTED])


def _may_see(request: HttpRequest) -> bool:
    person = getattr(request, "user", None)
    return bool(person and person.has_perm("approvals.view_approval"))
