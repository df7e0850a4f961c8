"""Why a token of an agent opens nothing: for the record, never for whoever shows it."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from accounts import refusals
from accounts.models import AgentToken
from accounts.tokens import is_token, parse
from core.english import gettext as _
from core.request_rate import RequestRate

# Of one address in a minute: beyond that nothing is looked up for what it shows.
LOOK_UPS = RequestRate(60, 60.0)


def note(token: str, address: str, resource: str = "") -> None:
    """Writes down that a token that is stored here was rejected. Any other text is none."""
    shown = parse(token)
    if shown is None:
        refusals.access_token(address, _("It is no access token."), resource=resource)
        return
    try:
        rows = AgentToken.objects.select_related("agent__owner").filter(issuer="")
        row = rows.filter(public_id=shown.public_id).first()
    except (DatabaseError, InterfaceError):
        # It is rejected all the same.
        return
    if row is None:
        refusals.access_token(address, _("The agent token is not known."), resource=resource)
        return
    why = _why(row, has_secret=is_token(token, shown, bytes(row.digest)))
    agent = row.agent.pk, row.agent.name
    refusals.access_token(address, why, agent=agent, resource=resource, token=row.public_id)


def _why(row: AgentToken, *, has_secret: bool) -> str:
    if not has_secret:
        return _("The secret of the agent token is wrong.")
    if row.revoked_at is not None:
        return _("The agent token was revoked.")
    if row.expires_at <= timezone.now():
        return _("The agent token has expired.")
    return _("The token's agent, or the agent's owner, is disabled.")
