"""A person's own sessions."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import sessions
from accounts.http import ConsoleRequest
from accounts.models import BrowserSession
from core.http import page


@page("")
def list_sessions(request: ConsoleRequest) -> HttpResponse:
    context = {
        "section": "profile",
        "sessions": sessions.list_open(request.user),
        "key": request.session.session_key,
        "idle_h": settings.SESSION_IDLE_S / 3600,
        "max_h": settings.SESSION_MAX_S / 3600,
    }
    return render(request, "accounts/sessions.html", context)


@page("", "POST")
def end_session(request: ConsoleRequest, pk: int) -> HttpResponse:
    others = BrowserSession.objects.filter(person=request.user)
    others = others.exclude(key=request.session.session_key)
    sessions.end(get_object_or_404(others, pk=pk))
    messages.success(request, _("The session has ended."))
    return redirect("accounts:sessions")


@page("", "POST")
def end_other_sessions(request: ConsoleRequest) -> HttpResponse:
    count = sessions.end_others(request.user, request.session.session_key)
    said = ngettext("%d session has ended.", "%d sessions have ended.", count)
    messages.success(request, said % count)
    return redirect("accounts:sessions")
