"""Devices that a person is notified on: each change with its entry, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import user_agents
from accounts.models import User
from audit.models import Entry
from audit.services import SYSTEM, Actor, record
from notifications import subscriptions
from notifications.models import PushDevice, usual_events
from notifications.subscriptions import PushSubscription, SubscriptionRefused

DEVICES_MAX = 20


@transaction.atomic
def add(person: User, given: PushSubscription, *, user_agent: str) -> PushDevice:
    """Stores the browser as this person's; whoever had it before has it no more. Raises
    SubscriptionRefused."""
    User.objects.select_for_update().get(pk=person.pk)
    mine = PushDevice.objects.filter(person=person).exclude(fingerprint=given.fingerprint)
    if mine.count() >= DEVICES_MAX:
        raise SubscriptionRefused(_("You have %s devices: remove one first.") % DEVICES_MAX)
    device = PushDevice(
        person=person,
        name=user_agents.device(user_agent),
        host=given.host,
        fingerprint=given.fingerprint,
        events=_events_of(person),
    )
    device.sealed_subscription = subscriptions.sealed(given, device)
    for old in PushDevice.objects.filter(fingerprint=given.fingerprint):
        remove(old, by=person.actor)
    device.save(force_insert=True)
    note("device.added", device, person.actor)
    return device


@transaction.atomic
def remove(device: PushDevice, *, by: Actor) -> None:
    """With its deliveries: what was recorded stays."""
    removed, _each = PushDevice.objects.filter(pk=device.pk).delete()
    if removed:
        note("device.removed", device, by)


def remove_gone(device: PushDevice) -> None:
    """Its push service knows it no more."""
    remove(device, by=SYSTEM)


def set_events(person: User, events: Sequence[str]) -> None:
    """Sets what all devices show, and those that are added later."""
    PushDevice.objects.filter(person=person).update(events=list(events))


def note(action: str, device: PushDevice, by: Actor) -> Entry:
    """Writes the entry of what was done with a device."""
    # The address is a secret, and an entry is for good.
    return record(
        action,
        actor=by,
        person=device.person.username,
        device=str(device.pk),
        name=device.name,
        host=device.host,
    )


def _events_of(person: User) -> list[str]:
    newest = PushDevice.objects.filter(person=person).order_by("-created_at").first()
    return newest.events if newest else usual_events()
