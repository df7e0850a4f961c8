"""Deliveries: made of entries, claimed by one sender at a time, tried again later and later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import Group
from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from accounts.role_changes import deciding_groups
from approvals.models import Approval
from audit.models import ClockTime, Entry
from audit.names import entries_of
from core.english import gettext as _
from notifications import begun_delegations, escalation, quiet_hours
from notifications.delivery_entries import note_dropped, note_given_up, note_sent
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
# Calls of one look.
REMIND_MOST = 100
# Whoever gets more mail than this on pending calls, within so long, gets one mail for all that come
# in the next minutes.
DIGEST_ABOVE = 5
DIGEST_MAX = 100
DIGEST_WITHIN = timedelta(minutes=10)
DIGEST_AFTER = timedelta(minutes=2)
# And not longer than this share of the time that is left to decide.
DIGEST_SHARE = 0.25
# A person's quiet hours are by the clock of their time zone.
ZONE_SET = "person.time_zone_set"
# What was delivered is kept for so long.
KEPT = timedelta(days=30)
# And what was given up, unless somebody sends it again or dismisses it.
DEAD_KEPT = timedelta(days=90)

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
    SELECT a.call_id, a.decide_by, (
        SELECT e.id FROM audit_entryrow e WHERE e.call_id = a.call_id AND e.seq = 1)
    FROM approvals_approval a JOIN calls_call c ON c.id = a.call_id
    WHERE a.state = 'waiting' AND c.clock_stopped_at IS NULL
      AND a.decide_by > clock_timestamp()
      AND a.decide_by <= clock_timestamp()
        + least(make_interval(secs => %s), (a.decide_by - a.asked_at) * %s)
      AND a.call_id <> ALL(%s)
      AND NOT EXISTS (
        SELECT FROM notifications_delivery d
        WHERE d.call_id = a.call_id AND d.event = 'approval.reminder')
    ORDER BY a.decide_by LIMIT %s
"""


def create_for(entries: Iterable[Entry]) -> None:
    """In the caller's transaction, which also remembers that they were read."""
    made = [(one, event) for one in entries if (event := event_of(one.action, one.from_state))]
    made = [(one, event) for one, event in made if not _has_own_entries(one) and _is_news(one)]
    if made:
        _store(made)


def _has_own_entries(entry: Entry) -> bool:
    """Whether it says of groups only what each of them has an entry for, since it decides."""
    details = entry.details or {}
    if entry.action != "person.groups_set" or "after" not in details:
        return False
    changed = {*details["before"]} ^ {*details["after"]}
    deciding = deciding_groups(Group.objects.filter(name__in=changed))
    return changed == {one.name for one in deciding}


def _is_news(entry: Entry) -> bool:
    """A server is said to be reachable again only where it was unreachable before: not the first
    time."""
    if entry.action != "server.reached":
        return True
    changes = entries_of(["server.lost", "server.reached"]).filter(server=entry.server)
    before = changes.filter(pk__lt=entry.pk).order_by("-pk").first()
    return before is not None and before.action == "server.lost"


def create_reminders(done: dict[UUID, datetime] | None = None) -> int:
    """For each pending call that expires soon, once; how many calls they are. `done`: when the
    calls of earlier looks expire. Those of which nobody wants a reminder would come again at each
    look, before all others."""
    done = {} if done is None else done
    for call in [call for call, expires_at in done.items() if expires_at < timezone.now()]:
        del done[call]
    with connection.cursor() as cursor:
        cursor.execute(EXPIRING, [REMIND_BEFORE_S, REMIND_SHARE, list(done), REMIND_MOST])
        rows = cursor.fetchall()
    ids = [entry for _call, _expires_at, entry in rows if entry]
    entries = list(Entry.objects.filter(pk__in=ids)) if ids else []
    if entries:
        with transaction.atomic():
            _store([(one, Event.APPROVAL_REMINDER) for one in entries])
    done.update((call, expires_at) for call, expires_at, _entry in rows)
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


@transaction.atomic
def create_for_delegates() -> int:
    """For the calls that were pending as delegations began; how many delegations began."""
    begun = begun_delegations.claim()
    if not begun:
        return 0
    audience = Audience()
    for one in begun:
        found = begun_delegations.receivers(one, audience)
        _insert([_delivery(entry, Event.APPROVAL_NEEDED, to) for entry, to in found])
    return len(begun)


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
    asked, ends = _asked_lately(made), _ends(made)
    for one in made:
        if one.event == Event.DEFINITION_REVIEW and not one.webhook_id:
            if not reviews.is_first(one):
                continue
            one.next_at = timezone.now() + GATHERING
        elif one.event == Event.APPROVAL_NEEDED and one.person_id:
            asked[one.person_id] += 1
            if asked[one.person_id] > DIGEST_ABOVE:
                one.next_at = _digest_at(ends.get(one.call_id))
        yield one


def _ends(made: list[Delivery]) -> dict[UUID | None, datetime]:
    """Until when these calls can be decided."""
    calls = {one.call_id for one in made if one.event == Event.APPROVAL_NEEDED and one.person_id}
    found = Approval.objects.filter(pk__in=calls - {None}) if calls else Approval.objects.none()
    return dict(found.values_list("pk", "decide_by"))


def _digest_at(decide_by: datetime | None) -> datetime:
    now = timezone.now()
    left = max((decide_by - now) * DIGEST_SHARE, timedelta(0)) if decide_by else DIGEST_AFTER
    return now + min(left, DIGEST_AFTER)


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
    # No index helps where the time is that of the clock, which goes on while rows are read.
    lately = Delivery.objects.order_by().filter(
        event=Event.APPROVAL_NEEDED,
        person__in=readers - {None},
        created_at__gt=Now() - DIGEST_WITHIN,
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


@transaction.atomic
def drop(delivery: Delivery, why: str) -> None:
    if _end(delivery, Delivery.State.DROPPED, why):
        note_dropped(delivery, why)
        _replace(delivery, [Delivery.State.PENDING, Delivery.State.SENT])


@transaction.atomic
def give_up(delivery: Delivery, why: str) -> None:
    # Also where it went with its device, which is gone.
    if _end(delivery, Delivery.State.DEAD, why) or not Delivery.objects.contains(delivery):
        note_given_up(delivery, why)
    _ask_others(delivery)


def _ask_others(delivery: Delivery) -> None:
    """Where its reader is told of the pending call in no other way: whoever comes next, or all."""
    if _is_alone(delivery, [Delivery.State.PENDING, Delivery.State.SENT]):
        _ask_next(delivery)


def _replace(delivery: Delivery, ways: list[Delivery.State]) -> None:
    """Asks others where those who were notified could not decide the call, with the votes that
    there are."""
    if not _is_alone(delivery, ways):
        return
    waiting = Approval.objects.waiting().filter(pk=delivery.call_id)
    entry = Entry.objects.filter(pk=delivery.entry_id).first()
    if entry is None or not waiting.exists():
        return
    if not escalation.can_suffice(entry, Audience()):
        _ask_next(delivery)


def _is_alone(delivery: Delivery, ways: list[Delivery.State]) -> bool:
    """Whether its reader has no other message, in one of these states, that asks on the call."""
    reader = delivery.reader
    if reader is None or not delivery.call_id or delivery.event != Event.APPROVAL_NEEDED:
        return False
    same = Delivery.objects.filter(call_id=delivery.call_id, event=delivery.event)
    theirs = same.filter(Q(person=reader) | Q(device__person=reader)).exclude(pk=delivery.pk)
    return not theirs.filter(state__in=ways).exists()


def _ask_next(delivery: Delivery) -> None:
    assert delivery.call_id is not None
    if escalation.hurry(delivery.call_id):
        return
    if entry := Entry.objects.filter(pk=delivery.entry_id).first():
        receivers = escalation.everybody(entry, Audience())
        _insert([_delivery(entry, Event.APPROVAL_NEEDED, one) for one in receivers])


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


@transaction.atomic
def postpone(delivery: Delivery, until: datetime) -> None:
    """Its reader wants it then. This was no attempt. Who wanted no messages as it was made was
    replaced then."""
    is_mine = _own(delivery).update(next_at=until, attempts=F("attempts") - 1)
    if is_mine and quiet_hours.began_since(delivery):
        _replace(delivery, [Delivery.State.SENT])


def release(person: User) -> None:
    """The person's messages that were never tried are due now."""
    theirs = Q(person=person) | Q(device__person=person)
    Delivery.objects.pending().filter(theirs, attempts=0).update(next_at=ClockTime())


def follow_time_zones(entries: Iterable[Entry]) -> None:
    """Messages that wait for quiet hours in a former time zone are looked at again. Runs in the
    transaction that remembers that the entries were read."""
    moved = {one.actor_id or 0 for one in entries if one.action == ZONE_SET}
    for person in User.objects.filter(pk__in=moved, do_not_disturb__isnull=False):
        release(person)


def send_again(delivery: Delivery) -> bool:
    """Queues it once more with the same id; False if it is not repeatable."""
    return bool(_queue(Delivery.objects.repeatable().filter(pk=delivery.pk)))


def send_all_again(receiver: str) -> int:
    """How many of those that were given up are queued once more."""
    return _queue(Delivery.objects.dead().going_to(receiver))


def dismiss(dead: models.QuerySet[Delivery]) -> int:
    """How many of these that were given up are not needed any more."""
    why = _("It was given up, and dismissed.")
    return dead.filter(state=Delivery.State.DEAD).update(state=Delivery.State.DROPPED, error=why)


def _queue(ended: models.QuerySet[Delivery]) -> int:
    return Delivery.objects.filter(pk__in=ended.values("pk")).update(
        state=Delivery.State.PENDING, attempts=0, next_at=ClockTime(), ended_at=None
    )


def drop_all(why: str) -> int:
    pending = Delivery.objects.pending()
    return pending.update(state=Delivery.State.DROPPED, ended_at=ClockTime(), error=why[:500])


def remove_old(most: int = 1000) -> int:
    now, dead = timezone.now(), Q(state=Delivery.State.DEAD)
    is_old = ~dead & Q(ended_at__lt=now - KEPT) | dead & Q(ended_at__lt=now - DEAD_KEPT)
    ended = Delivery.objects.exclude(state=Delivery.State.PENDING).filter(is_old)
    old = list(ended.values_list("pk", flat=True)[:most])
    removed, _each = Delivery.objects.filter(pk__in=old).delete()
    return removed


def _end(delivery: Delivery, state: Delivery.State, why: str) -> bool:
    return bool(_own(delivery).update(state=state, ended_at=ClockTime(), error=why[:500]))


def _own(delivery: Delivery) -> models.QuerySet[Delivery]:
    """The row as this attempt claimed it: one that took too long changes nothing any more."""
    return Delivery.objects.pending().filter(pk=delivery.pk, attempts=delivery.attempts)


def _same_place(delivery: Delivery) -> models.QuerySet[Delivery]:
    there = Q(channel=delivery.channel, webhook=delivery.webhook_id)
    if delivery.device:
        there &= Q(device__in=PushDevice.objects.filter(host=delivery.device.host))
    return Delivery.objects.pending().filter(there).exclude(pk=delivery.pk)
