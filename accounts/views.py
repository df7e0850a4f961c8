from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import services
from accounts.models import User
from audit.services import record

THEMES = ("system", "light", "dark")


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": _("No person here has this name and password. Both mind upper case."),
        "inactive": _("This account was switched off. Ask an administrator."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("Name")
        self.fields["password"].label = _("Password")
        for field in self.fields.values():
            field.widget.attrs.pop("autofocus", None)


class SignIn(LoginView):
    form_class = SignInForm
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        assert isinstance(person, User)
        record("person.signed_in", actor=person.actor, reason=str(_("By password.")))
        return super().form_valid(form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, text: str) -> HttpResponse:
    """Signs in by POST alone: what previews links in mail and chat must not use them up."""
    if request.method != "POST":
        return render(request, "accounts/sign_in_link.html")
    try:
        person = services.redeem_sign_in_link(text)
    except services.LinkRefused as error:
        return render(request, "accounts/sign_in_link.html", {"error": str(error)}, status=403)
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(settings.LOGIN_REDIRECT_URL)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Without JavaScript; theme.js writes the same cookie."""
    there = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(there, allowed_hosts={request.get_host()}):
        there = "/"
    response = redirect(there)
    chosen = request.POST.get("theme")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=365 * 86400, samesite="Lax", secure=request.is_secure()
        )
    return response
