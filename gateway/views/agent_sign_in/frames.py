"""Pages of consent are not given into frames of other pages, whose user would press unawares.

No browser shows them there (Content-Security-Policy, `frame-ancestors`). Browsers also name the
place that a page is for (Fetch Metadata), so that the attempt is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from accounts import refusals
from accounts.models import User
from core import english

INSIDE = frozenset(("embed", "fencedframe", "frame", "iframe", "object"))

View = Callable[..., HttpResponseBase]


def not_in_frames(view: View) -> View:
    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("Sec-Fetch-Dest") in INSIDE:
            return _rejected(request)
        return view(request, *args, **kwargs)

    return answered


def _rejected(request: HttpRequest) -> HttpResponse:
    why = english.gettext("Another page asked for the consent page in a frame of it.")
    person = request.user if isinstance(request.user, User) else None
    refusals.agent_sign_in(request, why, by=person, client_id=request.GET.get("client_id", ""))
    return render(request, "gateway/sign_in_rejected.html", {"why": why}, status=400)
