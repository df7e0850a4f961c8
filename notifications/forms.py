from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from core.outbound import AddressRefused
from notifications.chat_formats import check_address, hint
from notifications.events import CHOICES
from notifications.guarded_requests import check_url
from notifications.models import Webhook


class EventsField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=CHOICES, required=False, **kwargs)
        self.widget.attrs["class"] = "whole"


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    """A chat's address is a secret: it is in `address` once valid, and in no page again."""

    address = ""
    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        widget=forms.URLInput,
        help_text=_(
            "https:// only. Private networks are rejected unless the host allows them. Of a chat’s "
            "URL, only its host and its last 4 characters are shown afterwards."
        ),
    )
    events = EventsField(label=_("Events"), help_text=_("None chosen means all of them."))

    class Meta:
        model = Webhook
        fields = ["name", "format", "language", "url", "events"]
        labels = {"format": _("Send to"), "language": _("Language of messages in a chat")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
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
            check_url(given)
            check_address(chat, given)
        except AddressRefused as error:
            # The sentence may have the whole of it.
            said = str(error).replace(given, "…") if chat else str(error)
            raise ValidationError(said) from None
        if not chat:
            return given
        self.address = given
        return hint(given)

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


class DevicesForm(forms.Form):
    prefix = "devices"
    events = EventsField(label=_("Notify devices when"))
