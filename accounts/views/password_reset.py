"""A new password by a link of a mail."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts import password_reset, refusals, second_factor
from accounts.models import User

TEMPLATE = "accounts/password_reset.html"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def set_password(request: HttpRequest, text: str) -> HttpResponse:
    """Nothing is used up before the form was sent: programs that look into mail follow links."""
    try:
        person = password_reset.person_of(text)
        form = _form(person, request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return render(request, TEMPLATE, {"form": form, "name": person.username})
        return _apply(request, person, make_password(form.cleaned_data["new_password1"]))
    except password_reset.ResetRefused as error:
        refusals.link(request, error)
        return render(request, TEMPLATE, {"error": str(error)}, status=403)


def _apply(request: HttpRequest, person: User, encoded: str) -> HttpResponse:
    if person.has_second_factor:
        # Whoever reads the mail is not the person yet: the password is set after the second step.
        second_factor.begin(
            request,
            person,
            first_step=password_reset.BY_MAIL,
            next_page=settings.LOGIN_REDIRECT_URL,
            new_password=encoded,
        )
        return redirect("accounts:second_factor")
    password_reset.finish(person, encoded)
    return redirect(f"{reverse('accounts:sign_in')}?reset=1")


def _form(person: User, data: Any) -> SetPasswordForm[User]:
    form = SetPasswordForm(person, data)
    # Django's own is a list in HTML, where a sentence is wanted.
    form.fields["new_password1"].help_text = _(
        "At least 8 characters, and not easy to guess: three or four unexpected words work well."
    )
    form.fields["new_password2"].label = _("New password again")
    form.fields["new_password2"].help_text = ""
    return form
