"""The session's cookie is taken back only by whoever ends the session."""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers


class SessionCookieMiddleware(SessionMiddleware):
    """Django deletes the cookie of a session that is gone. A request that began before a new
    password or another sign-in renewed the session would so delete the new one's cookie."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        session = request.session
        is_gone = settings.SESSION_COOKIE_NAME in request.COOKIES and session.is_empty()
        if is_gone and not session.modified:
            patch_vary_headers(response, ("Cookie",))
            return response
        return super().process_response(request, response)
