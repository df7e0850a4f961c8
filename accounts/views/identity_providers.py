"""Signing in at an identity provider: there and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as translate
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts import attempts, second_factor
from accounts.http import ConsoleRequest
from accounts.models import Identity, User
from accounts.oidc import authorization, identities
from accounts.oidc.authorization import NotBegun, ProviderAnswer
from accounts.oidc.identities import NotAdmitted
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration, IdentityProvider, UnknownProvider, provider
from accounts.sessions import ProviderSession
from accounts.views.proofs import check_password
from accounts.views.sign_in import SignIn, link_page
from accounts.views.signed_in import signed_in
from audit.services import SYSTEM, record
from core.client_address import client_address
from core.english import gettext as _
from core.errors import CountersignError
from core.http import page

ProviderView = Callable[[HttpRequest, IdentityProvider], HttpResponse]
_SOMEBODY_ELSE = _("This browser was signed in as somebody else. Begin again.")
REFUSALS = (ProviderFailed, NotAdmitted, BadConfiguration)


def _of_known(view: ProviderView) -> Callable[[HttpRequest, str], HttpResponse]:
    """Gives the view its provider; whoever names another one is led to the sign-in page."""

    @wraps(view)
    def found(request: HttpRequest, slug: str) -> HttpResponse:
        try:
            at = provider(slug)
        except UnknownProvider:
            messages.error(request, translate("There is no such identity provider."))
            return redirect("accounts:sign_in")
        return view(request, at)

    return found


@never_cache
@require_http_methods(["GET", "POST"])
@_of_known
def begin(request: HttpRequest, at: IdentityProvider) -> HttpResponse:
    """Leads to the provider. A GET, since a form may lead to no other site; nothing is changed.
    An invitation begins by POST, so that no link of others signs anybody in as somebody else."""
    try:
        if request.method == "POST":
            return _begin_invited(request, at)
        there = authorization.begin(request, at, next_page=_next_page(request))
    except REFUSALS as error:
        return _refused(request, str(error), status=502)
    return HttpResponseRedirect(there)


@never_cache
@require_GET
@_of_known
def finish(request: HttpRequest, at: IdentityProvider) -> HttpResponse:
    try:
        attempt = attempts.begin_provider(request)
    except attempts.TooManyAttempts as error:
        return _refused(request, str(error), status=429)
    try:
        response = _finish(request, at)
    except NotBegun as error:
        # Anybody can make a browser come here: not worth an entry.
        response = _refused(request, str(error), status=403)
    except REFUSALS as error:
        # It counts: whoever begins and refuses again and again fills no record.
        _write_down(request, at, error)
        return _refused(request, str(error), status=403)
    attempts.right(attempt)
    return response


@page("", "POST")
@_of_known
def connect(request: HttpRequest, at: IdentityProvider) -> HttpResponse:
    """A page with a link to the provider, since a form may lead to no other site."""
    assert isinstance(request.user, User)
    try:
        check_password(request)
        home = f"{reverse('accounts:profile')}#identities"
        there = authorization.begin(request, at, next_page=home, connects=request.user.pk)
    except CountersignError as error:
        messages.error(request, str(error))
        return _to_identities()
    context = {"provider": at.label, "there": there}
    return render(request, "accounts/to_provider.html", context)


@page("", "POST")
def disconnect(request: ConsoleRequest, pk: int) -> HttpResponse:
    own = get_object_or_404(Identity.objects.connected(), person=request.user, pk=pk)
    try:
        check_password(request)
    except CountersignError as error:
        messages.error(request, str(error))
        return _to_identities()
    identities.disconnect(own, key=request.session.session_key)
    messages.success(request, translate("The account is disconnected."))
    return _to_identities()


def _begin_invited(request: HttpRequest, at: IdentityProvider) -> HttpResponse:
    """A page with a link to the provider; over a session of somebody else only if the form, which
    names them, said so."""
    text, over = request.POST.get("invitation", "")[:100], request.user.pk
    if request.POST.get("over", "") != str(over or ""):
        return link_page(request, text, status=409)
    there = authorization.begin(request, at, next_page="", invitation=text, over=over)
    context = {"provider": at.label, "there": there, "invited": True}
    return render(request, "accounts/to_provider.html", context)


def _finish(request: HttpRequest, at: IdentityProvider) -> HttpResponse:
    answer = authorization.finish(request, at)
    if answer.pending.connects is not None:
        return _connected(request, at, answer)
    if answer.pending.invitation and request.user.pk not in (None, answer.pending.over):
        raise NotAdmitted(_SOMEBODY_ELSE)
    return _signed_in(request, at, identities.admit(at, answer), answer)


def _connected(request: HttpRequest, at: IdentityProvider, answer: ProviderAnswer) -> HttpResponse:
    """Raises NotAdmitted: only in the session of whoever began it."""
    if not isinstance(request.user, User) or request.user.pk != answer.pending.connects:
        raise NotAdmitted(_SOMEBODY_ELSE)
    if request.user.lacks_factor:
        return redirect("accounts:set_up_factor")
    try:
        identities.connect(at, answer, request.user)
    except NotAdmitted as error:
        messages.error(request, str(error))
    else:
        messages.success(request, translate("The account is connected."))
    return _to_identities()


def _to_identities() -> HttpResponse:
    return redirect(f"{reverse('accounts:profile')}#identities")


def _next_page(request: HttpRequest) -> str:
    there = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(there, allowed_hosts={request.get_host()})
    return there if is_ours else ""


def _refused(request: HttpRequest, said: str, *, status: int) -> HttpResponse:
    shown = SignIn()
    shown.setup(request)
    return shown.refused(said, status=status)


def _write_down(request: HttpRequest, at: IdentityProvider, error: CountersignError) -> None:
    record(
        "sign_in.failed",
        actor=SYSTEM,
        reason=str(error),
        provider=at.label,
        address=client_address(request),
    )


def _signed_in(
    request: HttpRequest, at: IdentityProvider, identity: Identity, answer: ProviderAnswer
) -> HttpResponse:
    person, there = identity.person, answer.pending.next_page or settings.LOGIN_REDIRECT_URL
    first_step = _("By the identity provider %s.") % at.label
    sid = answer.claims.get("sid")
    session = ProviderSession(
        at.slug, identity.pk, sid[:255] if isinstance(sid, str) else "", answer.id_token
    )
    if person.has_second_factor and not at.replaces_second_factor:
        second_factor.begin(
            request, person, first_step=first_step, next_page=there, provider_session=session
        )
        return redirect("accounts:second_factor")
    names = {"provider": at.label, "issuer": at.issuer, "subject": identity.subject}
    record("person.signed_in", actor=person.actor, reason=first_step, **names)
    return signed_in(request, person, there, provider_session=session)
