"""The last step of every sign-in, and the page that follows."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url

from accounts import attempts, languages, refusals, sessions
from accounts.models import User


class LocalRedirects(RedirectURLMixin):
    """A page asked for by `next` is one of ours, or an entry says that it was not."""

    request: HttpRequest

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        there = self.request.POST.get("next", self.request.GET.get("next", ""))
        return refusals.local_page(self.request, there)


def address_of(there: str) -> str:
    """The address of a page asked for: a word alone would be taken for the name of a view."""
    if there == settings.LOGIN_REDIRECT_URL:
        return resolve_url(there)
    return there if there.startswith(("/", "http://", "https://")) else f"/{there}"


def signed_in(
    request: HttpRequest,
    person: User,
    there: str,
    *,
    remember: bool = True,
    provider_session: sessions.ProviderSession | None = None,
) -> HttpResponse:
    """Begins the session and leads to the page asked for. Of a sign-in that others may have made
    possible, by a link, no browser is remembered."""
    sessions.begin(request, person, provider_session)
    response = redirect(address_of(there))
    if remember:
        attempts.remember_browser(request, response, person)
    languages.greet(request, response, person)
    return response
