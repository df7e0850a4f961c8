"""A person's own settings: an address, devices, and the events for which each is notified."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import password_reset
from accounts.http import ConsoleRequest
from accounts.models import User
from accounts.views.proofs import check_password
from core.errors import CountersignError
from core.http import page
from notifications import chat_accounts, push_keys, services
from notifications.delivery_entries import notes_strangers
from notifications.forms import DevicesForm, MailForm, MuteForm, QuietHoursForm
from notifications.mails import mail_folder
from notifications.models import ChatAccount, DoNotDisturb, MailRecipient, PushDevice, usual_events
from notifications.outcomes import Impossible


@page("", "GET", "HEAD", "POST")
def notifications(request: ConsoleRequest) -> HttpResponse:
    recipient = MailRecipient.objects.filter(person=request.user).exclude(address="").first()
    form = MailForm(request.POST or None, initial=_initial(recipient))
    if request.method == "POST" and form.is_valid():
        return _save(request, form)
    return show(request, form=form)


def show(request: ConsoleRequest, **given: object) -> HttpResponse:
    """The page; a form that was sent and is wrong stands in it as it was sent."""
    recipient = MailRecipient.objects.filter(person=request.user).exclude(address="").first()
    context = {
        "section": "profile",
        "form": MailForm(initial=_initial(recipient)),
        "recipient": recipient,
        "folder": mail_folder(),
        **_devices(request.user),
        **_do_not_disturb(request.user),
        "chat_accounts": ChatAccount.objects.linked().filter(person=request.user),
        "is_chat_offered": chat_accounts.is_offered(),
        **given,
    }
    return render(request, "notifications/profile.html", context)


def _do_not_disturb(person: User) -> dict[str, object]:
    chosen = DoNotDisturb.objects.filter(person=person).first() or DoNotDisturb()
    until = chosen.muted_until
    return {
        "quiet_form": QuietHoursForm(
            initial={"begins": chosen.quiet_from, "ends": chosen.quiet_until}
        ),
        "mute_form": MuteForm(),
        "muted_until": until if until and until > timezone.now() else None,
    }


def _devices(person: User) -> dict[str, object]:
    mine = list(PushDevice.objects.filter(person=person))
    return {
        "devices": mine,
        "devices_form": DevicesForm(initial={"events": mine[-1].events}) if mine else None,
        **_push(),
    }


def _push() -> dict[str, str]:
    """The key that browsers want, or why there is none."""
    if not settings.PUSH_HOSTS:
        return {
            "no_push": _(
                "The host allows no push service (COUNTERSIGN_PUSH_HOSTS), so no device can be "
                "notified."
            )
        }
    try:
        return {"push_key": push_keys.public_key()}
    except Impossible as error:
        return {"no_push": str(error)}


@page("", "POST")
def allow_reset(request: ConsoleRequest) -> HttpResponse:
    """Asks for the password: the mailbox could set another one from then on."""
    allows = request.POST.get("allow") == "1"
    try:
        if allows:
            check_password(request)
            services.check_confirmed(request.user)
        password_reset.set_allowed(request.user, allows)
    except CountersignError as error:
        messages.error(request, str(error))
    else:
        said = (
            _("A link for a new password may be sent to your address.")
            if allows
            else _("No link for a new password is sent to you.")
        )
        messages.success(request, said)
    return redirect("notifications:profile")


@page("", "POST")
def remove(request: ConsoleRequest) -> HttpResponse:
    services.remove_mail(request.user)
    messages.success(request, _("Your address is removed: you get no mail."))
    return redirect("notifications:profile")


@notes_strangers(services.note_unsigned)
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
