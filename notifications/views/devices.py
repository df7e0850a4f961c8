"""A person's own devices: added, tried and removed, and where a push leads."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from notifications import devices, services, subscriptions
from notifications.delivery_entries import note_follower, notes_unsigned
from notifications.forms import DevicesForm
from notifications.models import Delivery, PushDevice
from notifications.payloads import path
from notifications.subscriptions import SubscriptionRefused


@page("", "POST")
def add(request: ConsoleRequest) -> HttpResponse:
    try:
        given = subscriptions.read(request.POST.get("subscription", ""))
        devices.add(request.user, given, user_agent=request.headers.get("User-Agent", ""))
    except SubscriptionRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("This device is notified."))
    return redirect("notifications:profile")


@page("", "POST")
def set_events(request: ConsoleRequest) -> HttpResponse:
    form = DevicesForm(request.POST)
    if form.is_valid():
        devices.set_events(request.user, form.cleaned_data["events"])
        messages.success(request, _("Your notifications are saved."))
    else:
        messages.error(request, _("Choose among the events that are listed."))
    return redirect("notifications:profile")


@page("", "POST")
def test(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    device = _own(request, pk)
    services.test_device(device)
    messages.success(request, _("A test message is on its way to “%s”.") % device.name)
    return redirect("notifications:profile")


@page("", "POST")
def remove(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    device = _own(request, pk)
    devices.remove(device, by=request.user.actor)
    messages.success(request, _("“%s” is not notified any more.") % device.name)
    return redirect("notifications:profile")


@notes_unsigned
@page("")
def follow(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """From a push to the page that it is about. One of a removed device leads to the start, and so
    does one of somebody else's."""
    delivery = Delivery.objects.for_page().filter(pk=pk, webhook=None).first()
    if delivery is None:
        return redirect("home")
    note_follower(delivery, request.user)
    return redirect(path(delivery) if delivery.reader == request.user else "home")


def _own(request: ConsoleRequest, pk: UUID) -> PushDevice:
    return get_object_or_404(PushDevice, pk=pk, person=request.user)
