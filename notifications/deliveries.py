"""Deliveries: made of entries, claimed by one sender at a time, tried again later and later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import User
from audit.models import ClockTime, Entry
from notifications import escalation
from notifications.delivery_entries import note_sent
from notifications.events import Event, event_of
from notifications.models import Delivery, MailRecipient, PushDevice, Webhook
from notifications.recipients import Audience

# Longer than any sender takes for one message; a sender that died is not waited for longer.
LEASE_S = 120
# Before each further attempt, in seconds: a day altogether.
RETRY_AFTER_S = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800, 28800)
ATTEMPTS_MAX = len(RETRY_AFTER_S) + 1
# A receiver that wants to be left alone for longer is tried again all the same.
RETRY_AFTER_MAX_S = 86400
# Where one could not be delivered, others for the same place are not tried at once.
SPARED = timedelta(seconds=5)
# Many tools are found at once: the mail on them waits for the last.
GATHERING = timedelta(seconds=60)
# A pending call that expires so soon is reminded of, once no more than this share of its time is
# left.
REMIND_BEFORE_S = 900
REMIND_SHARE = 0.25
# Whoever gets more mail than this on pending calls, within so long, gets one mail for all that come
# in the next minutes.
DIGEST_ABOVE = 5
DIGEST_MAX = 100
DIGEST_WITHIN = timedelta(minutes=10)
DIGEST_AFTER = timedelta(minutes=2)
# What was delivered is kept for so long.
KEPT = timedelta(days=30)

CLAIM = """
    UPDATE notifications_delivery
    SET attempts = attempts + 1, next_at = clock_timestamp() + make_interval(secs => %s)
    WHERE id = (
        SELECT id FROM notifications_delivery
        WHERE state = 'pending' AND next_at <= clock_timestamp()
        ORDER BY next_at, entry_id FOR UPDATE SKIP LOCKED LIMIT 1)
    RETURNING id
"""
EXPIRING = """
    SELECT a.call_id, (
        SELECT e.id FROM audit_entryrow e WHERE e.call_id = a.call_id AND e.seq = 1)
    FROM approvals_approval a JOIN calls_call c ON c.id = a.call_id
    WHERE a.state = 'waiting' AND c.clock_stopped_at IS NULL
      AND a.decide_by > clock_timestamp()
      AND a.decide_by <= clock_timestamp()
        + least(make_interval(secs => %s), (a.decide_by - a.asked_at) * %s)
      AND NOT EXISTS (
        SELECT FROM notifications_delivery d
        WHERE d.call_id = a.call_id AND d.event = 'approval.reminder')
    ORDER BY a.decide_by LIMIT 100
"""


def create_for(entries: Iterable[Entry]) -> None:
    """In the caller's transaction, which also remembers that they were read."""
    made = [(one, event) for one in entries if (event := event_of(one.action, one.from_state))]
    if made:
        _store(made)


def create_reminders() -> int:
    """For each pending call that expires soon, once; how many calls they are."""
    with connection.cursor() as cursor:
        cursor.execute(EXPIRING, [REMIND_BEFORE_S, REMIND_SHARE])
        ids = [entry for _call, entry in cursor.fetchall() if entry]
    entries = list(Entry.objects.filter(pk__in=ids)) if ids else []
    if entries:
        with transaction.atomic():
            _store([(one, Event.APPROVAL_REMINDER) for one in entries])
    return len(entries)


@transaction.atomic
def create_escalated() -> int:
    """For the steps of escalation policies that are due; how many they are."""
    due = escalation.claim_due()
    if not due:
        return 0
    entries = Entry.objects.in_bulk([one.entry_id for one in due])
    audience = Audience()
    for one in due:
        entry = entries.get(one.entry_id)
        if entry is None:
            # Its month was detached meanwhile: nobody decides on it any more.
            one.delete()
            continue
        receivers = escalation.go_on(one, entry, audience)
        _insert([_delivery(entry, Event.APPROVAL_NEEDED, to) for to in receivers])
    return len(due)


def create_test(
    entry: Entry, *, webhook: Webhook | None = None, device: PushDevice | None = None
) -> Delivery:
    receiver = webhook or device
    assert receiver is not None
    made = _delivery(entry, Event.TEST, receiver)
    made.save(force_insert=True)
    return made


def _store(events: list[tuple[Entry, Event]]) -> None:
    webhooks, audience = list(Webhook.objects.filter(enabled=True)), Audience()
    made: list[Delivery] = []
    for entry, event in events:
        made += [_delivery(entry, event, one) for one in webhooks if one.wants(event)]
        if event == Event.APPROVAL_NEEDED:
            # At once: whose turn is next depends on who was notified of the call before.
            receivers = escalation.begin(entry, audience)
            _insert([_delivery(entry, event, one) for one in receivers])
        else:
            made += [_delivery(entry, event, one) for one in audience.readers(entry, event)]
    _insert(made)


def _insert(made: list[Delivery]) -> None:
    Delivery.objects.bulk_create(_gathered(made), ignore_conflicts=True)


def _delivery(entry: Entry, event: Event, to: MailRecipient | Webhook | PushDevice) -> Delivery:
    made = Delivery(entry_id=entry.pk, event=event, call_id=entry.call_id, server=entry.server)
    match to:
        case MailRecipient():
            made.channel, made.person = Delivery.Channel.EMAIL, to.person
        case Webhook():
            made.channel, made.webhook = Delivery.Channel.WEBHOOK, to
        case PushDevice():
            made.channel, made.device = Delivery.Channel.PUSH, to
    return made


def _gathered(made: list[Delivery]) -> Iterator[Delivery]:
    """Those that are stored: where one reader would get many, later ones wait for each other."""
    reviews = _Reviews()
    asked = _asked_lately(made)
    for one in made:
        if one.event == Event.DEFINITION_REVIEW and not one.webhook_id:
            if not reviews.is_first(one):
                continue
            one.next_at = timezone.now() + GATHERING
        elif one.event == Event.APPROVAL_NEEDED and one.person_id:
            asked[one.person_id] += 1
            if asked[one.person_id] > DIGEST_ABOVE:
                one.next_at = timezone.now() + DIGEST_AFTER
        yield one


class _Reviews:
    """Mails and pushes on definitions that are on their way: one for each receiver and server."""

    def __init__(self) -> None:
        self._known: set[tuple[int | None, UUID | None, str]] | None = None

    def is_first(self, one: Delivery) -> bool:
        if self._known is None:
            waiting = Delivery.objects.pending().filter(
                event=Event.DEFINITION_REVIEW, webhook__isnull=True, attempts=0
            )
            self._known = set(waiting.values_list("person_id", "device_id", "server"))
        key = (one.person_id, one.device_id, one.server)
        is_first = key not in self._known
        self._known.add(key)
        return is_first


def _asked_lately(made: list[Delivery]) -> Counter[int | None]:
    """How many pending calls each of these readers was told of by mail just now."""
    readers = {one.person_id for one in made if one.event == Event.APPROVAL_NEEDED}
    lately = Delivery.objects.filter(
        event=Event.APPROVAL_NEEDED,
        person__in=readers - {None},
        created_at__gt=ClockTime() - DIGEST_WITHIN,
    )
    return Counter(lately.values_list("person_id", flat=True))


def claim() -> Delivery | None:
    """The one that is due first. It is claimed again if its sender says nothing for LEASE_S."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [LEASE_S])
        row = cursor.fetchone()
    if not row:
        return None
    found = Delivery.objects.select_related("person", "webhook", "device__person")
    # It goes with its device, which somebody may remove at any time.
    return found.filter(pk=row[0]).first() or claim()


@transaction.atomic
def claim_companions(delivery: Delivery) -> list[Delivery]:
    """Other pending calls of which its reader is to be told, for the same mail: also those that
    would have waited, and none that somebody else is sending."""
    others = (
        Delivery.objects.pending()
        .filter(Q(attempts=0) | Q(next_at__lte=ClockTime()))
        .filter(event=Event.APPROVAL_NEEDED, person=delivery.person_id)
        .order_by("entry_id")
        .select_for_update(skip_locked=True)
    )
    found = list(others[:DIGEST_MAX])
    for one in found:
        one.attempts += 1
    Delivery.objects.filter(pk__in=[one.pk for one in found]).update(
        attempts=F("attempts") + 1, next_at=ClockTime() + timedelta(seconds=LEASE_S)
    )
    return found


def count_overdue(age: timedelta) -> int:
    """Deliveries that are due since so long, up to a few."""
    due = Delivery.objects.pending().filter(next_at__lte=ClockTime() - age)
    return due[:10].count()


@transaction.atomic
def mark_sent(delivery: Delivery, receipt: str = "") -> None:
    is_mine = _own(delivery).update(
        state=Delivery.State.SENT, ended_at=ClockTime(), error="", receipt=receipt[:64]
    )
    if is_mine:
        note_sent(delivery)


def drop(delivery: Delivery, why: str) -> None:
    _end(delivery, Delivery.State.DROPPED, why)


def give_up(delivery: Delivery, why: str) -> None:
    _end(delivery, Delivery.State.DEAD, why)


def retry_later(
    delivery: Delivery, why: str, *, spare_others: bool = True, retry_after_s: float = 0
) -> None:
    """After the usual time, or what its receiver wants; neither are others sent there before."""
    if delivery.attempts >= ATTEMPTS_MAX:
        give_up(delivery, why)
        return
    wanted = timedelta(seconds=min(retry_after_s, RETRY_AFTER_MAX_S))
    after = max(timedelta(seconds=RETRY_AFTER_S[delivery.attempts - 1]), wanted)
    _own(delivery).update(next_at=ClockTime() + after, error=why[:500])
    if spare_others:
        spared = ClockTime() + max(SPARED, wanted)
        _same_place(delivery).filter(next_at__lt=spared).update(next_at=spared)


def postpone(delivery: Delivery, until: datetime) -> None:
    """Its reader wants it then. This was no attempt."""
    _own(delivery).update(next_at=until, attempts=F("attempts") - 1)


def release(person: User) -> None:
    """The person's messages that were never tried are due now."""
    theirs = Q(person=person) | Q(device__person=person)
    Delivery.objects.pending().filter(theirs, attempts=0).update(next_at=ClockTime())


def send_again(delivery: Delivery) -> bool:
    """Queues it once more with the same id; False if it is not repeatable."""
    known = Delivery.objects.repeatable().filter(pk=delivery.pk).values("pk")
    return bool(
        Delivery.objects.filter(pk__in=known).update(
            state=Delivery.State.PENDING, attempts=0, next_at=ClockTime(), ended_at=None
        )
    )


def drop_all(why: str) -> int:
    pending = Delivery.objects.pending()
    return pending.update(state=Delivery.State.DROPPED, ended_at=ClockTime(), error=why[:500])


def remove_old(most: int = 1000) -> int:
    ended = Delivery.objects.exclude(state__in=[Delivery.State.PENDING, Delivery.State.DEAD])
    old = ended.filter(ended_at__lt=timezone.now() - KEPT).values_list("pk", flat=True)
    removed, _each = Delivery.objects.filter(pk__in=list(old[:most])).delete()
    return removed


def _end(delivery: Delivery, state: Delivery.State, why: str) -> None:
    _own(delivery).update(state=state, ended_at=ClockTime(), error=why[:500])


def _own(delivery: Delivery) -> models.QuerySet[Delivery]:
    """The row as this attempt claimed it: one that took too long changes nothing any more."""
    return Delivery.objects.pending().filter(pk=delivery.pk, attempts=delivery.attempts)


def _same_place(delivery: Delivery) -> models.QuerySet[Delivery]:
    there = Q(channel=delivery.channel, webhook=delivery.webhook_id)
    if delivery.device:
        there &= Q(device__in=PushDevice.objects.filter(host=delivery.device.host))
    return Delivery.objects.pending().filter(there).exclude(pk=delivery.pk)
