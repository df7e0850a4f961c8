from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import attempts, languages, refusals, second_factor, services
from accounts.forms import SignInForm
from accounts.models import Attempt, User
from accounts.oidc.providers import usable_providers
from accounts.relying_party import expected_origins
from accounts.views.signed_in import LocalRedirects, address_of, signed_in
from audit.services import record
from core import english

NOT_LOCALLY = english.gettext("Passwords and passkeys sign nobody in here: use the provider.")
THEMES = ("system", "light", "dark")
DENSITIES = ("comfortable", "compact")


class SignIn(LocalRedirects, LoginView):
    form_class = SignInForm
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True
    attempt: Attempt

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            self.attempt = attempts.begin_sign_in(request, self._name())
        except attempts.TooManyAttempts as error:
            return self.refused(str(error), status=429)
        if not settings.LOCAL_SIGN_IN:
            attempts.wrong(self.attempt, self._name(), NOT_LOCALLY)
            return self.refused(NOT_LOCALLY, status=403)
        return super().post(request, *args, **kwargs)

    def refused(self, error: str, *, status: int) -> HttpResponse:
        """The page with an empty form, and why."""
        context = self.get_context_data(form=SignInForm(self.request), refused=error)
        context["too_many"] = status == 429
        return render(self.request, self.template_name, context, status=status)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        return super().get_context_data(
            origin=expected_origins()[0],
            providers=usable_providers(),
            is_local=settings.LOCAL_SIGN_IN,
            **more,
        )

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        assert isinstance(person, User)
        attempts.right(self.attempt)
        first_step = english.gettext("By password.")
        if person.has_second_factor:
            there = self.get_success_url()
            second_factor.begin(self.request, person, first_step=first_step, next_page=there)
            return redirect("accounts:second_factor")
        record("person.signed_in", actor=person.actor, reason=first_step)
        return signed_in(self.request, person, self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if form.cleaned_data.get("username") and form.cleaned_data.get("password"):
            attempts.wrong(self.attempt, self._name())
        else:
            # Nothing was tried.
            attempts.right(self.attempt)
        return super().form_invalid(form)

    def _name(self) -> str:
        """The name in the form's normal form, so that full-width letters make no other name."""
        name = self.request.POST.get("username", "")
        return User.normalize_username(name).strip()[:150]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, text: str) -> HttpResponse:
    """Signs in by POST alone: what previews links in mail and chat must not use them up. Whoever is
    signed in here signs out first, so that nobody goes on as somebody else without noticing."""
    if request.method != "POST":
        return link_page(request, text)
    if request.user.is_authenticated:
        return link_page(request, text, status=409)
    try:
        person = services.redeem_sign_in_link(text)
    except services.LinkRefused as error:
        refusals.link(request, error)
        return render(request, "accounts/sign_in_link.html", {"error": str(error)}, status=403)
    if person.has_second_factor:
        first_step, home = services.BY_LINK, settings.LOGIN_REDIRECT_URL
        second_factor.begin(request, person, first_step=first_step, next_page=home)
        return redirect("accounts:second_factor")
    return signed_in(request, person, settings.LOGIN_REDIRECT_URL, remember=False)


def link_page(request: HttpRequest, text: str, *, status: int = 200) -> HttpResponse:
    """The page of a link that is not used yet."""
    context = {"providers": usable_providers(), "invitation": text}
    return render(request, "accounts/sign_in_link.html", context, status=status)


@never_cache
def boiler_room_door(request: HttpRequest) -> HttpResponse:
    """Django's admin would let in by a form of its own, where nobody counts the tries."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next", "/admin/"))


@require_POST
def density(request: HttpRequest) -> HttpResponse:
    """How close the rows of lists stand, in this browser."""
    response = _back(request)
    chosen = request.POST.get("density")
    if chosen in DENSITIES:
        response.set_cookie(
            "density", chosen, max_age=365 * 86400, samesite="Lax", secure=request.is_secure()
        )
    return response


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Without JavaScript; theme.js writes the same cookie."""
    response = _back(request)
    chosen = request.POST.get("theme")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=365 * 86400, samesite="Lax", secure=request.is_secure()
        )
    return response


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    response = _back(request)
    chosen = request.POST.get("language", "")
    if languages.is_offered(chosen):
        languages.choose(request, response, chosen)
    return response


def _back(request: HttpRequest) -> HttpResponse:
    there = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(there, allowed_hosts={request.get_host()}):
        there = "/"
    return redirect(address_of(there))
