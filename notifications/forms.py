from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from core.outbound import AddressRefused
from notifications.chat_formats import check_address, hint
from notifications.events import CHOICES, WEBHOOK_CHOICES
from notifications.guarded_requests import check_url
from notifications.models import Webhook
from notifications.outcomes import Failed
from notifications.quiet_hours import MUTE_MAX
from notifications.telegram import complete


class EventsField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, choices: Any = CHOICES, **kwargs: Any) -> None:
        super().__init__(choices=choices, required=False, **kwargs)
        self.widget.attrs["class"] = "whole"


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    """A chat's address is a secret: it is in `address` once valid, and in no page again.
    `found`: the chat that a Telegram bot's token led to."""

    address = ""
    found = ""
    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        # A browser takes no bot's token for a URL.
        widget=forms.TextInput(
            {"inputmode": "url", "autocapitalize": "none", "autocomplete": "off"}
        ),
        help_text=_("https:// only. Private networks are rejected unless the host allows them."),
    )
    events = EventsField(
        WEBHOOK_CHOICES, label=_("Events"), help_text=_("None chosen means all of them.")
    )

    class Meta:
        model = Webhook
        fields = ["name", "format", "language", "url", "events"]
        labels = {"format": _("Send to"), "language": _("Language of messages in a chat")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.initial["language"] = get_language()
            # A Slack app has a form of its own.
            choices = [one for one in Webhook.Format.choices if one[0] != Webhook.Format.SLACK_APP]
            self.fields["format"].choices = choices  # type: ignore[attr-defined]
            return
        del self.fields["format"]
        if self.instance.is_chat:
            self.initial["url"] = ""
            self.fields["url"].required = False
            self.fields["url"].help_text = _("Left empty, it stays %s.") % self.instance.url
        else:
            del self.fields["language"]

    def clean_url(self) -> str:
        given, chat = str(self.cleaned_data["url"]), self._chat()
        if chat and not given:
            return str(self.instance.url)
        try:
            address = self._whole(chat, given)
        except (AddressRefused, Failed) as error:
            # The sentence may have the whole of it.
            said = str(error).replace(given, "…") if chat else str(error)
            raise ValidationError(said) from None
        if not chat:
            return address
        self.address = address
        return hint(address)

    def _whole(self, chat: str, given: str) -> str:
        """Raises AddressRefused and Failed."""
        if chat == Webhook.Format.TELEGRAM:
            given, self.found = complete(given)
        check_url(given)
        check_address(chat, given)
        return given

    def _chat(self) -> str:
        """The chat's format; "" for Standard Webhooks."""
        chosen = str(self.cleaned_data.get("format", self.instance.format))
        return "" if chosen == Webhook.Format.STANDARD else chosen

    def clean(self) -> dict[str, Any]:
        if self._chat():
            # A page with errors does not have it either.
            self.data = self.data.copy()  # type: ignore[attr-defined]
            self.data["url"] = ""  # type: ignore[index]
        return self.cleaned_data


class MailForm(forms.Form):
    address = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        help_text=_("A new one counts once you have followed the link that is sent there."),
    )
    events = EventsField(label=_("Send mail when"))


class QuietHoursForm(forms.Form):
    prefix = "quiet"
    begins = forms.TimeField(
        label=_("Quiet from"), required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M")
    )
    ends = forms.TimeField(
        label=_("Quiet until"), required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M")
    )

    def clean(self) -> dict[str, Any]:
        begins, ends = self.cleaned_data.get("begins"), self.cleaned_data.get("ends")
        if not self.errors and (begins is None) != (ends is None):
            raise ValidationError(_("Give both times, or neither."))
        if begins is not None and begins == ends:
            raise ValidationError(_("The two times are the same. To get nothing at all, mute."))
        return self.cleaned_data


class MuteForm(forms.Form):
    prefix = "mute"
    until = forms.DateTimeField(
        label=_("Mute until"),
        widget=forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M"),
    )

    def clean_until(self) -> datetime:
        until: datetime = self.cleaned_data["until"]
        if not timezone.now() < until <= timezone.now() + MUTE_MAX:
            raise ValidationError(_("Choose a time within the next 30 days."))
        return until


class DevicesForm(forms.Form):
    prefix = "devices"
    events = EventsField(label=_("Notify devices when"))
