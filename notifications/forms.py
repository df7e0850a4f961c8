from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from core.outbound import AddressRefused
from notifications.events import CHOICES
from notifications.models import Webhook
from notifications.webhook_requests import check_url


class EventsField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=CHOICES, required=False, **kwargs)
        self.widget.attrs["class"] = "whole"


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    url = forms.CharField(
        label=_("URL"),
        max_length=500,
        widget=forms.URLInput,
        help_text=_("https:// only. Private networks are rejected unless the host allows them."),
    )
    events = EventsField(label=_("Events"), help_text=_("None chosen means all of them."))

    class Meta:
        model = Webhook
        fields = ["name", "url", "events"]

    def clean_url(self) -> str:
        try:
            check_url(self.cleaned_data["url"])
        except AddressRefused as error:
            raise ValidationError(str(error)) from error
        return str(self.cleaned_data["url"])


class MailForm(forms.Form):
    address = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        help_text=_("A new one counts once you have followed the link that is sent there."),
    )
    events = EventsField(label=_("Send mail when"))
