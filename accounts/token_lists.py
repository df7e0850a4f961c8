"""Which tokens a page lists: all that may open something, and the newest that have ended."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

ENDED_SHOWN = 20
Token = TypeVar("Token", bound=Model)


def open_first(tokens: QuerySet[Token], *, ended: int = ENDED_SHOWN) -> list[Token]:
    """None that somebody may have to revoke is left out, however many have ended since."""
    is_open = Q(revoked_at=None, expires_at__gt=timezone.now())
    return [*tokens.filter(is_open), *tokens.exclude(is_open)[:ended]]
