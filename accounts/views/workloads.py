"""The page on which an operator binds an agent to a program without a user."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest
from accounts.models import Agent, WorkloadIdentity
from accounts.views.agents import visible
from accounts.workloads import identities
from accounts.workloads.public_keys import TEXT_MAX
from core.http import page

KEY, ISSUER = WorkloadIdentity.Kind.KEY, WorkloadIdentity.Kind.ISSUER
_KEYS_HINT = gettext_lazy("PEM, a JWK or a JWKS; RSA with 2,048 bits or more, EC or Ed25519.")


class OwnKeyForm(forms.Form):
    """A program that signs with a key of its own."""

    keys = forms.CharField(
        label=gettext_lazy("Public key"),
        max_length=TEXT_MAX,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text=_KEYS_HINT,
    )


class WorkloadIssuerForm(forms.Form):
    """A program whose tokens an issuer signs."""

    issuer = forms.CharField(
        label=gettext_lazy("Issuer"),
        max_length=identities.TEXT_MAX,
        help_text=gettext_lazy(
            "Exactly as in “iss”, such as https://token.actions.githubusercontent.com; of SPIFFE, "
            "the trust domain, such as spiffe://example.org."
        ),
    )
    audience = forms.CharField(
        label=gettext_lazy("Audience"),
        max_length=identities.TEXT_MAX,
        help_text=gettext_lazy("The token's “aud” is exactly this, and nothing besides."),
    )
    subject = forms.CharField(
        label=gettext_lazy("Subject"),
        max_length=identities.TEXT_MAX,
        required=False,
        help_text=gettext_lazy("Exactly as in “sub”. Empty: only the claims are compared."),
    )
    claims = forms.CharField(
        label=gettext_lazy("Claims"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy("One a line, such as repository=example/app. Each has to be equal."),
    )
    keys_url = forms.CharField(
        label=gettext_lazy("Address of its keys"),
        max_length=identities.TEXT_MAX,
        required=False,
        help_text=gettext_lazy("Empty: as its discovery document says."),
    )
    keys = forms.CharField(
        label=gettext_lazy("Its public keys"),
        max_length=TEXT_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Only where the keys cannot be read from an address. You replace them yourself when "
            "the issuer does."
        ),
    )

    def clean_claims(self) -> dict[str, str]:
        """By name."""
        lines = [line for line in self.cleaned_data["claims"].splitlines() if line.strip()]
        pairs = [line.partition("=") for line in lines]
        if any(not equals for _name, equals, _value in pairs):
            raise forms.ValidationError(_("Write each claim as name=value."))
        names = [name.strip() for name, _equals, _value in pairs]
        if len(set(names)) < len(names):
            raise forms.ValidationError(_("A claim is there twice."))
        return {name.strip(): value.strip() for name, _equals, value in pairs}


@page("accounts.change_agenttoken", "GET", "HEAD", "POST")
def add_workload(request: ConsoleRequest, name: str) -> HttpResponse:
    """Not for owners without the permission: an issuer's tokens could be another agent's."""
    agent = get_object_or_404(visible(request.user), name=name)
    kind = request.POST.get("kind", "")
    given = request.POST if request.method == "POST" else None
    own = OwnKeyForm(given if kind == KEY else None, prefix="own")
    issuer = WorkloadIssuerForm(
        given if kind == ISSUER else None,
        prefix="issuer",
        initial={"audience": settings.PUBLIC_URL},
    )
    form = issuer if kind == ISSUER else own
    if form.is_valid() and (made := _bound(request, agent, kind, form)):
        said = _("“%(agent)s” is bound. The program's client id is %(id)s.")
        names = {"agent": agent.name, "id": made.token.client_id}
        messages.success(request, said % names)
        return redirect("accounts:agent", name)
    context: dict[str, Any] = {"section": "agents", "agent": agent, "own": own, "issuer": issuer}
    return render(request, "accounts/workload_add.html", context)


def _bound(
    request: ConsoleRequest, agent: Agent, kind: str, form: forms.Form
) -> WorkloadIdentity | None:
    """None where it cannot be, which the form then says."""
    given = form.cleaned_data
    try:
        if kind == ISSUER:
            return identities.bind_issuer(agent, **given, by=request.user)
        return identities.bind_key(
            agent, issuer=settings.PUBLIC_URL, keys=given["keys"], by=request.user
        )
    except AccountRefused as error:
        form.add_error(None, str(error))
        return None
