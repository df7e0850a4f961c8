"""Disabling and enabling a user from their page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest, reason_in
from accounts.models import User
from approvals import disabling
from core.http import page


@page("accounts.change_user", "POST")
def set_active(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = get_object_or_404(User, pk=pk)
    active = request.POST.get("active") == "1"
    try:
        disabling.set_active(shown, active, by=request.user, reason=reason_in(request))
    except AccountRefused as error:
        messages.error(request, str(error))
    else:
        said = _("“%s” may sign in.") if active else _("“%s” is off and signed out everywhere.")
        messages.success(request, said % shown)
    return redirect("accounts:person", pk)
