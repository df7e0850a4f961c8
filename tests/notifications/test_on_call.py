"""On-call schedules: who is on call when, over zones, changed clocks, overrides and gaps."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from notifications import escalation_policies, schedules, services
from notifications.models import (
    EscalationPolicy,
    EscalationStep,
    MailRecipient,
    OnCallOverride,
    OnCallSchedule,
)
from notifications.on_call import OnCallPlan, Override, Rotation
from tests.console import scenery
from tests.notifications.test_escalation import Ask, ask, lead, team, told

__all__ = ["ask", "lead", "team"]

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
WEEK = timedelta(days=7)


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


# Mondays at 9:00, from Monday 5 January 2026.
ROTATION = Rotation((1, 2, 3), BERLIN, 0, time(9), date(2026, 1, 1))


@pytest.mark.parametrize(
    ("now", "person"),
    [
        ("2026-01-05T08:59:59", None),
        ("2026-01-05T09:00", 1),
        ("2026-01-12T08:59:59", 1),
        ("2026-01-12T09:00", 2),
        ("2026-01-26T09:00", 1),
        # The clock was put forward on Sunday 29 March, and back on 25 October.
        ("2026-03-30T08:59:59", 3),
        ("2026-03-30T09:00", 1),
        ("2026-10-26T08:59:59", 3),
        ("2026-10-26T09:00", 1),
        ("2036-01-07T12:00", 1),
    ],
)
def test_people_take_turns_by_the_clock_on_the_wall(now: str, person: int | None) -> None:
    assert ROTATION.person_at(at(now)) == person


def test_a_hand_over_that_no_clock_shows_comes_an_hour_later() -> None:
    # On 29 March 2026 there is no half past two.
    sundays = Rotation((1, 2), BERLIN, 6, time(2, 30), date(2026, 3, 22))

    assert sundays.handover(1) == at("2026-03-29T03:30")
    assert sundays.person_at(at("2026-03-29T03:29")) == 1
    assert sundays.person_at(at("2026-03-29T03:30")) == 2


def test_overrides_come_before_the_rotation_and_the_newest_before_the_others() -> None:
    long = Override(at("2026-01-06T00:00"), at("2026-01-20T00:00"), 7)
    short = Override(at("2026-01-08T00:00"), at("2026-01-09T00:00"), 8)
    plan = OnCallPlan(ROTATION, [long, short])

    found = plan.shifts(at("2026-01-05T00:00"), at("2026-01-27T00:00"))

    assert [(one.person, f"{one.begins_at.astimezone(BERLIN):%d %H:%M}") for one in found] == [
        (None, "05 00:00"),
        (1, "05 09:00"),
        (7, "06 00:00"),
        (8, "08 00:00"),
        (7, "09 00:00"),
        (3, "20 00:00"),
        (1, "26 09:00"),
    ]


rotations = st.builds(
    Rotation,
    st.lists(st.integers(1, 9), max_size=4),
    st.sampled_from(ZONES).map(ZoneInfo),
    st.integers(0, 6),
    st.times(),
    st.dates(date(2025, 1, 1), date(2027, 12, 31)),
)
moments = st.datetimes(datetime(2025, 1, 1), datetime(2028, 12, 31), timezones=st.just(UTC))
overrides = st.lists(
    st.builds(
        lambda begin, hours, person: Override(begin, begin + timedelta(hours=hours), person),
        moments,
        st.integers(1, 2000),
        st.integers(1, 9),
    ),
    max_size=5,
)


@given(rotations, moments)
def test_every_hand_over_is_a_week_of_local_time_after_the_one_before(
    rotation: Rotation, now: datetime
) -> None:
    begins = [*rotation.handovers(now, now + 10 * WEEK)]
    for one, other in pairwise(begins):
        # Clocks are changed by an hour at most.
        assert abs(other - one - WEEK) <= timedelta(hours=1)
        before, after = rotation.person_at(one), rotation.person_at(other)
        assert (before is None) == (not rotation.people)
        if before is not None:
            place = [n for n, person in enumerate(rotation.people) if person == before]
            nexts = {rotation.people[(n + 1) % len(rotation.people)] for n in place}
            assert after in nexts


@given(rotations, overrides, moments, st.floats(0, 1))
def test_shifts_cover_all_the_time_once_and_agree_with_who_is_on_call(
    rotation: Rotation, given: Sequence[Override], begin: datetime, part: float
) -> None:
    plan, end = OnCallPlan(rotation, given), begin + 8 * WEEK

    found = plan.shifts(begin, end)

    assert (found[0].begins_at, found[-1].ends_at) == (begin, end)
    for one, other in pairwise(found):
        assert one.ends_at == other.begins_at
        assert one.person != other.person
    for one in found:
        within = one.begins_at + (one.ends_at - one.begins_at) * part * 0.999
        assert plan.person_at(within) == one.person


def schedule(by: User, people: Sequence[User], **given: object) -> OnCallSchedule:
    """Since last week, so that the first of them is on call until the next hand-over."""
    yesterday = timezone.now().date() - timedelta(days=1)
    made = OnCallSchedule(
        name="primary",
        handover_weekday=yesterday.weekday(),
        handover_at=time(0),
        starts_on=yesterday,
        **given,
    )
    schedules.save(made, people, by=by)
    return made


def ask_on_call(by: User, of: OnCallSchedule, *, then_all: bool = False) -> None:
    steps = [EscalationStep(after_min=0, target="on_call", schedule=of)]
    if then_all:
        steps.append(EscalationStep(after_min=5, target="everybody"))
    group = Group.objects.get(name="payments")
    escalation_policies.save(EscalationPolicy(group=group), steps, by=by)


@pytest.mark.django_db
def test_whoever_is_on_call_is_notified(ask: Ask, team: list[User], olga: User) -> None:
    of = schedule(olga, [team[1], team[0]])
    ask_on_call(olga, of)
    assert told(ask()) == ["hugo"]

    now = timezone.now()
    override = OnCallOverride(
        schedule=of, person=team[2], begins_at=now, ends_at=now + timedelta(hours=1)
    )
    schedules.add_override(override, by=olga)

    assert told(ask()) == ["ines"]


@pytest.mark.django_db
def test_a_gap_asks_the_group(ask: Ask, team: list[User], olga: User) -> None:
    of = schedule(olga, [team[1]])
    OnCallSchedule.objects.update(starts_on=timezone.now().date() + timedelta(days=20))
    ask_on_call(olga, of)

    assert told(ask()) == ["gina", "hugo", "ines"]


@pytest.mark.django_db
def test_who_is_on_call_but_may_not_decide_is_not_asked(
    ask: Ask, team: list[User], lead: User, olga: User
) -> None:
    ask_on_call(olga, schedule(olga, [lead]))

    assert told(ask()) == ["gina", "hugo", "ines"]


@pytest.mark.django_db
def test_who_is_on_call_and_muted_is_passed_over(ask: Ask, team: list[User], olga: User) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]), then_all=True)
    services.mute(team[1], timezone.now() + timedelta(hours=1))

    assert sorted(told(ask())) == ["gina", "hugo", "ines"]


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


GIVEN = {
    "name": "primary",
    "time_zone": "Europe/Berlin",
    "handover_weekday": "0",
    "handover_at": "09:00",
    "starts_on": "2026-01-05",
    "people": "alice\ncarol\n",
}


@pytest.mark.long
def test_an_administrator_keeps_a_schedule(client: Client, ada: User, alice: User) -> None:
    scenery.person("carol", Role.APPROVER)
    client.force_login(ada)

    page = client.post(reverse("notifications:add_schedule"), GIVEN, follow=True).text

    assert "“primary” is saved." in page
    made = OnCallSchedule.objects.get()
    assert [one.person.username for one in made.members.all()] == ["alice", "carol"]
    edit = reverse("notifications:edit_schedule", args=[made.pk])
    assert "alice\ncarol" in client.get(edit).text
    client.post(edit, {**GIVEN, "people": "carol"})
    tomorrow = timezone.now().astimezone(BERLIN) + timedelta(days=1)
    given = {
        "person": str(alice.pk),
        "begins_at": f"{tomorrow:%Y-%m-%dT10:00}",
        "ends_at": f"{tomorrow:%Y-%m-%dT12:00}",
    }
    added = client.post(reverse("notifications:add_override", args=[made.pk]), given, follow=True)
    assert "The override is added." in added.text
    override = OnCallOverride.objects.get()
    assert override.begins_at.astimezone(BERLIN).hour == 10
    # On call now, and the override to come.
    client.force_login(alice)
    listed = client.get(reverse("notifications:schedules")).text
    assert "<strong>carol</strong>" in listed
    shown = client.get(reverse("notifications:schedule", args=[made.pk])).text
    assert "alice" in shown
    # The last of the eight weeks ends no shift.
    assert shown.count(" and later</span>") == 1
    client.force_login(ada)
    client.post(reverse("notifications:remove_override", args=[override.pk]))
    remove = reverse("notifications:remove_schedule", args=[made.pk])
    asked = client.get(remove).text
    assert "Its shifts and overrides are removed with it." in asked
    assert "<dd>carol</dd>" in asked
    assert OnCallSchedule.objects.exists()
    client.post(remove)

    assert not OnCallSchedule.objects.exists()
    recorded = Entry.objects.filter(action__startswith="on_call").order_by("id")
    assert [one.action for one in recorded] == [
        "on_call_schedule.saved",
        "on_call_schedule.saved",
        "on_call_override.added",
        "on_call_override.removed",
        "on_call_schedule.removed",
    ]
    assert {one.actor for one in recorded} == {"ada"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"people": "alice\nnobody"}, "“nobody” is no user who may decide on calls."),
        ({"people": "olga"}, "“olga” is no user who may decide on calls."),
        ({"people": " \n"}, "required"),
        ({"time_zone": "Mars/Base"}, "is no time zone"),
        ({"handover_weekday": "7"}, "not one of the available choices"),
        ({"starts_on": "soon"}, "Enter a valid date."),
        ({"starts_on": "9999-12-31"}, "Choose a day from 2000 to 2199."),
        ({"starts_on": "0001-01-01"}, "Choose a day from 2000 to 2199."),
    ],
)
def test_what_is_wrong_is_said(
    client: Client, ada: User, alice: User, olga: User, changed: dict[str, str], said: str
) -> None:
    client.force_login(ada)

    page = client.post(reverse("notifications:add_schedule"), {**GIVEN, **changed})

    assert page.status_code == 200
    assert said in page.text
    assert not OnCallSchedule.objects.exists()


@pytest.mark.parametrize(
    ("begins", "ends", "said"),
    [
        ("2099-01-02T10:00", "2099-01-02T10:00", "It must end after it begins."),
        ("2020-01-01T10:00", "2020-01-01T11:00", "It must end in the future"),
        ("2026-01-01T10:00", "2099-01-01T11:00", "It must end in the future"),
        ("9999-12-01T10:00", "9999-12-31T23:59", "It must begin within a year."),
    ],
)
def test_an_impossible_override_is_refused(
    client: Client, ada: User, alice: User, begins: str, ends: str, said: str
) -> None:
    made = schedule(ada, [alice])
    client.force_login(ada)
    given = {"person": str(alice.pk), "begins_at": begins, "ends_at": ends}

    page = client.post(reverse("notifications:add_override", args=[made.pk]), given)

    assert said in page.text
    assert not OnCallOverride.objects.exists()


@pytest.mark.long
def test_a_schedule_in_use_is_not_removed_and_others_change_none(
    client: Client, ada: User, alice: User, olga: User
) -> None:
    made = schedule(ada, [alice])
    step = EscalationStep(after_min=0, target="on_call", schedule=made)
    escalation_policies.save(EscalationPolicy(), [step], by=ada)
    remove = reverse("notifications:remove_schedule", args=[made.pk])
    for person in (alice, olga):
        client.force_login(person)
        assert client.post(remove).status_code == 403
        for name in ("edit_schedule", "add_override"):
            address = reverse(f"notifications:{name}", args=[made.pk])
            assert client.post(address).status_code == 403
    client.force_login(scenery.person("vera", Role.VIEWER))
    assert client.get(reverse("notifications:schedules")).status_code == 403
    client.force_login(ada)
    assert client.get(remove).status_code == 200

    page = client.post(remove, follow=True)

    assert "A step of an escalation policy uses this schedule." in page.text
    assert OnCallSchedule.objects.exists()
    assert "On call: primary" in client.get(reverse("notifications:webhooks")).text


@pytest.mark.long
@pytest.mark.parametrize("how", ["disabled", "no right", "no address", "well"])
@pytest.mark.django_db
def test_the_page_marks_whom_no_call_reaches(
    client: Client, team: list[User], olga: User, how: str
) -> None:
    of = schedule(olga, [team[1]])
    if how == "disabled":
        User.objects.filter(pk=team[1].pk).update(is_active=False)
    elif how == "no right":
        team[1].groups.clear()
    elif how == "no address":
        MailRecipient.objects.filter(person=team[1]).delete()
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))

    for page in (
        reverse("notifications:schedules"),
        reverse("notifications:schedule", args=[of.pk]),
    ):
        assert ("cannot decide or be notified" in client.get(page).text) == (how != "well")
