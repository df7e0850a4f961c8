"""The door of every console page: who may, and what somebody else is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

View = Callable[..., HttpResponseBase]


def page(permission: str, *methods: str) -> Callable[[View], View]:
    """A page for signed-in people who hold `permission`; reads unless methods are given.

    An empty permission lets everybody in who is signed in: such a view asks the row.
    """

    def decorate(view: View) -> View:
        @never_cache
        @require_http_methods(methods or ("GET", "HEAD"))
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            if permission and not request.user.has_perm(permission):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def is_htmx(request: HttpRequest) -> bool:
    return bool(HtmxDetails(request))


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if not is_htmx(request):
        # A form's address is no page to come back to.
        here = request.get_full_path() if request.method in ("GET", "HEAD") else "/"
        return redirect_to_login(here)
    # A redirect would draw the sign-in page into a corner of this one.
    there = HtmxDetails(request).current_url_abs_path or "/"
    return HttpResponseClientRedirect(redirect_to_login(there).url)
