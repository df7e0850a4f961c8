"""The door of every console page: who may, and what somebody else is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from core import outage
from core.connections import each_within

# No statement of a page takes longer; one that does is not waited for.
STATEMENT_S = 10.0
_NUL = "A field holds a NUL character."
_NUL_IN_ADDRESS = "The address holds a NUL character."

View = Callable[..., HttpResponseBase]


def page(
    permission: str, *methods: str, before_factor: bool = False, cacheable: bool = False
) -> Callable[[View], View]:
    """A page for signed-in people who hold `permission`; reads unless methods are given.

    An empty permission lets everybody in who is signed in: such a view asks the row. Whoever has
    to set up a second factor first reaches only pages `before_factor`. Browsers keep nothing of it,
    unless it is `cacheable`: then the view says for how long.
    """

    def decorate(view: View) -> View:
        @require_http_methods(methods or ("GET", "HEAD"))
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            _check_address(kwargs)
            with each_within(STATEMENT_S):
                with outage.recording(request):
                    may = _may(request, permission, before_factor)
                if not may:
                    return _to_sign_in(request)
                if not before_factor and lacks_factor(request.user):
                    return _to_set_up(request)
                outage.forget(request)
                _check_text(request)
                return view(request, *args, **kwargs)

        door = guarded if cacheable else never_cache(guarded)
        door.permission = permission  # type: ignore[attr-defined]
        return door

    return decorate


def permission_of(view: object) -> str:
    """The permission that a page asks for; empty if it asks for none, or is no page."""
    return getattr(view, "permission", "")


def lacks_factor(person: object) -> bool:
    """Whether a role of theirs needs a second factor, and they have none."""
    return bool(getattr(person, "lacks_factor", False))


def _may(request: HttpRequest, permission: str, before_factor: bool) -> bool:
    """False for whoever has to sign in first."""
    if not request.user.is_authenticated:
        return False
    if not before_factor and lacks_factor(request.user):
        # Led elsewhere, whatever they may.
        return True
    # What the address names, where permissions hold for some objects alone (config/targets.py).
    request.user.find_target = getattr(request, "find_target", None)
    if permission and not request.user.has_perm(permission):
        raise PermissionDenied
    return True


def _check_text(request: HttpRequest) -> None:
    """Raises BadRequest for a NUL, which no column takes: no person types one."""
    for given in (request.GET, request.POST):
        if any("\0" in value for _name, values in given.lists() for value in values):
            raise BadRequest(_NUL)


def _check_address(named: dict[str, Any]) -> None:
    """The same of what the address names, which may decide who may."""
    if any("\0" in str(value) for value in named.values()):
        raise BadRequest(_NUL_IN_ADDRESS)


def is_repeated(given: QueryDict, names: Iterable[str]) -> bool:
    """Whether one of these parameters came twice, of which two readers may take two values.

    Source: RFC 6749, 3.1.
    """
    return any(len(given.getlist(name)) > 1 for name in names)


def is_htmx(request: HttpRequest) -> bool:
    return bool(HtmxDetails(request))


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if is_htmx(request):
        # A redirect would draw the sign-in page into a corner of this one.
        return HttpResponseClientRedirect(_sign_in(page_of(request), ended=True))
    if request.method in ("GET", "HEAD"):
        had_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        return HttpResponseRedirect(_sign_in(request.get_full_path(), ended=had_session))
    # A form's address is no page to come back to; the page that it was on is.
    return HttpResponseRedirect(_sign_in(page_of(request), ended=True))


def _to_set_up(request: HttpRequest) -> HttpResponse:
    reads = request.method in ("GET", "HEAD") and not is_htmx(request)
    there = request.get_full_path() if reads else page_of(request)
    address = f"{reverse(settings.SET_UP_FACTOR_URL)}?{urlencode({'next': there})}"
    return HttpResponseClientRedirect(address) if is_htmx(request) else redirect(address)


def _sign_in(there: str, *, ended: bool) -> str:
    address: str = redirect_to_login(there).url
    return f"{address}&ended=1" if ended else address


def page_of(request: HttpRequest) -> str:
    """Path and query of our page on which the request was made; "/" where that is not known."""
    htmx = HtmxDetails(request)
    try:
        there = urlsplit((htmx.current_url if htmx else request.headers.get("Referer")) or "")
    except ValueError:
        return "/"
    if there.netloc != request.get_host():
        return "/"
    return there.path + (f"?{there.query}" if there.query else "")
