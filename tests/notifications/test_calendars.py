"""On-call calendars: what they say, whom they name, and hostile ones."""

import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from config.secret_rotation import SEALED
from notifications import calendar_reader, calendars, schedules
from notifications.cursor import read_entries
from notifications.models import Delivery, MailRecipient, OnCallCalendar, OnCallSchedule
from notifications.on_call import OnCallPlan, person_on_call
from notifications.tasks import read_calendars
from tests.console import scenery
from tests.notifications.calendar_files import CalendarHost, calendar, calendar_host
from tests.notifications.test_escalation import Ask, ask, lead, team, told
from tests.notifications.test_on_call import ask_on_call

__all__ = ["ask", "lead", "team"]

BERLIN = ZoneInfo("Europe/Berlin")
OWN_ZONE = """BEGIN:VTIMEZONE
TZID:Office
BEGIN:STANDARD
DTSTART:20001029T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0500
TZOFFSETTO:+0400
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20000326T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0400
TZOFFSETTO:+0500
END:DAYLIGHT
END:VTIMEZONE
"""


def read(text: str, begin: str = "2026-03-23", days: int = 14, zone: str = "Europe/Berlin") -> Any:
    begins = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    wanted = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(days)).isoformat()}
    return calendar_reader.read({"text": text, "zone": zone, **wanted})


def begins(found: Any) -> list[str]:
    return [f"{datetime.fromisoformat(one['begins_at']):%m-%d %H:%M}" for one in found]


@pytest.mark.parametrize(
    ("event", "zones", "shown"),
    [
        # The clock is put forward on Sunday 29 March: nine o'clock stays nine o'clock.
        (
            "UID:1\nDTSTART;TZID=Europe/Berlin:20260328T090000\nDURATION:P1D\nRRULE:FREQ=DAILY;COUNT=3",
            "",
            ["03-28 08:00", "03-29 07:00", "03-30 07:00"],
        ),
        # A zone that the calendar defines itself.
        (
            "UID:1\nDTSTART;TZID=Office:20260328T090000\nDURATION:PT8H\nRRULE:FREQ=DAILY;COUNT=2",
            OWN_ZONE,
            ["03-28 05:00", "03-29 04:00"],
        ),
        # Days and times without a zone are the schedule's.
        (
            "UID:1\nDTSTART;VALUE=DATE:20260329\nRRULE:FREQ=DAILY;COUNT=2",
            "",
            ["03-28 23:00", "03-29 22:00"],
        ),
        ("UID:1\nDTSTART:20260330T090000\nDTEND:20260330T100000", "", ["03-30 07:00"]),
        ("UID:1\nDTSTART:20260330T090000Z\nDTEND:20260330T100000Z", "", ["03-30 09:00"]),
        # Weekly since years, without an end, and with one left out.
        (
            "UID:1\nDTSTART:20200106T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY\nEXDATE:20260323T090000Z",
            "",
            ["03-30 09:00"],
        ),
        ("UID:1\nSTATUS:CANCELLED\nDTSTART:20260330T090000Z\nDURATION:PT1H", "", []),
        ("UID:1\nDTSTART:20260330T090000Z\nDTEND:20260330T090000Z", "", []),
        # Twice a day is a shift plan.
        (
            "UID:1\nDTSTART:20260330T090000Z\nDURATION:PT12H\nRRULE:FREQ=DAILY;BYHOUR=9,21;COUNT=3",
            "",
            ["03-30 09:00", "03-30 21:00", "03-31 09:00"],
        ),
    ],
)
def test_events_are_shifts(event: str, zones: str, shown: list[str]) -> None:
    assert begins(read(calendar(event, zones=zones))) == shown


def test_one_occurrence_is_moved_and_of_one_uid_one_event_counts() -> None:
    text = calendar(
        "UID:1\nSUMMARY:alice\nDTSTART:20260323T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2",
        "UID:1\nSUMMARY:bob\nRECURRENCE-ID:20260324T090000Z\nDTSTART:20260324T120000Z\nDURATION:PT1H",
        "UID:2\nSUMMARY:carol\nDTSTART:20260325T090000Z\nDURATION:PT1H",
        "UID:2\nSUMMARY:dora\nDTSTART:20260326T090000Z\nDURATION:PT1H",
    )

    found = read(text)

    assert begins(found)[:2] == ["03-23 09:00", "03-24 12:00"]
    assert [one["names"][0] for one in found[:2]] == ["alice", "bob"]
    # Which of the two, the library says: the other is an older state of the same event.
    assert [one["names"][0] for one in found[2:]] in (["carol"], ["dora"])


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("SUMMARY:alice", ["alice"]),
        ("SUMMARY:On call: Alice <Alice@Example.org>", ["alice@example.org", "on", "call"]),
        (
            "SUMMARY:x\nORGANIZER;CN=Olga:mailto:olga@example.org\nATTENDEE;CN=Al:MAILTO:al@example.org",
            ["al@example.org", "al", "x", "olga@example.org", "olga"],
        ),
        (
            "ATTENDEE;PARTSTAT=DECLINED:mailto:al@example.org\nATTENDEE;CUTYPE=ROOM:mailto:r@example.org",
            [],
        ),
        (f"SUMMARY:{'a' * 300}", []),
    ],
)
def test_names_come_in_their_order(lines: str, names: list[str]) -> None:
    found = read(calendar(f"UID:1\n{lines}\nDTSTART:20260330T090000Z\nDURATION:PT1H"))[0]["names"]

    assert [one for one in found if one in names] == names
    assert bool(found) == bool(names)
    assert len(found) <= calendar_reader.NAMES_MAX


MONDAYS = "UID:1\nDTSTART;TZID={}:{:%Y%m%dT%H%M%S}\nDURATION:PT8H\nRRULE:FREQ={}"


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    st.dates(date(2024, 1, 1), date(2027, 1, 1)),
    st.times(time(4), time(23)).map(lambda one: one.replace(microsecond=0)),
    st.sampled_from([("DAILY", 1), ("WEEKLY", 7)]),
)
@hypothesis_settings(deadline=None, max_examples=40)
def test_recurrences_keep_the_clock_on_the_wall(
    zone: str, day: date, at: time, every: tuple[str, int]
) -> None:
    first, (word, days) = datetime.combine(day, at), every
    begin = day + timedelta(days=40)

    found = read(calendar(MONDAYS.format(zone, first, word)), begin.isoformat(), 30, zone)

    moments = [datetime.fromisoformat(one["begins_at"]).astimezone(ZoneInfo(zone)) for one in found]
    assert moments
    for one in moments:
        assert one.time() == at
        assert (one.date() - day).days % days == 0


HOSTILE = {
    "secondly": (calendar("UID:1\nDTSTART:20200101T000000Z\nRRULE:FREQ=SECONDLY"), "often"),
    "folded": (calendar("UID:1\nDTSTART:20200101T000000Z\nRRULE:FREQ=SEC\n ONDLY"), "often"),
    "folded twice": (
        calendar("UID:1\nDTSTART:20200101T000000Z\nRRULE:FREQ=SEC\n\n ONDLY"),
        "often",
    ),
    "interval of none": (
        calendar("UID:1\nDTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;INTERVAL= 0"),
        "broken",
    ),
    "minutes": (
        calendar("UID:1\nDTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;BYMINUTE=1,2,3"),
        "often",
    ),
    "in a zone": (
        calendar(
            "UID:1\nDTSTART;TZID=Office:20260328T090000",
            zones=OWN_ZONE.replace("YEARLY", "SECONDLY"),
        ),
        "often",
    ),
    "many events": (
        calendar(*(f"UID:{n}\nDTSTART:20200101T000000Z" for n in range(5001))),
        "events",
    ),
    "many shifts": (
        calendar(
            *(f"UID:{n}\nDTSTART:2026032{n % 7 + 3}T000000Z\nDURATION:PT1H" for n in range(1500))
        ),
        "shifts",
    ),
    "no zone": (calendar("UID:1\nDTSTART;TZID=Mars/Base:20260328T090000\nDURATION:PT1H"), "zone"),
    "no begin": (calendar("UID:1\nSUMMARY:alice"), "broken"),
    "no date": (calendar("UID:1\nDTSTART:tomorrow"), "broken"),
    "bad rule": (calendar("UID:1\nDTSTART:20260328T090000Z\nRRULE:FREQ=SOMETIMES"), "broken"),
    "cut off": (calendar("UID:1\nDTSTART:20260328T090000Z")[:-40], "broken"),
    "entities": ('<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "aaaa">]><x>&a;</x>', "other"),
    "a page": ("<html>Sign in</html>", "other"),
    "nothing": ("", "other"),
    "zeros": ("\x00" * 5000, "other"),
    "nested": ("BEGIN:VCALENDAR\r\n" * 5000, "broken"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_calendar_is_refused(kind: str) -> None:
    text, why = HOSTILE[kind]

    with pytest.raises(calendars.CalendarUnreadable) as refused:
        calendars._read(text, "UTC", datetime(2026, 3, 24, tzinfo=UTC))

    assert str(refused.value) == calendars.REASONS[why]


def test_a_billion_occurrences_are_not_counted() -> None:
    event = "UID:1\nDTSTART:20200101T000000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=1000000000"

    found = calendars._read(calendar(event), "UTC", datetime(2026, 3, 24, tzinfo=UTC))

    assert len(found) == (calendars.AHEAD + calendars.BEHIND).days


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendars, "READ_WITHIN_S", 0.05)

    with pytest.raises(calendars.CalendarUnreadable, match="too long"):
        calendars._read(calendar(), "UTC", timezone.now())


@pytest.mark.long
@given(st.text() | st.binary().map(lambda one: one.decode(errors="replace")))
@hypothesis_settings(deadline=None)
def test_every_text_is_read_or_refused(text: str) -> None:
    for one in (text, calendar(text)):
        found = calendar_reader.answer({"text": one, "zone": "UTC"} | _WINDOW)
        assert "shifts" in found or found["error"] in calendars.REASONS


_WINDOW = {"begins_at": "2026-03-23T00:00:00+00:00", "ends_at": "2026-03-24T00:00:00+00:00"}


@pytest.fixture
def host(settings: Any, db: None) -> Iterator[CalendarHost]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with calendar_host() as host:
        yield host


def since(ago: timedelta) -> str:
    return f"DTSTART:{timezone.now() - ago:%Y%m%dT%H%M%SZ}"


def on_call_now(*names: str) -> str:
    times = f"{since(timedelta(hours=1))}\nDURATION:P3D"
    return calendar(*(f"UID:{n}\nSUMMARY:{name}\n{times}" for n, name in enumerate(names)))


def schedule_of(host: CalendarHost, by: User) -> OnCallSchedule:
    made = OnCallSchedule(
        name="primary", handover_at=time(), starts_on=date(2026, 1, 1), time_zone="Europe/Berlin"
    )
    calendars.read_now(schedules.save_with_calendar(made, by=by, address=host.url))
    return OnCallSchedule.objects.get(pk=made.pk)


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="on_call").order_by("id")
    return list(found.values_list("action", flat=True))


@pytest.mark.long
def test_whoever_the_calendar_names_is_notified(
    ask: Ask, team: list[User], olga: User, host: CalendarHost
) -> None:
    host.serve(on_call_now("On call: Hugo (backup gina)"))
    ask_on_call(olga, schedule_of(host, olga))

    assert told(ask()) == ["hugo"]


@pytest.mark.long
def test_a_gap_and_a_stranger_ask_the_group(
    ask: Ask, team: list[User], olga: User, host: CalendarHost
) -> None:
    host.serve(on_call_now("somebody@elsewhere.example"))
    ask_on_call(olga, schedule_of(host, olga))
    assert told(ask()) == ["gina", "hugo", "ines"]

    host.serve(calendar())
    calendars.read_now(OnCallCalendar.objects.get())

    assert told(ask()) == ["gina", "hugo", "ines"]


def test_a_nul_in_a_summary_hides_no_shift(alice: User, olga: User, host: CalendarHost) -> None:
    times = f"{since(timedelta(hours=1))}\nDURATION:P3D"
    host.serve(calendar(f"UID:1\nSUMMARY:alice\0 (on call)\n{times}"))

    found = schedule_of(host, olga)

    assert OnCallCalendar.objects.get().error == ""
    assert person_on_call(found, timezone.now()) == alice.pk


def test_an_address_names_one_active_person_who_confirmed_it(
    alice: User, olga: User, host: CalendarHost
) -> None:
    host.serve(on_call_now("Al@Example.org"))
    found = schedule_of(host, olga)
    mail = MailRecipient.objects.create(person=alice, address="al@example.org")
    assert person_on_call(found, timezone.now()) is None

    mail.confirmed_at = timezone.now()
    mail.save()
    assert person_on_call(found, timezone.now()) == alice.pk

    # Whose it is cannot be told any more.
    MailRecipient.objects.create(person=olga, address="AL@example.org", confirmed_at=timezone.now())
    assert person_on_call(found, timezone.now()) is None
    MailRecipient.objects.filter(person=olga).delete()
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert person_on_call(found, timezone.now()) is None


def test_of_events_at_one_time_the_last_to_begin_counts(
    alice: User, olga: User, host: CalendarHost
) -> None:
    now = timezone.now()
    host.serve(
        calendar(
            f"UID:1\nSUMMARY:alice\n{since(timedelta(days=5))}\nDURATION:P20D",
            f"UID:2\nSUMMARY:olga\n{since(timedelta(hours=5))}\nDURATION:P1D",
            f"UID:3\nSUMMARY:nobody\n{since(timedelta(hours=2))}\nDURATION:P1D",
        )
    )

    shifts = OnCallPlan.of(schedule_of(host, olga)).shifts(now, now + timedelta(days=16))

    assert [one.person for one in shifts] == [olga.pk, alice.pk, None]


@pytest.mark.long
def test_a_calendar_that_fails_leaves_the_last_one_and_operators_are_told(
    alice: User, olga: User, host: CalendarHost, cursor: None
) -> None:
    MailRecipient.objects.create(
        person=olga, address="olga@example.org", confirmed_at=timezone.now()
    )
    text = on_call_now("alice")
    host.serve(text)
    found = schedule_of(host, olga)
    known = OnCallCalendar.objects.get()
    read_entries()

    for body in (b"<html>", b"\xff\xfe\x00", b"x" * 600_000):
        host.body = body
        calendars.read_now(known)

    known.refresh_from_db()
    assert known.failing_since
    assert known.error
    assert person_on_call(OnCallSchedule.objects.get(pk=found.pk), timezone.now()) == alice.pk
    assert actions() == [
        "on_call_schedule.saved",
        "on_call_calendar.changed",
        "on_call_calendar.failed",
    ]
    read_entries()
    assert [one.event for one in Delivery.objects.filter(person=olga)] == [
        "on_call_calendar.failed"
    ]
    host.serve(text)
    calendars.read_now(known)
    assert OnCallCalendar.objects.filter(failing_since=None).exists()
    assert actions()[-1] == "on_call_calendar.recovered"


def test_only_a_change_of_shifts_is_an_entry(alice: User, olga: User, host: CalendarHost) -> None:
    text = on_call_now("alice")
    host.serve(text)
    schedule_of(host, olga)
    known = OnCallCalendar.objects.get()
    host.serve(text.replace("DTSTAMP:20260101", "DTSTAMP:20260202"))
    calendars.read_now(known)
    assert actions() == ["on_call_schedule.saved", "on_call_calendar.changed"]

    host.serve(text.replace("alice", "olga"))
    calendars.read_now(OnCallCalendar.objects.get())

    assert actions()[-1] == "on_call_calendar.changed"
    assert len(actions()) == 3


def test_an_unchanged_calendar_is_not_sent_again_but_is_read_anew_in_time(
    alice: User, olga: User, host: CalendarHost
) -> None:
    host.serve(on_call_now("alice"), etag='"one"')
    schedule_of(host, olga)
    calendars.read_now(OnCallCalendar.objects.get())
    OnCallCalendar.objects.update(whole_at=timezone.now() - calendars.WHOLE_EVERY)

    calendars.read_now(OnCallCalendar.objects.get())

    assert host.asked == [None, '"one"', None]


def test_the_task_reads_what_is_due(alice: User, olga: User, host: CalendarHost) -> None:
    host.serve(on_call_now("alice"))
    schedule_of(host, olga)
    read_calendars()
    assert len(host.asked) == 1

    OnCallCalendar.objects.update(checked_at=timezone.now() - calendars.EVERY)
    read_calendars()
    read_calendars()

    assert len(host.asked) == 2


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://10.0.0.1/secret-token.ics", "is not public"),
        ("http://calendar.example.org/secret-token.ics", "must begin with https://"),
        ("file:///etc/secret-token", "https"),
    ],
)
def test_a_private_address_is_refused_and_not_repeated(
    client: Client, olga: User, db: None, url: str, said: str
) -> None:
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    given = {"name": "primary", "time_zone": "UTC", "url": url}

    page = client.post(reverse("notifications:add_schedule_from_calendar"), given)

    assert said in page.text
    assert "secret-token" not in page.text
    assert not OnCallSchedule.objects.exists()


def test_what_became_private_is_not_reached(olga: User, host: CalendarHost, settings: Any) -> None:
    host.serve(on_call_now("olga"))
    schedule_of(host, olga)
    settings.UPSTREAM_NETWORKS = []

    calendars.read_now(OnCallCalendar.objects.get())

    assert len(host.asked) == 1
    known = OnCallCalendar.objects.get()
    assert known.failing_since
    assert "private-7d1f0aa9" not in known.error


def test_the_address_is_nowhere(
    client: Client, olga: User, host: CalendarHost, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    client.force_login(ada)
    host.serve(on_call_now("ada"))
    given = {"name": "primary", "time_zone": "UTC", "url": host.url}

    page = client.post(reverse("notifications:add_schedule_from_calendar"), given, follow=True)

    made = OnCallSchedule.objects.get()
    assert "“primary” is saved." in page.text
    assert "Shifts of the next 2 weeks" in page.text
    assert "<strong>ada</strong>" in page.text
    host.status = 500
    again = client.post(reverse("notifications:read_calendar", args=[made.pk]), follow=True)
    assert "answered with status 500" in again.text
    assert "The shifts that were read last still count." in again.text
    edit = client.get(reverse("notifications:edit_schedule", args=[made.pk]))
    listed = client.get(reverse("notifications:schedules"))
    assert "Calendar cannot be read" in listed.text
    texts = [page.text, again.text, edit.text, listed.text, caplog.text]
    texts += [f"{one.reason} {one.details}" for one in Entry.objects.all()]
    assert not [one for one in texts if "private-7d1f0aa9" in one]
    # Left empty it stays, and a rotation of the installation's secret finds it.
    client.post(
        reverse("notifications:edit_schedule", args=[made.pk]), given | {"url": "", "name": "other"}
    )
    assert calendars.address(OnCallCalendar.objects.get()) == host.url
    assert calendars.SEALED[0] in SEALED


def test_others_set_no_calendar(client: Client, olga: User, host: CalendarHost) -> None:
    host.serve(on_call_now("olga"))
    made = schedule_of(host, olga)
    for person in (olga, scenery.person("gina", Role.APPROVER)):
        client.force_login(person)
        assert client.post(reverse("notifications:add_schedule_from_calendar")).status_code == 403
        read_it = reverse("notifications:read_calendar", args=[made.pk])
        assert client.post(read_it).status_code == 403
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    assert client.get(read_it).status_code == 405
