"""Which language a request is answered in."""

from __future__ import annotations

from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

API = "/api/"


class LanguageMiddleware(LocaleMiddleware):
    """Pages in the language chosen, or else in the browser's; programs are answered in English.

    Who signed in has the language of their account in a cookie (accounts/languages.py).
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith(API):
            translation.activate("en")
            request.LANGUAGE_CODE = "en"
        else:
            super().process_request(request)
