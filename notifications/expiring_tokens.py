"""Tokens that expire soon are told once, while they are still valid: each is an entry."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts.models import AgentToken, ScimToken, ServiceToken, User
from accounts.services import OVERLAP
from audit.services import SYSTEM, record
from core.english import gettext as _
from notifications.models import ToldExpiry

WITHIN = timedelta(days=7)
# One made for a day or two needs no warning.
SHORTEST = timedelta(days=14)


class ExpiringToken(NamedTuple):
    """`of`: the name of the agent, the service account, or the issuer."""

    kind: str
    name: str
    public_id: str
    of: str
    agent: tuple[int, str]
    person: User
    created_at: datetime
    expires_at: datetime

    @property
    def needs_warning(self) -> bool:
        """Not for a rotated token, which ends within OVERLAP: its replacement is known."""
        is_rotated = self.expires_at <= timezone.now() + OVERLAP
        return not is_rotated and self.expires_at - self.created_at >= SHORTEST


def tell() -> int:
    """How many were told."""
    ToldExpiry.objects.filter(expires_at__lt=timezone.now()).delete()
    told = 0
    for token in _expiring(timezone.now() + WITHIN):
        told += token.needs_warning and _tell(token)
    return told


@transaction.atomic
def _tell(token: ExpiringToken) -> bool:
    _row, is_new = ToldExpiry.objects.get_or_create(
        public_id=token.public_id, expires_at=token.expires_at
    )
    if is_new:
        record(
            "token.expiring",
            actor=SYSTEM,
            agent=token.agent,
            reason=_("It expires within seven days."),
            kind=token.kind,
            token=token.name,
            token_id=token.public_id,
            of=token.of,
            person=token.person.username,
            person_id=token.person.pk,
            expires_at=token.expires_at.isoformat(),
        )
    return is_new


def _expiring(until: datetime) -> Iterator[ExpiringToken]:
    # A client that a user signed in asks by itself for a new sign-in.
    agents = AgentToken.objects.valid().filter(expires_at__lte=until, resource="")
    for one in agents.select_related("agent__owner"):
        agent = one.agent
        yield _token(one, "agent", agent.name, agent.owner, (agent.pk, agent.name))
    services = ServiceToken.objects.valid().filter(expires_at__lte=until)
    for account_token in services.select_related("account", "created_by"):
        yield _token(account_token, "service", account_token.account.name, account_token.created_by)
    providers = ScimToken.objects.valid().filter(expires_at__lte=until)
    for scim_token in providers.select_related("created_by"):
        yield _token(scim_token, "scim", scim_token.issuer, scim_token.created_by)


def _token(
    token: AgentToken | ServiceToken | ScimToken,
    kind: str,
    of: str,
    person: User,
    agent: tuple[int, str] = (0, ""),
) -> ExpiringToken:
    return ExpiringToken(
        kind,
        str(token),
        token.public_id,
        of,
        agent,
        person,
        token.created_at,
        token.expires_at,
    )
