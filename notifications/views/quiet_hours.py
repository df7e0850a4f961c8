"""A person's own quiet hours, and the time until which they get nothing."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from notifications import services
from notifications.forms import MuteForm, QuietHoursForm
from notifications.views.profile import show


@page("", "POST")
def set_hours(request: ConsoleRequest) -> HttpResponse:
    form = QuietHoursForm(request.POST)
    if not form.is_valid():
        return show(request, quiet_form=form)
    begins, ends = form.cleaned_data["begins"], form.cleaned_data["ends"]
    services.set_quiet_hours(request.user, begins, ends)
    messages.success(request, _("Your quiet hours are saved."))
    return redirect("notifications:profile")


@page("", "POST")
def mute(request: ConsoleRequest) -> HttpResponse:
    if request.POST.get("end") == "1":
        services.mute(request.user, None)
        messages.success(request, _("You are notified again."))
        return redirect("notifications:profile")
    with timezone.override(request.user.time_zone):
        form = MuteForm(request.POST)
        if not form.is_valid():
            return show(request, mute_form=form)
    services.mute(request.user, form.cleaned_data["until"])
    messages.success(request, _("Mail and pushes to you wait until then."))
    return redirect("notifications:profile")
