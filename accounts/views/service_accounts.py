"""Service accounts: made by administrators, with tokens that are shown once."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import service_accounts
from accounts.actors import AccountRefused
from accounts.forms import ScopesForm, ServiceAccountForm, TokenForm
from accounts.http import ConsoleRequest, reason_in
from accounts.models import Proof, ServiceAccount
from accounts.permission_names import PERMISSION_NAMES
from accounts.token_lists import open_first
from accounts.views.scope_confirmations import confirmed
from core.http import page
from core.paging import paged

CHANGE = "accounts.change_serviceaccount"


@page("accounts.view_serviceaccount")
def service_account_list(request: ConsoleRequest) -> HttpResponse:
    valid = Q(tokens__revoked_at=None, tokens__expires_at__gt=timezone.now())
    shown = ServiceAccount.objects.select_related("created_by").annotate(
        valid_tokens=Count("tokens", filter=valid), last_used=Max("tokens__last_used_at")
    )
    context = {"section": "service_accounts", "page": paged(shown, "name", request.GET)}
    return render(request, "accounts/service_accounts.html", context)


@page("accounts.add_serviceaccount", "GET", "HEAD", "POST")
def add_service_account(request: ConsoleRequest) -> HttpResponse:
    form = ServiceAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = service_accounts.create(
                given["name"], purpose=given["purpose"], scopes=given["scopes"], by=request.user
            )
        except AccountRefused as error:
            form.add_error("scopes", str(error))
        else:
            messages.success(request, _("“%s” is there. Give it a token.") % made.name)
            return redirect("accounts:service_account", made.name)
    context = {"section": "service_accounts", "form": form}
    return render(request, "accounts/service_account_add.html", context)


@page("accounts.view_serviceaccount")
def service_account(request: ConsoleRequest, name: str) -> HttpResponse:
    return _show(request, _account(name))


@page(CHANGE, "POST")
def set_scopes(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = _account(name)
    form = ScopesForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose at least one permission."))
        return redirect("accounts:service_account", name)
    scopes = form.cleaned_data["scopes"]

    def save(proof: Proof | None) -> HttpResponse:
        service_accounts.set_scopes(shown, scopes, by=request.user, proof=proof)
        messages.success(request, _("The permissions of “%s” are as chosen.") % name)
        return redirect("accounts:service_account", name)

    added = [scope for scope in scopes if scope not in shown.scopes]
    return confirmed(request, shown, scopes, "set permissions", save, of=added)


@page(CHANGE, "POST")
def set_enabled(request: ConsoleRequest, name: str) -> HttpResponse:
    enabled = request.POST.get("enabled") == "1"
    service_accounts.set_enabled(
        _account(name), enabled, by=request.user, reason=reason_in(request)
    )
    said = _("“%s” is on.") if enabled else _("“%s” is off: its tokens open nothing.")
    messages.success(request, said % name)
    return redirect("accounts:service_account", name)


@page(CHANGE, "POST")
def issue_token(request: ConsoleRequest, name: str) -> HttpResponse:
    """Draws the page itself, without a redirect: the token's text is kept nowhere."""
    shown = _account(name)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _show(request, shown, form)
    days = form.cleaned_data["days"]

    def issue(proof: Proof | None) -> HttpResponse:
        text = service_accounts.issue_token(shown, by=request.user, days=days, proof=proof)
        return _show(request, shown, issued=text)

    return confirmed(request, shown, shown.scopes, f"create a token for {days} days", issue)


@page(CHANGE, "POST")
def rotate_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    """Draws the page itself, as `issue_token` does."""
    shown = _account(name)
    token = get_object_or_404(shown.tokens.valid(), public_id=public_id)
    token.account = shown

    def rotate(proof: Proof | None) -> HttpResponse:
        text = service_accounts.rotate_token(token, by=request.user, proof=proof)
        messages.success(request, _("%s works for one more hour.") % token)
        return _show(request, shown, issued=text)

    return confirmed(request, shown, shown.scopes, f"rotate token {token}", rotate)


@page(CHANGE, "POST")
def revoke_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    shown = _account(name)
    token = get_object_or_404(shown.tokens, public_id=public_id)
    token.account = shown
    if service_accounts.revoke_token(token, by=request.user, reason=reason_in(request)):
        messages.success(request, _("%s is revoked: it opens nothing any more.") % token)
    else:
        messages.info(request, _("%s was revoked before.") % token)
    return redirect("accounts:service_account", name)


def _account(name: str) -> ServiceAccount:
    return get_object_or_404(ServiceAccount.objects.select_related("created_by"), name=name)


def _show(
    request: ConsoleRequest,
    shown: ServiceAccount,
    form: TokenForm | None = None,
    *,
    issued: str = "",
) -> HttpResponse:
    context = {
        "section": "service_accounts",
        "account": shown,
        "tokens": open_first(shown.tokens.select_related("created_by"), ended=50),
        "scopes": [PERMISSION_NAMES[name] for name in shown.scopes],
        "scopes_form": ScopesForm(initial={"scopes": shown.scopes}),
        "form": form or TokenForm(),
        "issued": issued,
    }
    return render(request, "accounts/service_account.html", context)
