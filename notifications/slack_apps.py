"""Slack apps of webhooks: each change with its entry, in one transaction."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.models import User
from notifications import services, slack_secrets
from notifications.models import SlackApp, Webhook


@transaction.atomic
def save(
    webhook: Webhook, app: SlackApp, *, by: User, token: str = "", signing_secret: str = ""
) -> None:
    """A new one, or a change; without them it keeps its secrets."""
    is_new = webhook._state.adding
    webhook.format = Webhook.Format.SLACK_APP
    webhook.url = app.page_url
    if is_new:
        webhook.created_by = by
        webhook.sealed_secret = b""
    webhook.takes_arguments = by.has_perm(services.VIEW_PAYLOAD)
    webhook.save()
    app.webhook = webhook
    if token:
        slack_secrets.set_token(app, token)
    if signing_secret:
        slack_secrets.set_signing_secret(app, signing_secret)
    app.save()
    action = "webhook.added" if is_new else "webhook.changed"
    services.note(action, webhook, by, **_facts(app, token=token, signing_secret=signing_secret))


def _facts(app: SlackApp, **secrets: str) -> dict[str, Any]:
    """For the entry: of the secrets only which ones were given."""
    return {
        "team": app.team_id,
        "channel": app.channel,
        "takes_denials": app.takes_denials,
        "takes_comments": app.takes_comments,
        "given": [name for name, value in secrets.items() if value],
    }
