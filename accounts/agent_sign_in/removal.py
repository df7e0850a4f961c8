"""Removal of what signs nobody in any more. Entries stay."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from accounts.agent_sign_in import clients
from accounts.models import (
    AgentToken,
    AuthorizationCode,
    DeviceCode,
    RefreshToken,
    UsedAssertion,
)

# A code that is shown again ends what came of it, and a refresh token likewise: for so long after
# their end they are known for what they were.
CODES_KEPT, GRANTS_KEPT = timedelta(days=1), timedelta(days=30)
# In one run: an hour later there is another one.
REMOVED_MAX = 1_000


def remove() -> None:
    """Codes that were used or never redeemed, refresh tokens of ended grants, assertions that
    count once, and registered clients that nobody used. The grants themselves stay: calls name
    them."""
    now = timezone.now()
    _remove(AuthorizationCode, Q(expires_at__lt=now - CODES_KEPT))
    _remove(DeviceCode, Q(expires_at__lt=now - CODES_KEPT))
    _remove(UsedAssertion, Q(expires_at__lt=now))
    ended = AgentToken.objects.exclude(resource="").filter(
        Q(revoked_at__lt=now - GRANTS_KEPT) | Q(expires_at__lt=now - GRANTS_KEPT)
    )
    _remove(RefreshToken, Q(token__in=ended) | Q(expires_at__lt=now - GRANTS_KEPT))
    clients.forget_unused()


def _remove(
    model: type[AuthorizationCode | DeviceCode | RefreshToken | UsedAssertion], ended: Q
) -> None:
    rows = model._default_manager.filter(ended).order_by("pk")
    some: list[int] = list(rows.values_list("pk", flat=True)[:REMOVED_MAX])
    model._default_manager.filter(pk__in=some).delete()
