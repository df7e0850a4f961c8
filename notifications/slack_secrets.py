"""A Slack app's two secrets: the bot's token, and the secret with which Slack signs."""

from __future__ import annotations

import hashlib

from core import seal
from core.english import gettext as _
from core.sealed_fields import SealedField
from notifications.models import SlackApp
from notifications.outcomes import Impossible

TOKEN_PURPOSE = "slack token"  # noqa: S105 a purpose, not one
SIGNING_PURPOSE = "slack signing secret"


def set_token(app: SlackApp, token: str) -> None:
    app.sealed_token = seal.seal(TOKEN_PURPOSE, token.encode(), place=_place(app))


def set_signing_secret(app: SlackApp, secret: str) -> None:
    app.sealed_signing_secret = seal.seal(SIGNING_PURPOSE, secret.encode(), place=_place(app))


def token(app: SlackApp) -> str:
    """Raises Impossible where this installation cannot open it."""
    return _opened(app, TOKEN_PURPOSE, bytes(app.sealed_token))


def signing_secret(app: SlackApp) -> str:
    """Raises Impossible where this installation cannot open it."""
    return _opened(app, SIGNING_PURPOSE, bytes(app.sealed_signing_secret))


def signing_digest(app: SlackApp) -> str:
    """By which a link knows the app. Raises Impossible, as above."""
    return hashlib.sha256(f"{SIGNING_PURPOSE}:{signing_secret(app)}".encode()).hexdigest()


def _opened(app: SlackApp, purpose: str, sealed: bytes) -> str:
    try:
        return seal.unseal(purpose, sealed, place=_place(app)).decode()
    except seal.Unsealable as error:
        raise Impossible(_("Its secrets cannot be opened here: enter them again.")) from error


def _place(app: SlackApp) -> str:
    return f"notifications_slackapp|{app.pk}"


SEALED = (
    SealedField(SlackApp, "sealed_token", TOKEN_PURPOSE, _place),
    SealedField(SlackApp, "sealed_signing_secret", SIGNING_PURPOSE, _place),
)
