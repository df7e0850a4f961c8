from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from calls.models import Freeze, FreezeQuerySet


def frozen(request: HttpRequest) -> dict[str, Any]:
    """Template context of every page: emergency stops in force. Lazy."""
    return {"frozen": lambda: _frozen(request)}


def _frozen(request: HttpRequest) -> FreezeQuerySet:
    person = getattr(request, "user", None)
    if person and person.has_perm("calls.view_call"):
        return Freeze.objects.holding().for_page()
    return Freeze.objects.none()
