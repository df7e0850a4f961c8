"""Webhooks, their last deliveries, and whatever could not be delivered."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from approvals.consequences import Consequences, Figure
from approvals.views.confirmations import Confirmation, show
from core.http import page
from core.paging import paged
from notifications import services
from notifications.forms import WebhookForm
from notifications.mails import mail_folder
from notifications.models import (
    CHANNELS,
    COUNTED,
    Delivery,
    EscalationPolicy,
    MailRecipient,
    PushDevice,
    Webhook,
)
from notifications.slack_manifest import WEBHOOK_MANIFEST, new_app_url
from notifications.telegram import BOT_FATHER

LAST = 50


@page("notifications.view_webhook")
def webhooks(request: HttpRequest) -> HttpResponse:
    receivers = Delivery.objects.dead().by_receiver()
    context = {
        "section": "notifications",
        "webhooks": Webhook.objects.all(),
        "receivers": receivers,
        "counted": COUNTED if sum(one["n"] for one in receivers) == COUNTED else 0,
        "dead": paged(Delivery.objects.dead().for_page(), "-id", request.GET, size=LAST),
        "readers": MailRecipient.objects.reachable().count(),
        "devices": PushDevice.objects.reachable().count(),
        "folder": mail_folder(),
        "policies": EscalationPolicy.objects.select_related("rule", "group").prefetch_related(
            "steps__group", "steps__schedule"
        ),
    }
    return render(request, "notifications/webhooks.html", context)


@page("notifications.view_webhook")
def webhook(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _show(request, get_object_or_404(Webhook.objects.select_related("slack_app"), pk=pk))


@page("notifications.add_webhook", "GET", "HEAD", "POST")
def add_webhook(request: ConsoleRequest) -> HttpResponse:
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        added = form.save(commit=False)
        secret = services.add_webhook(added, by=request.user, address=form.address)
        if secret:
            return _show(request, added, secret=secret)
        _note_saved(request, form)
        return redirect("notifications:webhook", added.pk)
    return _form(request, form, None)


@page("notifications.change_webhook", "GET", "HEAD", "POST")
def edit_webhook(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    edited = get_object_or_404(Webhook.objects.exclude(format=Webhook.Format.SLACK_APP), pk=pk)
    form = WebhookForm(request.POST or None, instance=edited)
    if request.method == "POST" and form.is_valid():
        changed = form.save(commit=False)
        services.change_webhook(changed, by=request.user, address=form.address)
        _note_saved(request, form)
        return redirect("notifications:webhook", pk)
    return _form(request, form, edited)


@page("notifications.change_webhook")
def disable_webhook(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    shown = get_object_or_404(Webhook, pk=pk)
    there = reverse("notifications:webhook", args=[pk])
    if not shown.enabled:
        return redirect(there)
    queued = Delivery.objects.filter(webhook=shown, state=Delivery.State.PENDING).count()
    said = _("Nothing is sent there until it is enabled again; what is queued is not sent.")
    crumbs = [
        (_("Settings"), reverse("accounts:settings")),
        (_("Notifications"), reverse("notifications:webhooks")),
        (shown.name, there),
    ]
    confirmation = Confirmation(
        "notifications",
        _("Disable webhook %s?") % shown.name,
        crumbs,
        Consequences([Figure(_("Deliveries queued"), queued)], [said]),
        reverse("notifications:set_enabled", args=[pk]),
        _("Disable the webhook"),
        there,
        [("enabled", "0")],
        takes_reason=False,
    )
    return show(request, confirmation)


@page("notifications.change_webhook", "POST")
def set_enabled(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    changed = get_object_or_404(Webhook, pk=pk)
    enabled = request.POST.get("enabled") == "1"
    services.set_webhook_enabled(changed, enabled, by=request.user)
    said = _("“%s” is notified.") if enabled else _("“%s” is not notified any more.")
    messages.success(request, said % changed.name)
    return redirect("notifications:webhook", pk)


@page("notifications.change_webhook", "POST")
def test(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    services.test_webhook(get_object_or_404(Webhook, pk=pk), by=request.user)
    messages.success(request, _("A test message is on its way. Its delivery is listed below."))
    return redirect("notifications:webhook", pk)


@page("notifications.change_webhook", "POST")
def rotate(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Draws the page itself, without a redirect: the secret is kept nowhere."""
    rotated = get_object_or_404(Webhook, pk=pk, format=Webhook.Format.STANDARD)
    return _show(request, rotated, secret=services.rotate_secret(rotated, by=request.user))


@page("notifications.delete_webhook", "GET", "HEAD", "POST")
def remove_webhook(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    gone = get_object_or_404(Webhook, pk=pk)
    if request.method != "POST":
        of_it = Delivery.objects.filter(webhook=gone)
        context = {
            "section": "notifications",
            "webhook": gone,
            "queued": of_it.filter(state=Delivery.State.PENDING).count(),
            "listed": of_it.count(),
        }
        return render(request, "notifications/webhook_remove.html", context)
    name = gone.name
    services.remove_webhook(gone, by=request.user)
    messages.success(request, _("“%s” is removed.") % name)
    return redirect("notifications:webhooks")


@page("notifications.change_webhook", "POST")
def send_again(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    delivery = get_object_or_404(Delivery, pk=pk)
    if services.send_again(delivery, by=request.user):
        messages.success(request, _("It is sent again, under the same id."))
    else:
        messages.warning(request, _("It is being sent, or cannot be sent again."))
    if delivery.webhook_id:
        return redirect("notifications:webhook", delivery.webhook_id)
    return redirect("notifications:webhooks")


@page("notifications.change_webhook", "POST")
def dismiss(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    if services.dismiss(get_object_or_404(Delivery, pk=pk), by=request.user):
        messages.success(request, _("It is dismissed."))
    return redirect("notifications:webhooks")


@page("notifications.change_webhook", "POST")
def send_all_again(request: ConsoleRequest) -> HttpResponse:
    n = services.send_all_again(_receiver(request), by=request.user)
    said = ngettext("%(n)s message is sent again.", "%(n)s messages are sent again.", n)
    messages.success(request, said % {"n": number_format(n, force_grouping=True)})
    return redirect("notifications:webhooks")


@page("notifications.change_webhook", "POST")
def dismiss_all(request: ConsoleRequest) -> HttpResponse:
    n = services.dismiss_all(_receiver(request), by=request.user)
    said = ngettext("%(n)s message is dismissed.", "%(n)s messages are dismissed.", n)
    messages.success(request, said % {"n": number_format(n, force_grouping=True)})
    return redirect("notifications:webhooks")


def _receiver(request: ConsoleRequest) -> str:
    given = request.POST.get("receiver", "")
    if given in CHANNELS:
        return given
    with suppress(ValueError):
        return str(UUID(given))
    raise Http404


def _show(request: HttpRequest, shown: Webhook, *, secret: str = "") -> HttpResponse:
    last = list(Delivery.objects.filter(webhook=shown).for_page()[:LAST])
    context = {
        "section": "notifications",
        "webhook": shown,
        "secret": secret,
        "deliveries": last,
        "is_moving": any(one.is_first_attempt for one in last),
    }
    return render(request, "notifications/webhook.html", context)


def _note_saved(request: HttpRequest, form: WebhookForm) -> None:
    messages.success(request, _("“%s” is saved.") % form.instance.name)
    if form.found:
        messages.info(request, _("Its messages go to the chat %s.") % form.found)


def _form(request: HttpRequest, form: WebhookForm, edited: Webhook | None) -> HttpResponse:
    context = {
        "section": "notifications",
        "form": form,
        "webhook": edited,
        "slack_app_url": new_app_url(WEBHOOK_MANIFEST),
        "bot_father_url": BOT_FATHER,
    }
    return render(request, "notifications/webhook_form.html", context)
