"""The session's cookie is taken back only by whoever ends the session; its use is noted."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import patch_vary_headers

from accounts import sessions
from accounts.session_store import SINCE


class SessionCookieMiddleware(SessionMiddleware):
    """Django deletes the cookie of a session that is gone. A request that began before a new
    password or another sign-in renewed the session would so delete the new one's cookie."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        is_read = request.session.accessed
        if is_read and SESSION_KEY in request.session:
            # Of a session from before an upgrade: its last time begins now.
            request.session.setdefault(SINCE, timezone.now().timestamp())
        response = self._answered(request, response)
        if is_read and response.status_code < 500:
            sessions.note_seen(request)
        return response

    def _answered(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        session = request.session
        is_gone = settings.SESSION_COOKIE_NAME in request.COOKIES and session.is_empty()
        if is_gone and not session.modified:
            patch_vary_headers(response, ("Cookie",))
            return response
        return super().process_response(request, response)
