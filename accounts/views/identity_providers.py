"""Signing in at an identity provider: there and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as translate
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts import attempts, refusals, second_factor
from accounts.http import ConsoleRequest
from accounts.models import Identity, User
from accounts.oidc import authorization, identities, step_up
from accounts.oidc.authorization import NotBegun, PendingAuthorization, ProviderAnswer
from accounts.oidc.identities import NotAdmitted
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration, IdentityProvider, UnknownProvider, provider
from accounts.sessions import ProviderSession
from accounts.stepup import NotProven
from accounts.views.proofs import check_password
from accounts.views.sign_in import SignIn, link_page
from accounts.views.signed_in import address_of, signed_in
from audit.services import SYSTEM, Actor, record
from core.client_address import client_address
from core.english import gettext as _
from core.errors import CountersignError
from core.http import page

ProviderView = Callable[[HttpRequest, IdentityProvider], HttpResponse]
_SOMEBODY_ELSE = _("This browser was signed in as another user. Start again.")
REFUSALS = (ProviderFailed, NotAdmitted, NotProven, BadConfiguration)


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
        pending = authorization.take(request)
        response = _finish(request, at, pending)
    except NotBegun as error:
        refusals.answer_without_sign_in(request, at.label, error)
        response = _refused(request, str(error), status=403)
    except REFUSALS as error:
        # It counts: whoever begins and refuses again and again fills no record.
        return _not_taken(request, at, pending, error)
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
    """A page with a link to the provider; whoever is signed in here signs out first."""
    text = request.POST.get("invitation", "")[:100]
    if request.user.is_authenticated:
        return link_page(request, text, status=409)
    there = authorization.begin(request, at, next_page="", invitation=text)
    context = {"provider": at.label, "there": there, "invited": True}
    return render(request, "accounts/to_provider.html", context)


def _finish(
    request: HttpRequest, at: IdentityProvider, pending: PendingAuthorization
) -> HttpResponse:
    if pending.statement:
        step_up.finish(request, at, pending)
        return redirect(address_of(pending.next_page))
    answer = authorization.finish(request, at, pending)
    if answer.pending.connects is not None:
        return _connected(request, at, answer)
    if answer.pending.invitation and request.user.is_authenticated:
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
        _write_down(request, at, error, "sign_in.failed", actor=request.user.actor)
        messages.error(request, str(error))
    else:
        messages.success(request, translate("The account is connected."))
    return _to_identities()


def _to_identities() -> HttpResponse:
    return redirect(f"{reverse('accounts:profile')}#identities")


def _next_page(request: HttpRequest) -> str:
    return refusals.local_page(request, request.GET.get("next", ""))


def _refused(request: HttpRequest, said: str, *, status: int) -> HttpResponse:
    shown = SignIn()
    shown.setup(request)
    return shown.refused(said, status=status)


def _not_taken(
    request: HttpRequest,
    at: IdentityProvider,
    pending: PendingAuthorization,
    error: CountersignError,
) -> HttpResponse:
    if not pending.statement:
        _write_down(request, at, error, "sign_in.failed", actor=SYSTEM)
        return _refused(request, str(error), status=403)
    actor = request.user.actor if isinstance(request.user, User) else SYSTEM
    _write_down(request, at, error, "step_up.failed", actor=actor)
    messages.error(request, str(error))
    return redirect(address_of(pending.next_page))


def _write_down(
    request: HttpRequest, at: IdentityProvider, error: Exception, action: str, *, actor: Actor
) -> None:
    details = {"provider": at.label, "address": client_address(request)}
    record(action, actor=actor, reason=str(error), **details)


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
