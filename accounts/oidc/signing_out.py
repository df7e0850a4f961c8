"""Signing out at the provider too, and being signed out from there.

Source: OpenID Connect RP-Initiated Logout 1.0; Back-Channel Logout 1.0.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone
from yarl import URL

from accounts import sessions
from accounts.models import BrowserSession, UsedLogoutToken
from accounts.oidc.metadata import ProviderFailed, metadata
from accounts.oidc.providers import IdentityProvider
from accounts.oidc.signed_tokens import LOGOUT_MAX_AGE_S, SKEW_S
from accounts.sessions import ProviderSession
from core.english import gettext as _

# In the session of whoever has just signed out here: what was behind the one that ended.
ENDED = "ended_at_provider"


def provider_session(request: HttpRequest) -> ProviderSession | None:
    kept = request.session.get(sessions.AT_PROVIDER)
    return ProviderSession(**kept) if kept else None


def url_at_provider(provider: IdentityProvider, id_token: str) -> str:
    """Where the browser goes to sign out there and come back. Raises ProviderFailed."""
    endpoint = metadata(provider).endpoint("end_session_endpoint")
    if not endpoint:
        raise ProviderFailed(_("The provider has no page for signing out. Sign out there."))
    query = {
        "id_token_hint": id_token,
        "client_id": provider.client_id,
        "post_logout_redirect_uri": f"{settings.PUBLIC_URL}/sign-in/",
    }
    return str(URL(endpoint).update_query(query))


@transaction.atomic
def end_sessions(provider: IdentityProvider, claims: dict[str, Any]) -> int:
    """Ends the sessions that a checked logout token names; returns how many. Raises ProviderFailed
    for a token that was used before."""
    _use(provider, claims)
    found = BrowserSession.objects.filter(identity__issuer=provider.issuer)
    if subject := claims.get("sub"):
        found = found.filter(identity__subject=subject)
    if sid := claims.get("sid"):
        found = found.filter(provider_sid=sid[:255])
    reason = _("The identity provider signed the person out.")
    return sessions.end_by(provider.actor, found, reason=reason)


def _use(provider: IdentityProvider, claims: dict[str, Any]) -> None:
    now = timezone.now()
    UsedLogoutToken.objects.filter(expires_at__lt=now).delete()
    digest = hashlib.sha256(f"{provider.issuer}\n{claims['jti']}".encode()).hexdigest()
    until = datetime.fromtimestamp(int(claims["iat"]) + LOGOUT_MAX_AGE_S + 2 * SKEW_S, UTC)
    try:
        with transaction.atomic():
            UsedLogoutToken.objects.create(digest=digest, expires_at=until)
    except IntegrityError as error:
        raise ProviderFailed(_("The token was used before.")) from error
