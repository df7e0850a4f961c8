from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from notifications import slack_api
from notifications.events import WEBHOOK_CHOICES
from notifications.forms import EventsField
from notifications.models import SlackApp, Webhook
from notifications.outcomes import Failed
from notifications.slack_api import SlackIdentity

_CHANNEL_ID = re.compile(r"[CG][A-Z0-9]{5,30}")
# Source: slack.com/help, names of channels: up to 80 letters without capitals, digits, - and _.
_CHANNEL_NAME = re.compile(r"#[\w-]{1,80}")


class SlackAppForm(forms.ModelForm):  # type: ignore[type-arg]
    """Its secrets are in no page again. `identity`: the workspace of a token that was given."""

    identity: SlackIdentity | None = None
    token = forms.CharField(
        label=_("Bot token"),
        max_length=255,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Install App → Bot User OAuth Token. It begins with xoxb-."),
    )
    signing_secret = forms.CharField(
        label=_("Signing secret"),
        max_length=128,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Basic Information → App Credentials → Signing Secret."),
    )
    channel = forms.CharField(
        label=_("Channel"),
        max_length=81,
        help_text=_(
            "The name of a public channel, such as #approvals. Of a private one the ID at the end "
            "of its details in Slack, which begins with C or G."
        ),
    )
    takes_denials = forms.BooleanField(label=_("People may deny in Slack"), required=False)
    takes_comments = forms.BooleanField(label=_("People may comment in Slack"), required=False)
    events = EventsField(
        WEBHOOK_CHOICES, label=_("Events"), help_text=_("None chosen means all of them.")
    )

    class Meta:
        model = Webhook
        fields = ["name", "language", "events"]
        labels = {"language": _("Language of messages in a chat")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.initial["language"] = get_language()
            return
        app = self.instance.slack_app
        for name in ("channel", "takes_denials", "takes_comments"):
            self.initial[name] = getattr(app, name)
        for name in ("token", "signing_secret"):
            self.fields[name].required = False
            self.fields[name].help_text = _("Left empty, it stays as it is.")

    def clean_channel(self) -> str:
        given = str(self.cleaned_data["channel"]).strip()
        if _CHANNEL_ID.fullmatch(given):
            return given
        name = f"#{given.removeprefix('#')}".lower()
        if not _CHANNEL_NAME.fullmatch(name):
            raise ValidationError(_("Enter a channel’s name or its ID: #approvals, C0123456789."))
        return name

    def clean(self) -> dict[str, Any]:
        """Asks Slack, once all else is right: a wrong token shows now, not at the first message."""
        token = self.cleaned_data["token"] = str(self.cleaned_data.get("token", "")).strip()
        if token and not self.errors:
            try:
                self.identity = slack_api.identify(token)
            except Failed as error:
                self.add_error("token", str(error))
        return self.cleaned_data

    def fill(self, app: SlackApp) -> None:
        """Fills in the app, without its secrets."""
        for name in ("channel", "takes_denials", "takes_comments"):
            setattr(app, name, self.cleaned_data[name])
        if self.identity:
            app.team_id, app.team_name = self.identity
