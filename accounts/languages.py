"""The language of a person's pages: chosen by them, kept with their account, carried by a cookie.

The cookie spares pages a look at the account, and the page that says that the database is away
is still in the reader's language.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.models import User

COOKIE_AGE_S = 365 * 86400


def is_offered(language: str) -> bool:
    return language in dict(settings.LANGUAGES)


def choose(request: HttpRequest, response: HttpResponse, language: str) -> None:
    """By the switch, signed in or not."""
    if isinstance(request.user, User):
        User.objects.filter(pk=request.user.pk).update(language=language)
    _carry(request, response, language)


def greet(request: HttpRequest, response: HttpResponse, person: User) -> None:
    """At sign-in: what was chosen on the page just now, or else what the account has."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    if is_offered(chosen):
        if chosen != person.language:
            User.objects.filter(pk=person.pk).update(language=chosen)
    elif is_offered(person.language):
        _carry(request, response, person.language)


def forget(response: HttpResponse) -> None:
    """At sign-out: the next person of this browser has a language of their own."""
    response.delete_cookie(settings.LANGUAGE_COOKIE_NAME)


def _carry(request: HttpRequest, response: HttpResponse, language: str) -> None:
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=COOKIE_AGE_S,
        samesite="Lax",
        secure=request.is_secure(),
    )
