"""Quiet hours and mutes: what waits, for whom, and what is sent all the same."""

from datetime import UTC, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from approvals import freezes
from approvals.models import Approval
from audit.models import Entry
from notifications import deliveries, services
from notifications.cursor import read_entries
from notifications.deliveries import create_reminders
from notifications.models import Delivery, DoNotDisturb
from notifications.quiet_hours import quiet_end
from notifications.sending import send_due
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox

pytestmark = pytest.mark.django_db

HERE = "/profile/notifications/"
BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (time(22), time(7))


@pytest.fixture
def soon(held: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pending call expires in minutes."""
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    Approval.objects.update(decide_by=timezone.now() + timedelta(minutes=5))


def quiet_now(person: User, hours: int = 2) -> datetime:
    """Quiet hours that began an hour ago; when they end."""
    now = timezone.now().replace(second=0, microsecond=0)
    begins, ends = now - timedelta(hours=1), now + timedelta(hours=hours)
    services.set_quiet_hours(person, begins.time(), ends.time())
    return ends


def night_and_day() -> tuple[str, str]:
    """Zones in which it is about midnight and about noon now."""
    hour = timezone.now().hour
    by_hour = {(hour + shift) % 24: f"Etc/GMT{-shift:+d}" for shift in range(-12, 13)}
    return by_hour[0], by_hour[12]


def test_mail_on_a_pending_call_waits_for_the_end_of_quiet_hours(
    alice: User, bob: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    ends = quiet_now(alice)

    read_entries()
    assert send_due() == 1

    assert mailbox.recipients == []
    waiting = Delivery.objects.get()
    assert (waiting.state, waiting.next_at, waiting.attempts) == ("pending", ends, 0)

    # The hours pass: they lie an hour back, and it is due.
    services.set_quiet_hours(alice, None, None)
    send_due()
    assert mailbox.recipients == ["alice@example.org"]


def test_a_new_time_zone_moves_what_waits_already(
    client: Client, alice: User, held: UUID, mailbox: Mailbox
) -> None:
    here, there = night_and_day()
    User.objects.filter(pk=alice.pk).update(time_zone=here)
    services.set_quiet_hours(alice, *NIGHT)
    reader(alice)
    read_entries()
    send_due()
    assert Delivery.objects.pending().filter(next_at__gt=timezone.now(), attempts=0).exists()
    assert mailbox.recipients == []

    client.force_login(alice)
    for zone in (here, there):
        client.post(reverse("accounts:profile"), {"time_zone": zone})
    read_entries()
    send_due()

    entry = Entry.objects.get(action="person.time_zone_set")
    assert (entry.actor, entry.details) == ("alice", {"time_zone": there})
    assert mailbox.recipients == ["alice@example.org"]


def test_a_reminder_before_expiry_passes_quiet_hours(
    alice: User, held: UUID, mailbox: Mailbox, soon: None
) -> None:
    reader(alice)
    quiet_now(alice)

    read_entries()
    assert create_reminders() == 1
    send_due()

    assert [message["Subject"][:3] for message in mailbox.messages] == ["Re:"]


def test_a_mute_holds_back_everything_but_the_account(
    alice: User, olga: User, held: UUID, mailbox: Mailbox, soon: None
) -> None:
    reader(alice)
    services.mute(alice, timezone.now() + timedelta(hours=1))
    read_entries()
    create_reminders()
    freezes.begin(by=olga, reason="Something is wrong.")
    read_entries()

    send_due()

    assert mailbox.recipients == []
    services.mute(alice, None)
    send_due()
    # The call, its reminder, and the stop.
    assert len(mailbox.recipients) == 3


def test_an_emergency_stop_passes_quiet_hours(
    alice: User, olga: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(olga)
    quiet_now(olga)
    freezes.begin(by=alice, reason="Something is wrong.")

    read_entries()
    send_due()

    assert len(mailbox.recipients) == 1


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-07-01T23:30", "2026-07-02T07:00"),
        ("2026-07-01T06:59", "2026-07-01T07:00"),
        ("2026-07-01T07:00", None),
        ("2026-07-01T21:59", None),
        ("2026-07-01T22:00", "2026-07-02T07:00"),
        # The nights in which the clock is put forward and back.
        ("2026-03-28T23:00", "2026-03-29T07:00"),
        ("2026-10-25T02:30", "2026-10-25T07:00"),
    ],
)
def test_quiet_hours_go_past_midnight_by_the_clock_on_the_wall(now: str, end: str | None) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=BERLIN)
    found = quiet_end(*NIGHT, BERLIN, at)

    assert (found and found.astimezone(BERLIN).strftime("%Y-%m-%dT%H:%M")) == end


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")


@given(
    begins=st.times(),
    ends=st.times(),
    zone=st.sampled_from(ZONES),
    at=st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
)
def test_quiet_hours_end_within_a_day_and_no_other_begins_there_twice(
    begins: time, ends: time, zone: str, at: datetime
) -> None:
    end = quiet_end(begins, ends, ZoneInfo(zone), at)
    if end is None:
        return
    assert timedelta(0) < end - at <= timedelta(hours=26)
    # Whatever lies between is quiet until the same moment.
    assert quiet_end(begins, ends, ZoneInfo(zone), at + (end - at) / 2) == end


def test_a_person_sets_their_own_on_the_page(client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(time_zone="Europe/Berlin")
    client.force_login(alice)
    assert "in Europe/Berlin" in client.get(HERE).text

    given = {"quiet-begins": "22:00", "quiet-ends": "07:00"}
    page = client.post(reverse("notifications:quiet_hours"), given, follow=True).text

    assert "Your quiet hours are saved." in page
    assert 'value="22:00"' in page
    chosen = DoNotDisturb.objects.get()
    assert (chosen.person_id, chosen.quiet_from, chosen.quiet_until) == (alice.pk, *NIGHT)
    entry = Entry.objects.get(action="quiet_hours.set")
    assert entry.actor == "alice"
    assert entry.details == {"hours": "22:00–07:00", "time_zone": "Europe/Berlin"}

    until = (timezone.now() + timedelta(hours=3)).astimezone(BERLIN)
    page = client.post(
        reverse("notifications:mute"), {"mute-until": f"{until:%Y-%m-%dT%H:%M}"}, follow=True
    ).text
    assert "Muted until" in page
    muted = DoNotDisturb.objects.get().muted_until
    assert muted == until.replace(second=0, microsecond=0)
    page = client.post(reverse("notifications:mute"), {"end": "1"}, follow=True).text
    assert "You are notified again." in page
    assert DoNotDisturb.objects.get().muted_until is None
    actions = Entry.objects.filter(action__startswith="notifications.").order_by("id")
    assert [one.action for one in actions] == ["notifications.muted", "notifications.unmuted"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("quiet_hours", {"quiet-begins": "22:00"}, "Give both times, or neither."),
        (
            "quiet_hours",
            {"quiet-begins": "22:00", "quiet-ends": "22:00"},
            "The two times are the same.",
        ),
        ("quiet_hours", {"quiet-begins": "25:00", "quiet-ends": "07:00"}, "Enter a valid time."),
        ("mute", {"mute-until": "2020-01-01T00:00"}, "within the next 30 days"),
        ("mute", {"mute-until": "2999-01-01T00:00"}, "within the next 30 days"),
        ("mute", {}, "required"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(
    client: Client, alice: User, name: str, given: dict[str, str], said: str
) -> None:
    client.force_login(alice)

    page = client.post(reverse(f"notifications:{name}"), given)

    assert page.status_code == 200
    assert said in page.text
    assert not DoNotDisturb.objects.exists()


def test_nobody_sets_them_signed_out_or_by_a_link(client: Client, alice: User) -> None:
    for name in ("quiet_hours", "mute"):
        address = reverse(f"notifications:{name}")
        assert client.post(address).status_code == 302
        client.force_login(alice)
        assert client.get(address).status_code == 405
        client.logout()
    assert not DoNotDisturb.objects.exists()
