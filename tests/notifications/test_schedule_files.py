"""On-call schedules in a policy file."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from approvals.policy_plans.applying import PlanNotApplied, apply_as_owner
from audit.models import Entry
from notifications import schedules
from notifications.models import OnCallCalendar, OnCallSchedule
from policies.as_code.differences import all_changes, needed_permissions
from policies.as_code.documents import PolicyMistakes, export, read_file
from registry.managed import ManagedElsewhere
from tests.console import scenery

pytestmark = pytest.mark.django_db
HERE = "https://git.example/policy.yaml"
FILE = f"""\
version: 1
managed_by: {HERE}
schedules:
  nights:
    time_zone: Europe/Berlin
    handover_day: monday
    handover_at: 09:00
    starts_on: 2026-03-02
    people: [alice, bob]
"""


@pytest.fixture
def alice(db: None) -> User:
    scenery.person("bob", Role.APPROVER)
    return scenery.person("alice", Role.APPROVER, Role.ADMINISTRATOR)


def people() -> list[str]:
    members = OnCallSchedule.objects.get(name="nights").members.select_related("person")
    return [one.person.username for one in members]


def mistakes(text: str) -> str:
    with pytest.raises(PolicyMistakes) as caught:
        read_file(text)
    return str(caught.value)


@pytest.mark.usefixtures("alice")
def test_a_file_makes_a_schedule_and_changes_it() -> None:
    assert needed_permissions(all_changes(read_file(FILE))) == [
        "notifications.change_oncallschedule"
    ]
    apply_as_owner(FILE)
    assert people() == ["alice", "bob"]

    apply_as_owner("version: 1\nschedules:\n  nights: {people: [bob, alice], handover_at: 08:30}\n")

    assert people() == ["bob", "alice"]
    found = OnCallSchedule.objects.get()
    assert (found.time_zone, f"{found.handover_at:%H:%M}") == ("Europe/Berlin", "08:30")
    entry = Entry.objects.filter(action="on_call_schedule.saved").latest("id")
    assert (entry.actor, entry.details["people"]) == ("command line", ["bob", "alice"])


@pytest.mark.usefixtures("alice")
def test_an_export_changes_nothing() -> None:
    apply_as_owner(FILE)

    written = export(["schedules"])

    assert "nights:" in written
    assert not [one for one in all_changes(read_file(written)) if one.section == "schedules"]


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"[alice, bob]": "[alice, nobody]"}, "schedules.nights.people: “nobody” is no user"),
        ({"[alice, bob]": "[]"}, "schedules.nights.people"),
        ({"monday": "someday"}, "schedules.nights.handover_day: must be one of"),
        ({"09:00": "25:00"}, "schedules.nights.handover_at"),
        ({"2026-03-02": "2026-02-30"}, "schedules.nights.starts_on"),
        ({"2026-03-02": "1999-01-01"}, "schedules.nights.starts_on: Choose a day"),
        ({"Europe/Berlin": "Mars/Base"}, "schedules.nights.time_zone"),
        (
            {"    handover_day: monday\n": ""},
            "schedules.nights.handover_day: This field is required",
        ),
        ({"nights": "n" * 61}, "Ensure this value has at most 60 characters"),
    ],
)
def test_what_a_schedule_cannot_be(change: dict[str, str], said: str) -> None:
    text = FILE
    for old, new in change.items():
        text = text.replace(old, new)

    assert said in mistakes(text)


def test_a_calendar_stays_in_the_console(alice: User) -> None:
    apply_as_owner(FILE.replace(f"managed_by: {HERE}\n", ""))
    OnCallCalendar.objects.create(schedule=OnCallSchedule.objects.get(), url="https://…")

    assert "nights" not in export(["schedules"])
    assert "Its people come from a calendar" in mistakes(FILE)


def test_what_a_file_manages_is_read_only_elsewhere(client: Client, alice: User) -> None:
    apply_as_owner(FILE)
    found = OnCallSchedule.objects.get()
    client.force_login(alice)

    page = client.get(f"/on-call/{found.pk}/").text
    assert f"a policy file manages this, at {HERE}." in page
    assert f"/on-call/{found.pk}/change/" not in page
    with pytest.raises(ManagedElsewhere, match=HERE):
        schedules.remove(found, by=alice)
    found.name = "other"
    with pytest.raises(ManagedElsewhere, match=HERE):
        schedules.save(found, [alice], by=alice)
    gone: Any = client.post(f"/on-call/{found.pk}/remove/", follow=True)
    assert HERE in gone.text
    assert OnCallSchedule.objects.exists()


def test_who_may_not_decide_any_more_stops_the_whole_file(alice: User) -> None:
    apply_as_owner(FILE)
    User.objects.get(username="bob").groups.clear()

    with pytest.raises((PlanNotApplied, PolicyMistakes), match="bob"):
        apply_as_owner(FILE.replace("09:00", "10:00"))

    assert f"{OnCallSchedule.objects.get().handover_at:%H:%M}" == "09:00"
