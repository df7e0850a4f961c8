from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from calls.models import Call, Freeze, FreezeQuerySet
from calls.states import State

# The badge says "99+": counting further would only cost.
COUNTED = 100


def unknown(request: HttpRequest) -> dict[str, Any]:
    """For the navigation: how many calls somebody has to look after. Read only where drawn."""
    return {"unknown": lambda: _count() if _may_see(request) else 0}


def frozen(request: HttpRequest) -> dict[str, Any]:
    """For every page: what is frozen now. Read only where drawn."""
    return {"frozen": lambda: _frozen(request)}


def _frozen(request: HttpRequest) -> FreezeQuerySet:
    person = getattr(request, "user", None)
    if person and person.has_perm("calls.view_call"):
        return Freeze.objects.holding().for_page()
    return Freeze.objects.none()


def _count() -> int:
    return len(Call.objects.filter(state=State.UNKNOWN).values_list("pk")[:COUNTED])


def _may_see(request: HttpRequest) -> bool:
    person = getattr(request, "user", None)
    return bool(person and person.has_perm("calls.cancel_call"))
