"""One push to one device: the kind of the event and an id, nothing of the call."""

from __future__ import annotations

import hashlib

import orjson
from django.utils import timezone
from django.utils.translation import gettext as translated

from accounts.models import User
from approvals.context import count_waiting
from approvals.models import Approval
from core.english import gettext as _
from core.seal import Unsealable, sign
from notifications import devices, push_keys, subscriptions
from notifications.events import Event
from notifications.guarded_requests import GONE, check_success, post
from notifications.mail_texts import compose
from notifications.mails import spoken_to
from notifications.models import Delivery, PushDevice
from notifications.outcomes import NOT_WANTED, Failed, Impossible, NotNeeded
from notifications.recipients import ASKED
from notifications.subscriptions import PushSubscription

PURPOSE = "push topic"
NOT_FOUND = 404
TOO_LARGE = 413
# A service keeps a message so long for a device that is off.
KEPT_S = 86400
URGENT = (*ASKED, Event.STOP_BEGAN, Event.BREAK_GLASS_USED)


def send(delivery: Delivery) -> None:
    device = delivery.device
    assert device is not None
    is_stopped = _check_wanted(delivery, device)
    subscription = _opened(device)
    with spoken_to(device.person):
        body = subscription.encrypt(_message(delivery, device.person, is_stopped=is_stopped))
    reply = post(subscription.url, _headers(delivery, subscription, is_stopped=is_stopped), body)
    if reply.status in (NOT_FOUND, GONE):
        devices.remove_gone(device)
        raise Impossible(_("The device takes no notifications any more."))
    if reply.status == TOO_LARGE:
        raise Impossible(_("The push service takes no message of this size."))
    check_success(reply)
    PushDevice.objects.filter(pk=device.pk).update(last_sent_at=timezone.now())


def topic(delivery: Delivery) -> str:
    """A newer push replaces an older one with this topic, which the push service reads: it tells
    nobody without our secret what the push is about. At most 32 characters.
    Source: RFC 8030, 5.4."""
    return sign(PURPOSE, about(delivery).encode()).hex()[:32]


def about(delivery: Delivery) -> str:
    """Names what the push is about, for the device alone."""
    if delivery.call_id:
        return delivery.call_id.hex
    # News of a server replace older ones; a stop, a token or an alarm is one of several.
    family = delivery.event.partition(".")[0]
    said = f"{family} {delivery.server}" if delivery.server else f"entry {delivery.entry_id}"
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _check_wanted(delivery: Delivery, device: PushDevice) -> bool:
    """Whether it is about a call that an emergency stop covers. Raises NotNeeded."""
    is_test = delivery.event == Event.TEST
    if not device.person.is_active or not (is_test or device.wants(delivery.event)):
        raise NotNeeded(NOT_WANTED)
    if is_test:
        return False
    # What a mail would say is not sent; whether its reader may still do something of it is asked.
    return bool(compose(delivery, device.person).notice)


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


def _message(delivery: Delivery, reader: User, *, is_stopped: bool) -> bytes:
    """In the language that is active."""
    title = str(Event(delivery.event).label)
    if is_stopped:
        title = translated("%(event)s (emergency stop in force)") % {"event": title}
    return orjson.dumps(
        {
            "kind": delivery.event,
            "title": title,
            "id": str(delivery.pk),
            "about": about(delivery),
            "pending": count_waiting() if reader.has_perm("approvals.view_approval") else 0,
        }
    )


def _headers(
    delivery: Delivery, subscription: PushSubscription, *, is_stopped: bool
) -> dict[str, str]:
    return {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(_kept_s(delivery, is_stopped=is_stopped)),
        "Urgency": "high" if delivery.event in URGENT else "normal",
        "Topic": topic(delivery),
        **push_keys.authorization(subscription.url),
    }


def _kept_s(delivery: Delivery, *, is_stopped: bool) -> int:
    """A pending call that has expired calls nobody; during an emergency stop none expires."""
    if is_stopped or delivery.event not in ASKED:
        return KEPT_S
    decide_by = Approval.objects.values_list("decide_by", flat=True).get(pk=delivery.call_id)
    return min(max(int((decide_by - timezone.now()).total_seconds()), 0), KEPT_S)
