"""Webhooks, addresses and quiet hours: each change with its entry, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import password_reset
from accounts.actors import ServiceCaller, account_of
from accounts.models import User
from audit.models import ClockTime, Entry
from audit.services import record
from core import seal
from core.errors import CountersignError
from core.outbound import without_credentials
from notifications import chat_formats, deliveries, devices, mails, signatures
from notifications.delivery_entries import note_mistaken, note_unsigned_link
from notifications.mail_body import MailText
from notifications.models import (
    CHANNELS,
    Delivery,
    DoNotDisturb,
    MailRecipient,
    PushDevice,
    Webhook,
    usual_events,
)
from notifications.outcomes import Failed, Impossible
from notifications.ringing import ring_on_commit
from notifications.webhook_requests import ADDRESS_PURPOSE, PURPOSE, place

log = logging.getLogger(__name__)

# Receivers have so long to learn the new secret.
OVERLAP = timedelta(hours=24)
SALT = "notifications.address"
VIEW_PAYLOAD = "calls.view_payload"
CONFIRM_WITHIN = timedelta(hours=24)
LINK_EVERY = timedelta(minutes=1)


class AddressRejected(CountersignError):
    """The address was not confirmed; says why."""


@transaction.atomic
def add_webhook(webhook: Webhook, *, by: User | ServiceCaller, address: str = "") -> str:
    """Returns the secret, which nobody is shown again; "" for a chat, whose `address` is one."""
    secret = "" if webhook.is_chat else signatures.new_secret()
    webhook.created_by = account_of(by)
    webhook.takes_arguments = by.has_perm(VIEW_PAYLOAD)
    webhook.sealed_secret = _sealed(webhook, secret) if secret else b""
    _seal_address(webhook, address)
    webhook.save(force_insert=True)
    note("webhook.added", webhook, by)
    return secret


@transaction.atomic
def change_webhook(webhook: Webhook, *, by: User | ServiceCaller, address: str = "") -> None:
    """Without an address a chat keeps its own."""
    _seal_address(webhook, address)
    webhook.takes_arguments = by.has_perm(VIEW_PAYLOAD)
    webhook.save()
    note("webhook.changed", webhook, by)


@transaction.atomic
def set_webhook_enabled(webhook: Webhook, enabled: bool, *, by: User | ServiceCaller) -> None:
    if Webhook.objects.filter(pk=webhook.pk).exclude(enabled=enabled).update(enabled=enabled):
        note("webhook.enabled" if enabled else "webhook.disabled", webhook, by)


@transaction.atomic
def rotate_secret(webhook: Webhook, *, by: User | ServiceCaller) -> str:
    """The new secret; the old one signs as well for OVERLAP."""
    secret = signatures.new_secret()
    webhook.sealed_previous, webhook.sealed_secret = webhook.sealed_secret, _sealed(webhook, secret)
    webhook.previous_until = timezone.now() + OVERLAP
    webhook.save(update_fields=["sealed_previous", "sealed_secret", "previous_until"])
    note("webhook.secret_rotated", webhook, by)
    return secret


@transaction.atomic
def remove_webhook(webhook: Webhook, *, by: User | ServiceCaller) -> None:
    """With its deliveries: what was recorded stays."""
    note("webhook.removed", webhook, by)
    webhook.delete()


@transaction.atomic
def test_webhook(webhook: Webhook, *, by: User | ServiceCaller) -> Delivery:
    delivery = deliveries.create_test(note("webhook.tested", webhook, by), webhook=webhook)
    ring_on_commit()
    return delivery


@transaction.atomic
def test_device(device: PushDevice) -> Delivery:
    entry = devices.note("device.tested", device, device.person.actor)
    delivery = deliveries.create_test(entry, device=device)
    ring_on_commit()
    return delivery


@transaction.atomic
def send_again(delivery: Delivery, *, by: User | ServiceCaller) -> bool:
    """False if it is not repeatable."""
    if not deliveries.send_again(delivery):
        return False
    record("notification.sent_again", actor=by.actor, delivery=str(delivery.pk))
    ring_on_commit()
    return True


@transaction.atomic
def send_all_again(receiver: str, *, by: User | ServiceCaller) -> int:
    """Whatever was given up on its way there; how many they are."""
    if found := deliveries.send_all_again(receiver):
        record("notification.sent_again", actor=by.actor, **_to(receiver), count=found)
        ring_on_commit()
    return found


@transaction.atomic
def dismiss_all(receiver: str, *, by: User) -> int:
    if found := deliveries.dismiss(Delivery.objects.dead().going_to(receiver)):
        record("notification.dismissed", actor=by.actor, **_to(receiver), count=found)
    return found


@transaction.atomic
def dismiss(delivery: Delivery, *, by: User) -> bool:
    """False if it is not given up any more."""
    if not deliveries.dismiss(Delivery.objects.filter(pk=delivery.pk)):
        return False
    record("notification.dismissed", actor=by.actor, delivery=str(delivery.pk))
    return True


def _to(receiver: str) -> dict[str, str]:
    webhook = Webhook.objects.filter(pk=receiver).first() if receiver not in CHANNELS else None
    return {"webhook": webhook.name} if webhook else {"channel": receiver}


def set_mail(person: User, address: str, events: Sequence[str]) -> MailRecipient:
    """Stores both; a new address counts once its owner has followed the link sent there."""
    with transaction.atomic():
        recipient, _made = MailRecipient.objects.get_or_create(
            person=person, defaults={"address": address, "events": list(events)}
        )
        former = _without_address(recipient) if recipient.address != address else ""
        recipient.address, recipient.events = address, list(events)
        recipient.save()
    _tell_former(person, former)
    return recipient


def remove_mail(person: User) -> None:
    with transaction.atomic():
        recipient = MailRecipient.objects.filter(person=person).first()
        if recipient is None:
            return
        former = _without_address(recipient)
        # The row stays: whoever removes an address has no link sent any sooner.
        recipient.events = usual_events()
        recipient.save()
    _tell_former(person, former)


def _without_address(recipient: MailRecipient) -> str:
    """Returns the address that was confirmed, or "". The caller saves the row."""
    former = recipient.address if recipient.confirmed_at else ""
    recipient.address, recipient.confirmed_at = "", None
    password_reset.set_allowed(recipient.person, False)
    if former:
        record("person.address_removed", actor=recipient.person.actor)
    return former


def _tell_former(person: User, address: str) -> None:
    """A stolen session must not end the mail on the account in silence."""
    if not address:
        return
    with mails.spoken_to(person):
        said = MailText(
            _("Your e-mail address was removed from your account"),
            _("No notifications are sent here any more. If that was not you: end the sessions."),
            settings.PUBLIC_URL + reverse("accounts:sessions"),
            _("Open your sessions"),
            [(_("User"), person.username)],
        )
        message = mails.mail(address, said.subject, {"said": said, "is_of_account": True}, {})
    try:
        mails.transmit(message)
    except (Failed, Impossible) as error:
        # The change is made, and is an entry.
        log.warning("a former address was not told of its removal: %s", error)


@transaction.atomic
def set_quiet_hours(person: User, begins: time | None, ends: time | None) -> None:
    """Both, or neither: none are quiet."""
    DoNotDisturb.objects.update_or_create(
        person=person, defaults={"quiet_from": begins, "quiet_until": ends}
    )
    hours = f"{begins:%H:%M}–{ends:%H:%M}" if begins and ends else ""
    record("quiet_hours.set", actor=person.actor, hours=hours, time_zone=person.time_zone)
    _look_again(person)


@transaction.atomic
def mute(person: User, until: datetime | None) -> None:
    """Nothing is sent until then; None: it is over."""
    DoNotDisturb.objects.update_or_create(person=person, defaults={"muted_until": until})
    said = {"until": until.isoformat()} if until else {}
    record("notifications.muted" if until else "notifications.unmuted", actor=person.actor, **said)
    _look_again(person)


def _look_again(person: User) -> None:
    """Messages that wait for times chosen before are looked at now."""
    deliveries.release(person)
    ring_on_commit()


def check_confirmed(person: User) -> None:
    """Raises AddressRejected."""
    if not MailRecipient.objects.reachable().filter(person=person).exists():
        raise AddressRejected(_("Confirm your address first."))


def send_confirmation(recipient: MailRecipient) -> None:
    """At once, for somebody who waits for it; once a minute, since the address may be anybody's.
    Raises AddressRejected."""
    is_early = Q(link_sent_at__gt=ClockTime() - LINK_EVERY)
    mine = MailRecipient.objects.filter(pk=recipient.pk).exclude(is_early)
    if not mine.update(link_sent_at=ClockTime()):
        raise AddressRejected(_("A link was sent a moment ago: save again in a minute."))
    given = [recipient.person_id, recipient.address]
    path = reverse("notifications:confirm", args=[signing.dumps(given, salt=SALT)])
    with mails.spoken_to(recipient.person):
        said = MailText(
            _("Confirm your e-mail address"),
            _("Countersign sends its notifications here once you have confirmed the address."),
            settings.PUBLIC_URL + path,
            _("Confirm the address"),
        )
        message = mails.mail(recipient.address, said.subject, {"said": said}, {})
    try:
        mails.transmit(message)
    except (Failed, Impossible) as error:
        raise AddressRejected(str(error)) from error


@transaction.atomic
def _confirm(person: User, address: str) -> bool:
    mine = MailRecipient.objects.filter(person=person, address=address)
    if not mine.update(confirmed_at=ClockTime()):
        return False
    # The address itself is nobody else's business, and an entry is for good.
    record("person.address_confirmed", actor=person.actor)
    return True


def note_unsigned(request: HttpRequest, token: str) -> None:
    """A link that confirms an address was followed without a sign-in."""
    with suppress(signing.BadSignature):
        owner, _address = _opened(token)
        if name := User.objects.filter(pk=owner).values_list("username", flat=True).first():
            note_unsigned_link(request, token, "address.confirmation", name)


def _opened(token: str) -> tuple[int, str]:
    """Returns whose address it is, and which. Raises what Django says of a wrong signature."""
    owner, address = signing.loads(token, salt=SALT, max_age=CONFIRM_WITHIN)
    return owner, address


def confirm_address(person: User, token: str) -> None:
    """Raises AddressRejected, also of a link that was sent to somebody else or elsewhere."""
    try:
        owner, address = _opened(token)
    except signing.BadSignature:
        raise AddressRejected(_("The link is not valid any more. Have another one sent.")) from None
    if owner != person.pk:
        note_mistaken(person, owner)
    elif _confirm(person, address):
        return
    raise AddressRejected(_("The link was sent for another account or another address."))


def _sealed(webhook: Webhook, secret: str) -> bytes:
    return seal.seal(PURPOSE, secret.encode(), place=place(webhook))


def _seal_address(webhook: Webhook, address: str) -> None:
    if webhook.is_chat and address:
        webhook.url = chat_formats.hint(address)
        webhook.sealed_url = seal.seal(ADDRESS_PURPOSE, address.encode(), place=place(webhook))


def note(action: str, webhook: Webhook, by: User | ServiceCaller, **more: Any) -> Entry:
    """Writes the entry of what was done with a webhook."""
    return record(
        action,
        actor=by.actor,
        webhook=webhook.name,
        webhook_id=str(webhook.pk),
        format=webhook.format,
        # An entry is never changed.
        url=without_credentials(webhook.url),
        events=webhook.events,
        **more,
    )
