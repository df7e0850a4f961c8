"""Forms of a server's sign-in, for operators, and of people's own keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Agent
from accounts.teams import every_team
from registry.models import CredentialOwner, Server, ServerClient

_OWNERS: dict[str, Callable[[], Iterable[tuple[int, str]]]] = {
    "team": lambda: every_team().values_list("pk", "name"),
    "agent": lambda: Agent.objects.filter(enabled=True).values_list("pk", "name"),
}


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
        help_text=gettext_lazy("For keys of users, teams or agents: the header that they go into."),
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

    @property
    def wanted(self) -> dict[str, Any]:
        """For clients.set_sign_in; the form must be valid."""
        given = dict(self.cleaned_data)
        return {"mode": given.pop("sign_in"), **given}

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        mode = given.get("sign_in", "")
        if mode.startswith("key-") and not given.get("header"):
            self.add_error("header", _("Enter the header that keys go into."))
        if given.get("client_secret") and not given.get("client_id"):
            self.add_error("client_id", _("A client secret belongs to a client ID."))
        return given


class OwnerForm(forms.Form):
    """For which team or agent something is connected."""

    owner = forms.ChoiceField()

    def __init__(self, server: Server, posted: Any = None) -> None:
        super().__init__(posted)
        kind = server.credential_of
        self._owners = {str(pk): name for pk, name in _OWNERS[kind]()} if kind in _OWNERS else {}
        field = self.fields["owner"]
        assert isinstance(field, forms.ChoiceField)
        field.label = _("Agent") if kind == "agent" else _("Team")
        field.choices = [("", _("Choose …")), *self._owners.items()]
        self._kind = kind

    @property
    def chosen(self) -> CredentialOwner:
        """The form must be valid."""
        pk = self.cleaned_data["owner"]
        return CredentialOwner(self._kind, int(pk), self._owners[pk])


class KeyForm(forms.Form):
    key = forms.RegexField(
        # As headers can carry it.
        r"\A[\x21-\x7e](?:[\x20-\x7e]{0,7998}[\x21-\x7e])?\Z",
        label=gettext_lazy("Your key"),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        error_messages={"invalid": gettext_lazy("The key is not printable ASCII on one line.")},
    )


class OwnedKeyForm(KeyForm):
    """The key of a team or an agent, which an operator enters."""

    def __init__(self, posted: Any = None) -> None:
        super().__init__(posted)
        self.fields["key"].label = _("Key")
