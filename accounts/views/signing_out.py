"""Signing out here, at the identity provider, and from there."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from accounts import languages, refusals
from accounts.oidc import signing_out
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration, UnknownProvider, provider
from accounts.oidc.signed_tokens import check_logout_token
from accounts.views.signed_in import LocalRedirects
from core.errors import CountersignError

log = logging.getLogger(__name__)
REFUSALS = (ProviderFailed, BadConfiguration, UnknownProvider)


class SignOut(LocalRedirects, LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        at_provider = signing_out.provider_session(request)
        response = super().post(request, *args, **kwargs)
        # A sign-in link goes on at once, as somebody else.
        if at_provider and "next" not in request.POST:
            kept = {"provider": at_provider.provider, "id_token": at_provider.id_token}
            request.session[signing_out.ENDED] = kept
            response = redirect("accounts:signed_out")
        languages.forget(response)
        return response


@never_cache
@require_GET
def signed_out(request: HttpRequest) -> HttpResponse:
    """The end of a session that began at a provider, whose own session goes on."""
    kept = request.session.get(signing_out.ENDED)
    try:
        label = provider(kept["provider"]).label if kept else ""
    except (UnknownProvider, BadConfiguration):
        label = ""
    if not label:
        return redirect("accounts:sign_in")
    return render(request, "accounts/signed_out.html", {"provider": label})


@never_cache
@require_GET
def sign_out_at_provider(request: HttpRequest) -> HttpResponse:
    """Leads there, by a link, since a form may lead to no other site."""
    kept = request.session.get(signing_out.ENDED)
    if not kept:
        return redirect("accounts:sign_in")
    try:
        there = signing_out.url_at_provider(provider(kept["provider"]), kept["id_token"])
    except REFUSALS as error:
        messages.warning(request, str(error))
        return redirect("accounts:sign_in")
    return HttpResponseRedirect(there)


@csrf_exempt
@never_cache
@require_POST
def back_channel(request: HttpRequest, slug: str) -> HttpResponse:
    """The provider's own request, which its signature proves."""
    try:
        at = provider(slug)
        claims = check_logout_token(at, request.POST.get("logout_token", ""))
        ended = signing_out.end_sessions(at, claims)
    except REFUSALS as error:
        return _not_taken(request, slug, error)
    log.info("provider %s signed somebody out: %d sessions", slug, ended)
    return HttpResponse()


def _not_taken(request: HttpRequest, slug: str, error: CountersignError) -> HttpResponse:
    log.warning("a logout token of provider %s was not taken: %s", slug, error)
    refusals.logout_token(request, slug, error)
    said = {"error": "invalid_request", "error_description": str(error)}
    return JsonResponse(said, status=400)
