"""Entries on messages: that one was delivered, and who followed its link.

A link opens nothing by itself: others see what they may see anyway, and sign in like everybody. It
is known once for each message and person, so no program that follows links can flood the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Func, Value
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts import attempts
from accounts.models import User
from audit.models import ClockTime
from audit.services import SYSTEM, Actor, record
from core.english import gettext as _
from notifications.events import Event
from notifications.models import Delivery

# People of one message, other than its one reader.
FOLLOWERS_MAX = 20
READS = ("GET", "HEAD")

View = Callable[..., HttpResponseBase]


def note_sent(delivery: Delivery) -> None:
    """In the transaction that says so on the row."""
    if delivery.event != Event.TEST:
        _record("notification.sent", delivery, SYSTEM)


def note_given_up(delivery: Delivery, why: str) -> None:
    """In the transaction that says so on the row."""
    if delivery.event != Event.TEST:
        _record("notification.given_up", delivery, SYSTEM, why)


def note_dropped(delivery: Delivery, why: str) -> None:
    """In the transaction that says so on the row."""
    if delivery.event != Event.TEST:
        _record("notification.dropped", delivery, SYSTEM, why)


@transaction.atomic
def note_follower(delivery: Delivery, person: User) -> None:
    """The person, signed in, followed its link."""
    if delivery.webhook:
        # Whoever reads the chat is its reader.
        if _is_new_follower(delivery, person):
            _record("notification.opened", delivery, person.actor)
    elif delivery.reader == person:
        for one in (delivery, *_companions(delivery)):
            if _row(one).filter(opened_at=None).update(opened_at=ClockTime()):
                _record("notification.opened", one, person.actor)
    elif _is_new_follower(delivery, person):
        said = _("The message was sent to another user: the link opened nothing for this one.")
        _record("notification.forwarded", delivery, person.actor, said)


def notes_unsigned(view: View) -> View:
    """For the page of a link: a program that scans messages, or a reader who signs in next."""
    return notes_strangers(lambda _request, pk, **_more: _note_unsigned(pk))(view)


def notes_strangers(note: Callable[..., None]) -> Callable[[View], View]:
    """For a page that a link leads to: `note` is called with what the view is called with."""

    def decorate(view: View) -> View:
        @wraps(view)
        def noting(request: HttpRequest, **named: Any) -> HttpResponseBase:
            answer = view(request, **named)
            if request.method in READS and not request.user.is_authenticated:
                note(request, **named)
            return answer

        return noting

    return decorate


@transaction.atomic
def _note_unsigned(pk: UUID) -> None:
    new = Delivery.objects.with_link().filter(pk=pk, unsigned_at=None)
    if new.update(unsigned_at=ClockTime()):
        delivery = Delivery.objects.for_page().get(pk=pk)
        _record("notification.unsigned", delivery, SYSTEM, _("Nobody was signed in."))


@transaction.atomic
def note_unsigned_link(request: HttpRequest, link: str, about: str, owner: str) -> None:
    """Records, once, that a link to confirm something was followed."""
    if attempts.is_first_visit(request, link):
        why = _("Nobody was signed in.")
        record("notification.unsigned", actor=SYSTEM, reason=why, event=about, person=owner)


def note_mistaken(person: User, owner: int) -> None:
    """A link that confirms the address of `owner`, pressed by somebody else: a mail that was
    forwarded, or read in another's mailbox."""
    name = User.objects.filter(pk=owner).values_list("username", flat=True).first()
    why = _("The link was sent to another user, and confirmed nothing.")
    record("person.address_mistaken", actor=person.actor, reason=why, person=name or "")


def _companions(delivery: Delivery) -> Iterable[Delivery]:
    """Other calls of the same mail, which has one link to all."""
    if delivery.channel != Delivery.Channel.EMAIL or delivery.event != Event.APPROVAL_NEEDED:
        return ()
    mine = Delivery.objects.for_page().filter(person=delivery.person_id, event=delivery.event)
    return mine.filter(receipt=str(delivery.pk))


def _is_new_follower(delivery: Delivery, person: User) -> bool:
    known = _row(delivery).filter(strangers__len__lt=FOLLOWERS_MAX)
    added = Func(F("strangers"), Value(person.pk), function="array_append")
    return bool(known.exclude(strangers__contains=[person.pk]).update(strangers=added))


def _row(delivery: Delivery) -> Any:
    return Delivery.objects.filter(pk=delivery.pk)


def facts(delivery: Delivery) -> dict[str, Any]:
    """Details that entries on a message have."""
    reader = delivery.reader
    return {
        "event": delivery.event,
        "delivery": str(delivery.pk),
        "channel": delivery.channel,
        **({"person": reader.username} if reader else {}),
        **({"webhook": delivery.webhook.name} if delivery.webhook else {}),
        **({"device": delivery.device.name} if delivery.device else {}),
    }


def _record(action: str, delivery: Delivery, actor: Actor, reason: str = "") -> None:
    record(
        action,
        actor=actor,
        reason=reason,
        call_id=delivery.call_id,
        server=delivery.server,
        **facts(delivery),
    )
