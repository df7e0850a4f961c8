"""Slack apps: the form of an administrator, and what people link themselves."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from notifications import chat_accounts, slack_apps
from notifications.chat_accounts import ChatLinkRefused
from notifications.delivery_entries import notes_strangers
from notifications.models import ChatAccount, SlackApp, Webhook
from notifications.slack_forms import SlackAppForm
from notifications.slack_manifest import manifest, new_app_url
from notifications.views import profile


@page("notifications.add_webhook", "GET", "HEAD", "POST")
def add(request: ConsoleRequest) -> HttpResponse:
    form = SlackAppForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _save(request, form, SlackApp())
    return _form(request, form, None)


@page("notifications.change_webhook", "GET", "HEAD", "POST")
def edit(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    webhook = get_object_or_404(Webhook, pk=pk, format=Webhook.Format.SLACK_APP)
    form = SlackAppForm(request.POST or None, instance=webhook)
    if request.method == "POST" and form.is_valid():
        return _save(request, form, webhook.slack_app)
    return _form(request, form, webhook)


@page("", "POST")
def link(request: ConsoleRequest) -> HttpResponse:
    """Draws the page itself, without a redirect: the code is kept nowhere."""
    if not chat_accounts.is_offered():
        messages.error(request, _("No Slack app is set up here."))
        return redirect("notifications:profile")
    return profile.show(request, chat_code=chat_accounts.begin(request.user))


@notes_strangers(chat_accounts.note_unsigned)
@page("", "GET", "HEAD", "POST")
def confirm(request: ConsoleRequest, nonce: str) -> HttpResponse:
    """Only the button links, and only the account of whoever began it."""
    try:
        if request.method != "POST":
            account = chat_accounts.find(request.user, nonce)
            context = {"section": "profile", "account": account}
            return render(request, "notifications/chat_confirm.html", context)
        account = chat_accounts.confirm(request.user, nonce)
    except ChatLinkRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("%s is linked.") % account)
    return redirect("notifications:profile")


@page("", "POST")
def unlink(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    account = get_object_or_404(ChatAccount.objects.linked(), pk=pk, person=request.user)
    chat_accounts.unlink(account)
    messages.success(request, _("%s is not linked any more.") % account)
    return redirect("notifications:profile")


def _save(request: ConsoleRequest, form: SlackAppForm, app: SlackApp) -> HttpResponse:
    webhook = form.save(commit=False)
    form.fill(app)
    given = {name: form.cleaned_data[name] for name in ("token", "signing_secret")}
    slack_apps.save(webhook, app, by=request.user, **given)
    messages.success(request, _("“%s” is saved.") % webhook.name)
    return redirect("notifications:webhook", webhook.pk)


def _form(request: ConsoleRequest, form: SlackAppForm, edited: Webhook | None) -> HttpResponse:
    context = {
        "section": "notifications",
        "form": form,
        "webhook": edited,
        "manifest": "" if edited else manifest(),
        "new_app_url": new_app_url(manifest()),
    }
    return render(request, "notifications/slack_app_form.html", context)
