"""Users, usage, health, webhooks and tool lists by the service API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.utils import timezone

from accounts.models import Agent, ServiceToken, User
from accounts.roles import Role
from audit.models import Entry
from calls.record.states import State
from notifications.models import Delivery, Webhook
from policies.models import Rule
from registry.models import Server, Tool, Toolset
from tests.console import scenery
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db(transaction=True)
CHANGE_USER = "accounts.change_user"
HOOK = {"name": "pager", "url": "https://pager.example.com/hook", "events": ["approval.needed"]}


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def robot(ada: User) -> Program:
    return program("robot", ada)


@pytest.fixture
def send(ada: User, scout: Agent) -> Tool:
    mailer = scenery.server("mailer", ada, scenery.SEND)
    return scenery.offered(scout, mailer.tools.get(name="send_mail"))


def problem(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return str(answer.json())


# Users


def test_users_are_read_with_their_roles(robot: Program, ada: User) -> None:
    scenery.person("eve", Role.APPROVER)

    listed = {one["name"]: one for one in robot.get("users")["items"]}

    assert set(listed) >= {"ada", "eve"}
    assert listed["eve"]["groups"] == ["Approver"]
    assert listed["eve"]["has_second_factor"] is False
    assert robot.get("users/eve") == listed["eve"]
    assert "password" not in str(listed)
    page = robot.get("users?limit=1&fields=name")
    rest = robot.get(f"users?fields=name&cursor={page['next']}")
    assert [one["name"] for one in page["items"] + rest["items"]] == sorted(listed)


def test_a_leaver_is_disabled_and_the_entry_names_the_account(robot: Program) -> None:
    eve = scenery.person("eve", Role.APPROVER)

    changed = robot.change("users/eve", {"enabled": False, "reason": "Left on Friday."})

    assert changed["enabled"] is False
    eve.refresh_from_db()
    assert not eve.is_active
    entry = Entry.objects.get(action="person.disabled")
    assert (entry.actor, entry.reason) == ("service account robot", "Left on Friday.")


def test_the_tokens_of_a_leaver_end_with_them(robot: Program) -> None:
    other = program("other", scenery.person("eve", *Role))

    robot.change("users/eve", {"enabled": False})

    assert other.ask("GET", "me").status_code == 401
    assert ServiceToken.objects.get(created_by__username="eve").revoked_at


def test_no_token_enables_a_user_or_gives_a_role(robot: Program) -> None:
    eve = scenery.person("eve", Role.VIEWER)
    User.objects.filter(pk=eve.pk).update(is_active=False)
    tag = robot.ask("GET", "users/eve")["ETag"]

    said = problem(robot.ask("PATCH", "users/eve", {"enabled": True}, If_Match=tag), 400)
    assert "signed in to the console" in said
    said = problem(
        robot.ask("PATCH", "users/eve", {"groups": ["Administrator"]}, If_Match=tag), 400
    )
    assert "no such member" in said
    eve.refresh_from_db()
    assert not eve.is_active
    problem(robot.ask("POST", "users", {"name": "new"}), 405)


def test_a_token_does_not_disable_its_creator_or_the_last_administrator(
    robot: Program, ada: User
) -> None:
    tag = robot.ask("GET", "users/ada")["ETag"]

    answer = robot.ask("PATCH", "users/ada", {"enabled": False}, If_Match=tag)

    assert "You cannot disable your own account" in problem(answer, 400)
    ada.refresh_from_db()
    assert ada.is_active


def test_a_token_disables_nobody_who_may_do_more_than_its_creator(db: None) -> None:
    helpdesk = scenery.person("kim", Role.VIEWER)
    desk = Group.objects.create(name="Help desk")
    desk.permissions.set(Permission.objects.filter(codename__in=("view_user", "change_user")))
    helpdesk.groups.add(desk)
    scenery.person("ada", *Role)
    scenery.person("eve", Role.ADMINISTRATOR)
    asking = program("desk", User.objects.get(pk=helpdesk.pk), "accounts.view_user", CHANGE_USER)
    tag = asking.ask("GET", "users/eve")["ETag"]

    answer = asking.ask("PATCH", "users/eve", {"enabled": False}, If_Match=tag)

    assert "may do more than you" in problem(answer, 400)


# Usage and health


@pytest.mark.long
def test_usage_has_what_the_charts_have(robot: Program, scout: Agent, send: Tool) -> None:
    for state in (State.SUCCEEDED, State.TOOL_ERROR):
        made = scenery.call(scout, send, scenery.MAIL, State.QUEUED)
        scenery.run(made)
        scenery.finish(made, {"content": []}, state)
    scenery.call(scout, send, scenery.MAIL, State.HELD)

    seen = robot.get("usage?range=1h")

    assert (seen["range"], seen["calls"]) == ("1h", 3)
    assert seen["outcomes"] == {"succeeded": 1, "error": 1, "stopped": 0, "invalid": 0, "live": 1}
    assert seen["error_percent"] == 50.0
    assert [one["name"] for one in seen["agents"]] == ["scout"]
    assert [one["name"] for one in seen["tools"]] == ["mailer.send_mail"]
    assert [one["name"] for one in seen["servers"]] == ["mailer"]
    assert len(seen["steps"]) == 20
    assert sum(one["calls"] for one in seen["steps"]) == 3
    for narrowed in ("agents/scout", "servers/mailer"):
        assert robot.get(f"{narrowed}/usage?range=1h")["calls"] == 3
    of_tool = robot.get("tools/mailer.send_mail/usage")
    assert (of_tool["calls"], len(of_tool["days"])) == (3, 30)
    assert of_tool["callers"] == [{"agent": "scout", "calls": 3}]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("usage?range=2h", 400),
        ("agents/nobody/usage", 404),
        ("servers/nothing/usage", 404),
        ("rules/1/usage", 404),
        ("tools/no.thing/usage", 404),
    ],
)
def test_a_wrong_usage_is_a_problem(robot: Program, path: str, status: int) -> None:
    problem(robot.ask("GET", path), status)


def test_usage_names_servers_to_who_may_view_them(ada: User, scout: Agent, send: Tool) -> None:
    scenery.call(scout, send, scenery.MAIL, State.HELD)
    rule = Rule.objects.create(name="all", effect="allow")

    assert program("one", ada).get("usage")["servers"]
    assert program("two", ada, "calls.view_call").get("usage")["servers"] == []
    assert program("three", ada).get(f"rules/{rule.pk}/usage")["calls"] == 0


def test_health_says_what_waits(robot: Program, scout: Agent, send: Tool) -> None:
    assert robot.get("health")["pending_approvals"] == 0
    scenery.call(scout, send, scenery.MAIL, State.HELD)
    Server.objects.update(health=Server.Health.DOWN, health_since=timezone.now())
    robot.post("emergency-stops", {"agent": "scout", "reason": "It spins."})

    seen = robot.get("health")

    assert (seen["pending_approvals"], seen["emergency_stops"]) == (1, 1)
    assert seen["oldest_pending_at"]
    assert seen["unreachable_servers"] == ["mailer"]
    assert seen["paused"] == ""


# Webhooks


def test_a_webhook_is_made_and_its_secret_is_shown_once(robot: Program) -> None:
    first = robot.post("webhooks", HOOK, Idempotency_Key="k1")
    again = robot.post("webhooks", HOOK, Idempotency_Key="k1")

    assert first["secret"].startswith("whsec_")
    assert again == {**first, "secret": None}
    assert first["created_by"] == "ada"
    made = Webhook.objects.get()
    assert (made.name, made.events) == ("pager", ["approval.needed"])
    assert first["secret"] not in str(robot.get(f"webhooks/{made.pk}"))
    assert Entry.objects.get(action="webhook.added").actor == "service account robot"


def test_a_webhook_is_changed_switched_off_and_removed(robot: Program) -> None:
    there = f"webhooks/{robot.post('webhooks', HOOK)['id']}"

    changed = robot.change(there, {"events": [], "enabled": False})

    assert (changed["events"], changed["enabled"], changed["url"]) == ([], False, HOOK["url"])
    rotated = robot.post(f"{there}/rotate")
    assert rotated["secret"].startswith("whsec_")
    robot.change(there, method="DELETE")
    assert not Webhook.objects.exists()
    actions = Entry.objects.filter(actor="service account robot").values_list("action", flat=True)
    assert {
        "webhook.changed",
        "webhook.disabled",
        "webhook.secret_rotated",
        "webhook.removed",
    } <= set(actions)


@pytest.mark.long
def test_a_test_is_listed_and_repeated_once_it_was_given_up(robot: Program) -> None:
    there = f"webhooks/{robot.post('webhooks', HOOK)['id']}"

    sent = robot.post(f"{there}/test")

    (listed,) = robot.get(f"{there}/deliveries")["items"]
    assert (listed["id"], listed["event"]) == (sent["id"], "test")
    busy = robot.ask("POST", f"{there}/deliveries/{sent['id']}/repeat", {})
    problem(busy, 409)
    Delivery.objects.update(state=Delivery.State.DEAD, ended_at=timezone.now())
    assert robot.get(f"{there}/deliveries?state=dead")["items"]
    assert robot.post(f"{there}/deliveries/{sent['id']}/repeat")["state"] == "pending"
    other = robot.post("webhooks", {**HOOK, "name": "other"})
    problem(robot.ask("POST", f"webhooks/{other['id']}/deliveries/{sent['id']}/repeat", {}), 404)
    problem(robot.ask("GET", f"{there}/deliveries?state=lost"), 400)


def test_a_chats_address_is_in_no_answer_and_its_messages_show_no_arguments(
    robot: Program,
) -> None:
    secret = "https://hooks.slack.com/services/T0/B0/verysecretpath"
    made = robot.post("webhooks", {"name": "ops", "format": "slack", "url": secret})

    assert made["secret"] is None
    assert "verysecret" not in str(made)
    # Its creator may view arguments; the token never may.
    Webhook.objects.update(takes_arguments=True)
    tag = robot.ask("GET", f"webhooks/{made['id']}")["ETag"]
    robot.change(f"webhooks/{made['id']}", {"name": "operations"})
    assert not Webhook.objects.get().takes_arguments
    assert Webhook.objects.get().sealed_url
    problem(robot.ask("PATCH", f"webhooks/{made['id']}", {"name": "x"}, If_Match=tag), 412)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"url": "http://pager.example.com"}, "#/url"),
        ({"url": "https://10.0.0.1/x"}, "#/url"),
        ({"events": ["nothing"]}, "#/events/0"),
        ({"format": "slack_app"}, "#/format"),
        ({"name": ""}, "#/name"),
        ({"takes_arguments": True}, "#/takes_arguments"),
    ],
)
def test_mistakes_name_their_member(robot: Program, change: dict[str, Any], pointer: str) -> None:
    answer = robot.ask("POST", "webhooks", {**HOOK, **change})

    assert pointer in problem(answer, 400)
    assert not Webhook.objects.exists()


def test_a_slack_app_is_changed_in_the_console_alone(robot: Program, ada: User) -> None:
    app = Webhook.objects.create(
        name="app", format="slack_app", url="https://slack.com/x", sealed_secret=b""
    )
    tag = robot.ask("GET", f"webhooks/{app.pk}")["ETag"]

    answer = robot.ask("PATCH", f"webhooks/{app.pk}", {"name": "x"}, If_Match=tag)
    assert "changed in the console" in problem(answer, 400)
    problem(robot.ask("POST", f"webhooks/{app.pk}/rotate", {}), 404)
    assert robot.change(f"webhooks/{app.pk}", {"enabled": False})["enabled"] is False


# Tool lists


def test_a_toolset_is_listed_for_a_models_api(robot: Program, scout: Agent, send: Tool) -> None:
    slug = Toolset.objects.get(agents=scout).slug

    there = f"toolsets/{slug}/tools?format=anthropic"
    listed = robot.get(there)

    assert [one["name"] for one in listed["tools"]] == ["mailer_send_mail"]
    assert "input_schema" in listed["tools"][0]
    tag = robot.ask("GET", there)["ETag"]
    assert tag == f'"{listed["digest"]}"'
    assert robot.ask("GET", there, If_None_Match=tag).status_code == 304
    problem(robot.ask("GET", f"toolsets/{slug}/tools?format=xml"), 400)
    problem(robot.ask("GET", "toolsets/nothing/tools"), 404)
