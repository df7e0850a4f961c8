"""On-call schedules, their overrides, and messages that were given up, by the service API."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from notifications import calendars, escalation_policies
from notifications.events import Event
from notifications.models import (
    Delivery,
    EscalationPolicy,
    EscalationStep,
    OnCallOverride,
    OnCallSchedule,
    Webhook,
)
from registry import managed
from registry.managed import ManagedName
from tests.console import scenery
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db
THERE = "on-call-schedules"
NIGHTS = {
    "name": "nights",
    "time_zone": "Europe/Berlin",
    "handover_day": "monday",
    "handover_at": "09:00",
    "starts_on": "2026-03-02",
    "people": ["bob"],
}
SECRET = "https://calendars.example.com/feeds/verysecretpath.ics"
FEED = {"name": "feed", "calendar_url": SECRET}


@pytest.fixture
def robot(db: None) -> Program:
    for name in ("bob", "eve"):
        scenery.person(name, Role.APPROVER)
    scenery.person("mallory", Role.VIEWER)
    return program("robot", scenery.person("ada", *Role))


def problem(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return str(answer.json())


def last(action: str) -> Entry:
    entry = Entry.objects.filter(action=action).latest("id")
    assert entry.actor == "service account robot"
    return entry


def add(robot: Program, given: Any = NIGHTS) -> str:
    return f"{THERE}/{robot.post(THERE, given)['id']}"


def coming(person: str = "eve", **changes: Any) -> dict[str, Any]:
    now = timezone.now()
    begins, ends = now - timedelta(hours=1), now + timedelta(hours=5)
    return {
        "person": person,
        "begins_at": begins.isoformat(),
        "ends_at": ends.isoformat(),
        **changes,
    }


# Schedules


def test_a_rotation_is_made_once_and_listed(robot: Program) -> None:
    first = robot.post(THERE, NIGHTS, Idempotency_Key="k1")
    again = robot.post(THERE, NIGHTS, Idempotency_Key="k1")

    assert first == again
    assert {name: first[name] for name in NIGHTS} == NIGHTS
    assert (first["calendar_url"], first["on_call"]) == (None, "bob")
    assert robot.get(THERE)["items"] == [first]
    assert robot.get(f"{THERE}/{first['id']}") == first
    assert last("on_call_schedule.saved").details["people"] == ["bob"]


def test_a_part_of_a_rotation_is_changed(robot: Program) -> None:
    there = add(robot)

    changed = robot.change(there, {"people": ["eve", "bob", "eve"], "handover_at": "07:30"})

    assert changed == {**robot.get(there), "people": ["eve", "bob", "eve"], "handover_at": "07:30"}
    assert changed["handover_day"] == "monday"
    assert last("on_call_schedule.saved").details["handover"] == "0 07:30"


def test_a_change_takes_the_version_that_was_read(robot: Program) -> None:
    there = add(robot)
    tag = robot.ask("GET", there)["ETag"]
    robot.change(there, {"people": ["eve"]})

    problem(robot.ask("PATCH", there, {"name": "x"}, If_Match=tag), 412)
    problem(robot.ask("PATCH", there, {"name": "x"}), 428)
    problem(robot.ask("DELETE", there, If_Match=tag), 412)

    assert OnCallSchedule.objects.get().name == "nights"


def test_whoever_is_on_call_now_is_no_part_of_the_version(robot: Program) -> None:
    there = add(robot)
    tag = robot.ask("GET", there)["ETag"]

    robot.post(f"{there}/overrides", coming())

    assert robot.get(there)["on_call"] == "eve"
    assert robot.ask("GET", there)["ETag"] == tag


def test_a_schedule_is_removed_unless_a_step_uses_it(robot: Program) -> None:
    there = add(robot)
    policy, schedule = EscalationPolicy(), OnCallSchedule.objects.get()
    step = EscalationStep(after_min=0, target="on_call", schedule=schedule)
    escalation_policies.save(policy, [step], by=User.objects.get(username="ada"))
    tag = robot.ask("GET", there)["ETag"]
    assert "uses this schedule" in problem(robot.ask("DELETE", there, If_Match=tag), 409)

    escalation_policies.remove(policy, by=User.objects.get(username="ada"))
    robot.change(there, method="DELETE")

    assert robot.ask("GET", there).status_code == 404
    assert last("on_call_schedule.removed").details["schedule"] == "nights"


def test_a_rotation_of_a_policy_file_is_changed_there(robot: Program) -> None:
    there = add(robot)
    managed.manage([ManagedName(managed.SCHEDULES, "nights")], "https://git.example/policy.yaml")
    tag = robot.ask("GET", there)["ETag"]

    for method, body in (
        ("PATCH", {"people": ["eve"]}),
        ("PATCH", {"name": "x"}),
        ("DELETE", None),
    ):
        assert "git.example" in problem(robot.ask(method, there, body, If_Match=tag), 409)

    assert robot.get(there)["people"] == ["bob"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": ""}, "#/name"),
        ({"time_zone": "Mars/Base"}, "#/time_zone"),
        ({"handover_day": 0}, "#/handover_day"),
        ({"handover_at": "25:00"}, "#/handover_at"),
        ({"handover_at": "9"}, "#/handover_at"),
        ({"starts_on": "2026-02-30"}, "#/starts_on"),
        ({"starts_on": "20260302"}, "#/starts_on"),
        ({"people": []}, "#/people"),
        ({"people": ["mallory"]}, "#/people"),
        ({"people": ["bob\nbob"]}, "#/people"),
        ({"calendar_url": SECRET}, "'#'"),
        ({"calendar": None}, "#/calendar"),
    ],
)
def test_mistakes_name_their_member(robot: Program, change: dict[str, Any], pointer: str) -> None:
    assert pointer in problem(robot.ask("POST", THERE, {**NIGHTS, **change}), 400)
    assert not OnCallSchedule.objects.exists()


@pytest.mark.parametrize("name", ["handover_day", "handover_at", "starts_on", "people"])
def test_a_rotation_has_all_of_its_members(robot: Program, name: str) -> None:
    given = {key: value for key, value in NIGHTS.items() if key != name}

    assert f"#/{name}" in problem(robot.ask("POST", THERE, given), 400)


# From a calendar


def test_a_calendars_address_is_in_no_answer(robot: Program) -> None:
    made = robot.post(THERE, FEED)
    there = f"{THERE}/{made['id']}"

    assert made["calendar_url"].startswith("https://calendars.example.com")
    assert "verysecret" not in str(made)
    assert (made["people"], made["handover_day"], made["on_call"]) == ([], None, None)
    renamed = robot.change(there, {"name": "days"})
    assert (renamed["name"], renamed["calendar_url"]) == ("days", made["calendar_url"])
    calendar = OnCallSchedule.objects.get().calendar
    assert calendars.address(calendar) == SECRET
    assert "verysecret" not in str(last("on_call_schedule.saved").details)


def test_another_address_is_another_version(robot: Program) -> None:
    there = add(robot, FEED)
    tag = robot.ask("GET", there)["ETag"]

    robot.change(there, {"calendar_url": SECRET.replace("very", "most")})

    problem(robot.ask("PATCH", there, {"name": "x"}, If_Match=tag), 412)
    assert "mostsecret" in calendars.address(OnCallSchedule.objects.get().calendar)


@pytest.mark.parametrize("url", ["http://example.com/x.ics", "https://10.0.0.1/verysecret", ""])
def test_an_address_that_is_not_allowed_is_not_repeated(robot: Program, url: str) -> None:
    said = problem(robot.ask("POST", THERE, {**FEED, "calendar_url": url}), 400)

    assert "#/calendar_url" in said
    assert "verysecret" not in said


def test_a_schedule_keeps_where_its_people_come_from(robot: Program) -> None:
    for there, change in (
        (add(robot), {"calendar_url": SECRET}),
        (add(robot, FEED), {"people": ["bob"]}),
    ):
        tag = robot.ask("GET", there)["ETag"]
        said = problem(robot.ask("PATCH", there, change, If_Match=tag), 400)
        assert f"#/{next(iter(change))}" in said


# Overrides


def test_an_override_puts_another_user_on_call(robot: Program) -> None:
    there = add(robot)

    made = robot.post(f"{there}/overrides", coming(), Idempotency_Key="k1")
    again = robot.post(f"{there}/overrides", coming(), Idempotency_Key="k2")

    assert [one["id"] for one in robot.get(f"{there}/overrides")["items"]] == [
        again["id"],
        made["id"],
    ]
    assert robot.get(f"{there}/overrides/{made['id']}") == made
    assert last("on_call_override.added").details["person"] == "eve"
    for one in (made, again):
        robot.change(f"{there}/overrides/{one['id']}", method="DELETE")
    assert robot.get(there)["on_call"] == "bob"
    assert last("on_call_override.removed").details["schedule"] == "nights"


def test_an_override_of_another_schedule_is_not_here(robot: Program) -> None:
    there, other = add(robot), add(robot, {**NIGHTS, "name": "days"})
    made = robot.post(f"{there}/overrides", coming())

    problem(robot.ask("GET", f"{other}/overrides/{made['id']}"), 404)
    answer = robot.ask("DELETE", f"{other}/overrides/{made['id']}", If_Match='"x"')
    problem(answer, 404)

    assert OnCallOverride.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"person": "mallory"}, "#/person"),
        ({"person": "nobody"}, "#/person"),
        ({"begins_at": "2026-03-02T09:00:00"}, "#/begins_at"),
        ({"begins_at": "2026-03-32T09:00:00Z"}, "#/begins_at"),
        ({"ends_at": 1}, "#/ends_at"),
        ({"ends_at": "2020-03-02T09:00:00Z"}, "'#'"),
        ({"ends_at": "9999-12-31T23:59:59-12:00"}, "'#'"),
        ({"begins_at": "0001-01-01T00:00:00+14:00"}, "'#'"),
    ],
)
def test_an_override_that_cannot_be_is_said_to_be_wrong(
    robot: Program, change: dict[str, Any], pointer: str
) -> None:
    there = add(robot)

    assert pointer in problem(robot.ask("POST", f"{there}/overrides", coming(**change)), 400)
    assert not OnCallOverride.objects.exists()


def test_times_have_any_offset(robot: Program) -> None:
    there, given = add(robot), coming()
    begins = datetime.fromisoformat(given["begins_at"])
    elsewhere = begins.astimezone(timezone.get_fixed_timezone(330)).isoformat()

    made = robot.post(f"{there}/overrides", {**given, "begins_at": elsewhere})

    assert elsewhere.endswith("+05:30")
    assert OnCallOverride.objects.get(pk=made["id"]).begins_at == begins


# Messages


def test_messages_to_users_that_were_given_up_are_sent_again(robot: Program) -> None:
    hook = Webhook.objects.create(name="pager", url="https://10.1.1.1/x", sealed_secret=b"")
    bob = User.objects.get(username="bob")
    dead = {"entry_id": 1, "event": Event.APPROVAL_NEEDED, "state": Delivery.State.DEAD}
    ended = {**dead, "ended_at": timezone.now(), "error": "It was away."}
    for n in range(2):
        Delivery.objects.create(channel="email", person=bob, **{**ended, "entry_id": n})
    Delivery.objects.create(channel="webhook", webhook=hook, **ended)
    expected = [
        {"channel": "email", "webhook": None, "count": 2},
        {"channel": "webhook", "webhook": str(hook.pk), "count": 1},
    ]
    assert robot.get("failed-messages") == {"receivers": expected}

    assert robot.post("failed-messages/repeat", {"channel": "email"}) == {"repeated": 2}

    assert robot.get("failed-messages") == {"receivers": expected[1:]}
    assert last("notification.sent_again").details == {"channel": "email", "count": 2}
    assert robot.post("failed-messages/repeat", {"channel": "push"}) == {"repeated": 0}
    assert "#/channel" in problem(
        robot.ask("POST", "failed-messages/repeat", {"channel": str(hook.pk)}), 400
    )
