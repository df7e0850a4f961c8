"""The page on which a user confirms, with a second factor, what lets a service account change
something. Its form goes to the address that showed it, with what was chosen there."""

from __future__ import annotations

from collections.abc import Callable, Collection

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from accounts import scope_confirmations, stepup
from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest
from accounts.models import Proof, ServiceAccount
from accounts.permission_names import PERMISSION_NAMES
from accounts.relying_party import expected_origins
from accounts.service_accounts import changing, why_not_scopes
from accounts.stepup import Ticket
from core.errors import CountersignError

# What the forms of service accounts send, besides the confirmation itself.
CARRIED = ("days", "scopes")


def confirmed(
    request: ConsoleRequest,
    account: ServiceAccount,
    scopes: Collection[str],
    act: str,
    work: Callable[[Proof | None], HttpResponse],
    *,
    of: Collection[str] | None = None,
) -> HttpResponse:
    """Does `work` once the user has confirmed `act`. `of`: the permissions that need it, where
    these are not all of the account's."""
    asking = changing(scopes if of is None else of)
    why = why_not_scopes(of, request.user) if of else ""
    if why or not asking:
        return _do(request, account, work, why)
    if "options" in request.GET:
        ticket = Ticket.new()
        said = scope_confirmations.statement(account, scopes, request.user, act, ticket)
        return JsonResponse(stepup.offer(request.user, ticket, said))
    if not (request.POST.get("answer") or request.POST.get("code")):
        return _ask(request, account, asking)
    try:
        return work(scope_confirmations.prove(account, scopes, request.user, act, request.POST))
    except CountersignError as error:
        return _ask(request, account, asking, error=str(error))


def _do(
    request: ConsoleRequest,
    account: ServiceAccount,
    work: Callable[[Proof | None], HttpResponse],
    why: str,
) -> HttpResponse:
    try:
        if why:
            raise AccountRefused(why)
        return work(None)
    except AccountRefused as error:
        messages.error(request, str(error))
        return redirect("accounts:service_account", account.name)


def _ask(
    request: ConsoleRequest, account: ServiceAccount, asking: Collection[str], *, error: str = ""
) -> HttpResponse:
    has_passkey, has_codes = request.user.proof_means
    context = {
        "section": "service_accounts",
        "account": account,
        "permissions": [PERMISSION_NAMES[name] for name in asking],
        "carried": [(name, one) for name in CARRIED for one in request.POST.getlist(name)],
        "valid_tokens": account.tokens.valid().count(),
        "error": error,
        "has_passkey": has_passkey,
        "has_codes": has_codes,
        "origin": expected_origins()[0],
    }
    status = 403 if error else 200
    return render(request, "accounts/service_account_confirm.html", context, status=status)
