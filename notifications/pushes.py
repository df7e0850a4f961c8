"""One push to one device: the kind of the event and an id, nothing of the call."""

from __future__ import annotations

import hashlib

import orjson
from django.utils import timezone

from accounts.models import User
from approvals.context import count_waiting
from approvals.models import Approval
from core.english import gettext as _
from core.seal import Unsealable
from notifications import devices, push_keys, subscriptions
from notifications.events import Event
from notifications.guarded_requests import GONE, check_success, post
from notifications.mail_texts import compose
from notifications.mails import spoken_to
from notifications.models import Delivery, PushDevice
from notifications.outcomes import NOT_WANTED, Failed, Impossible, NotNeeded
from notifications.recipients import ASKED
from notifications.subscriptions import PushSubscription

NOT_FOUND = 404
TOO_LARGE = 413
# A service keeps a message so long for a device that is off.
KEPT_S = 86400
URGENT = (*ASKED, Event.STOP_BEGAN, Event.BREAK_GLASS_USED)


def send(delivery: Delivery) -> None:
    device = delivery.device
    assert device is not None
    _check_wanted(delivery, device)
    subscription = _opened(device)
    with spoken_to(device.person):
        body = subscription.encrypt(_message(delivery, device.person))
    reply = post(subscription.url, _headers(delivery, subscription), body)
    if reply.status in (NOT_FOUND, GONE):
        devices.remove_gone(device)
        raise NotNeeded(_("The device takes no notifications any more."))
    if reply.status == TOO_LARGE:
        raise Impossible(_("The push service takes no message of this size."))
    check_success(reply)
    PushDevice.objects.filter(pk=device.pk).update(last_sent_at=timezone.now())


def topic(delivery: Delivery) -> str:
    """Names what the push is about: a newer one replaces an older one. At most 32 characters.
    Source: RFC 8030, 5.4."""
    if delivery.call_id:
        return delivery.call_id.hex
    family = delivery.event.partition(".")[0]
    return hashlib.sha256(f"{family} {delivery.server}".encode()).hexdigest()[:32]


def _check_wanted(delivery: Delivery, device: PushDevice) -> None:
    """Raises NotNeeded."""
    is_test = delivery.event == Event.TEST
    if not device.person.is_active or not (is_test or device.wants(delivery.event)):
        raise NotNeeded(NOT_WANTED)
    if is_test:
        return
    # What a mail would say is not sent; whether its reader may still do something of it is asked.
    compose(delivery, device.person)


def _opened(device: PushDevice) -> PushSubscription:
    try:
        opened = subscriptions.opened(device)
        subscriptions.check_service(opened.url)
    except Unsealable as error:
        raise Impossible(
            _("Its subscription cannot be opened here: add the device again.")
        ) from error
    except subscriptions.SubscriptionRefused as error:
        raise Failed(str(error)) from error
    return opened


def _message(delivery: Delivery, reader: User) -> bytes:
    """In the language that is active."""
    return orjson.dumps(
        {
            "kind": delivery.event,
            "title": str(Event(delivery.event).label),
            "id": str(delivery.pk),
            "about": topic(delivery),
            "pending": count_waiting() if reader.has_perm("approvals.view_approval") else 0,
        }
    )


def _headers(delivery: Delivery, subscription: PushSubscription) -> dict[str, str]:
    return {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(_kept_s(delivery)),
        "Urgency": "high" if delivery.event in URGENT else "normal",
        "Topic": topic(delivery),
        **push_keys.authorization(subscription.url),
    }


def _kept_s(delivery: Delivery) -> int:
    """A pending call that has expired calls nobody."""
    if delivery.event not in ASKED:
        return KEPT_S
    decide_by = Approval.objects.values_list("decide_by", flat=True).get(pk=delivery.call_id)
    return min(max(int((decide_by - timezone.now()).total_seconds()), 0), KEPT_S)
