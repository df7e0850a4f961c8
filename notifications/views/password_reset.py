"""The page that asks where to send a link for a new password."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.attempts import TooManyAttempts
from notifications.password_reset import request_link

TEMPLATE = "notifications/password_reset.html"


class AddressForm(forms.Form):
    address = forms.EmailField(label=_("E-mail address"), max_length=254)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.fields["address"].widget.attrs["autocomplete"] = "email"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest) -> HttpResponse:
    form = AddressForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, TEMPLATE, {"form": form})
    try:
        request_link(request, form.cleaned_data["address"])
    except TooManyAttempts as error:
        return render(request, TEMPLATE, {"form": form, "error": str(error)}, status=429)
    return render(request, TEMPLATE, {"is_sent": True})
