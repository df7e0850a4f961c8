"""Provisioning by identity providers (SCIM): their tokens, for administrators."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import refusals
from accounts.actors import AccountRefused
from accounts.forms import ScimTokenForm
from accounts.http import ConsoleRequest
from accounts.models import ScimGroup, ScimToken, ScimUser
from accounts.oidc.providers import IdentityProvider, UnknownProvider, provider, provider_of
from accounts.oidc.providers import usable_providers as providers
from accounts.scim import tokens
from accounts.token_lists import open_first
from core.http import page

MANAGE = "accounts.change_user"
ADDRESS = "/scim/v2"


# Each with why the person who looks may not confirm it.
TokenRows = list[tuple[ScimToken, str]]


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A provider, and what it provisions."""

    provider: IdentityProvider
    users: int
    groups: int
    tokens: TokenRows
    form: ScimTokenForm


@page(MANAGE)
def provisioning(request: ConsoleRequest) -> HttpResponse:
    return _show(request)


@page(MANAGE, "POST")
def issue_token(request: ConsoleRequest, slug: str) -> HttpResponse:
    """Draws the page itself, without a redirect: the token's text is kept nowhere."""
    at = _provider(slug)
    form = ScimTokenForm(request.POST, prefix=slug)
    if not form.is_valid():
        return _show(request, wrong=form)
    try:
        made, text = tokens.issue(at, by=request.user, days=form.cleaned_data["days"])
    except AccountRefused as error:
        messages.error(request, str(error))
        return redirect("accounts:provisioning")
    return _show(request, made, text)


@page(MANAGE, "POST")
def rotate_token(request: ConsoleRequest, public_id: str) -> HttpResponse:
    """Draws the page itself, as `issue_token` does."""
    token = get_object_or_404(ScimToken.objects.valid(), public_id=public_id)
    try:
        made, text = tokens.rotate(token, provider_of(token.issuer), by=request.user)
    except (AccountRefused, UnknownProvider) as error:
        messages.error(request, str(error))
        return redirect("accounts:provisioning")
    return _show(request, made, text)


@page(MANAGE, "POST")
def confirm_token(request: ConsoleRequest, public_id: str) -> HttpResponse:
    token = get_object_or_404(ScimToken, public_id=public_id)
    try:
        tokens.confirm(token, by=request.user)
    except AccountRefused as error:
        refusals.confirmation(request, token, error)
        messages.error(request, str(error))
    else:
        messages.success(request, _("%s is confirmed.") % token)
    return redirect("accounts:provisioning")


@page(MANAGE, "POST")
def revoke_token(request: ConsoleRequest, public_id: str) -> HttpResponse:
    token = get_object_or_404(ScimToken, public_id=public_id)
    if tokens.revoke(token, by=request.user):
        messages.success(request, _("%s is revoked: nothing is provisioned with it.") % token)
    else:
        messages.info(request, _("%s was revoked before.") % token)
    return redirect("accounts:provisioning")


def _provider(slug: str) -> IdentityProvider:
    try:
        return provider(slug)
    except UnknownProvider as error:
        raise Http404(str(error)) from error


def _show(
    request: ConsoleRequest,
    made: ScimToken | None = None,
    text: str = "",
    *,
    wrong: ScimTokenForm | None = None,
) -> HttpResponse:
    known = providers()
    context = {
        "section": "provisioning",
        "address": f"{settings.PUBLIC_URL}{ADDRESS}",
        "provisionings": [_provisioning(request, one, wrong) for one in known],
        "shut_out": _shut_out(request, known),
        "made": made,
        "issued": text,
    }
    return render(request, "accounts/provisioning.html", context)


def _provisioning(
    request: ConsoleRequest, at: IdentityProvider, wrong: ScimTokenForm | None
) -> Provisioning:
    issued = ScimToken.objects.filter(issuer=at.issuer)
    form = wrong if wrong is not None and wrong.prefix == at.slug else ScimTokenForm(prefix=at.slug)
    return Provisioning(
        at,
        ScimUser.objects.filter(issuer=at.issuer, deleted_at=None).count(),
        ScimGroup.objects.filter(issuer=at.issuer).count(),
        _rows(request, issued),
        form,
    )


def _shut_out(
    request: ConsoleRequest, known: list[IdentityProvider]
) -> list[tuple[str, TokenRows]]:
    """By issuer, tokens that open nothing now because no usable file names it, and would open what
    they did as soon as one does again."""
    open_ = ScimToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    others = open_.exclude(issuer__in=[one.issuer for one in known])
    issuers = others.order_by("issuer").values_list("issuer", flat=True).distinct()
    return [(issuer, _rows(request, others.filter(issuer=issuer))) for issuer in issuers]


def _rows(request: ConsoleRequest, issued: QuerySet[ScimToken]) -> TokenRows:
    shown = open_first(issued.select_related("created_by"))
    return [(one, tokens.why_not_confirm(one, request.user)) for one in shown]
