"""A person's own settings: an address, and the events for which they want mail."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from notifications import services
from notifications.forms import MailForm
from notifications.mails import mail_folder
from notifications.models import MailRecipient, usual_events


@page("", "GET", "HEAD", "POST")
def notifications(request: ConsoleRequest) -> HttpResponse:
    recipient = MailRecipient.objects.filter(person=request.user).exclude(address="").first()
    form = MailForm(request.POST or None, initial=_initial(recipient))
    if request.method == "POST" and form.is_valid():
        return _save(request, form)
    context = {
        "section": "profile",
        "form": form,
        "recipient": recipient,
        "folder": mail_folder(),
    }
    return render(request, "notifications/profile.html", context)


@page("", "POST")
def remove(request: ConsoleRequest) -> HttpResponse:
    services.remove_mail(request.user)
    messages.success(request, _("Your address is removed: you get no mail."))
    return redirect("notifications:profile")


@page("", "GET", "HEAD", "POST")
def confirm(request: ConsoleRequest, token: str) -> HttpResponse:
    """Scanners of mail follow links: only the button confirms, and only its owner's."""
    if request.method != "POST":
        return render(request, "notifications/confirm.html", {"section": "profile"})
    try:
        services.confirm_address(request.user, token)
    except services.AddressRejected as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Your address is confirmed: notifications are sent there."))
    return redirect("notifications:profile")


def _initial(recipient: MailRecipient | None) -> dict[str, object]:
    if recipient is None:
        return {"events": usual_events()}
    return {"address": recipient.address, "events": recipient.events}


def _save(request: ConsoleRequest, form: MailForm) -> HttpResponse:
    given = form.cleaned_data
    recipient = services.set_mail(request.user, given["address"], given["events"])
    messages.success(request, _("Your notifications are saved."))
    if recipient.confirmed_at is None:
        try:
            services.send_confirmation(recipient)
        except services.AddressRejected as error:
            messages.error(request, str(error))
        else:
            said = _("A link was sent to %s. Follow it to confirm the address.")
            messages.info(request, said % recipient.address)
    return redirect("notifications:profile")
