"""Forms of a server's sign-in, for operators, and of people's own keys."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Server, ServerClient

_OAUTH = (Server.SignIn.SHARED, Server.SignIn.PERSON)


class ServerSignInForm(forms.Form):
    sign_in = forms.ChoiceField(
        label=gettext_lazy("Credential of calls"),
        choices=Server.SignIn.choices,
        required=False,
        widget=forms.RadioSelect,
    )
    client_id = forms.CharField(
        label=gettext_lazy("Client ID"),
        max_length=2000,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "For OAuth. Empty: Countersign registers itself where the authorization server lets it."
        ),
    )
    client_secret = forms.CharField(
        label=gettext_lazy("Client secret"),
        max_length=2000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Kept sealed and never shown again."),
    )
    scopes = forms.CharField(
        label=gettext_lazy("Scopes"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy("For OAuth, beside those that the server names."),
    )
    header = forms.CharField(
        label=gettext_lazy("Header"),
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "X-Api-Key"}),
        help_text=gettext_lazy("For each person's own key: the header that it goes into."),
    )

    @classmethod
    def of(cls, server: Server, posted: Any = None) -> ServerSignInForm:
        client = ServerClient.objects.filter(server=server).first()
        now: dict[str, Any] = {"sign_in": server.sign_in}
        if client is not None:
            given = client.registration == ServerClient.Registration.GIVEN
            now |= {"client_id": client.client_id if given else "", "header": client.header}
            now["scopes"] = " ".join(client.scopes)
        return cls(posted, initial=now)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        mode = given.get("sign_in", "")
        if mode == Server.SignIn.KEY and not given.get("header"):
            self.add_error("header", _("Enter the header that people's keys go into."))
        if given.get("client_secret") and not given.get("client_id"):
            self.add_error("client_id", _("A client secret belongs to a client ID."))
        return given


class KeyForm(forms.Form):
    key = forms.RegexField(
        # As headers can carry it.
        r"\A[\x21-\x7e](?:[\x20-\x7e]{0,7998}[\x21-\x7e])?\Z",
        label=gettext_lazy("Your key"),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        error_messages={"invalid": gettext_lazy("The key is not printable ASCII on one line.")},
    )
