"""Deleting servers, settings of tools, overrides of toolsets and repeated messages by REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.record.states import State
from notifications.models import Delivery, Webhook
from registry import managed
from registry.managed import ManagedName
from registry.models import Server, ShownTool, Tool, Toolset
from tests.console import scenery
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db
SENT = "mailer.send_mail"


@pytest.fixture
def robot(db: None) -> Program:
    return program("robot", scenery.person("ada", *Role))


@pytest.fixture
def send(robot: Program, bob: User) -> Tool:
    return scenery.server("mailer", bob, scenery.SEND, scenery.ADD).tools.get(name="send_mail")


def problem(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return str(answer.json())


def last(action: str) -> Entry:
    entry = Entry.objects.filter(action=action).latest("id")
    assert entry.actor == "service account robot"
    return entry


# Servers


def test_a_server_that_was_registered_by_mistake_is_deleted(robot: Program, send: Tool) -> None:
    robot.change("servers/mailer", method="DELETE")

    assert robot.ask("GET", "servers/mailer").status_code == 404
    assert Server.objects.get(slug="mailer").deleted_at
    assert robot.get("tools")["items"] == []
    assert last("server.deleted").server == "mailer"


def test_a_server_is_not_deleted_while_calls_of_it_are_open(
    robot: Program, send: Tool, scout: Agent
) -> None:
    scenery.call(scout, scenery.offered(scout, send), scenery.MAIL, State.HELD)
    tag = robot.ask("GET", "servers/mailer")["ETag"]

    said = problem(robot.ask("DELETE", "servers/mailer", If_Match=tag), 409)

    assert "calls that have not ended" in said
    assert Server.objects.kept().filter(slug="mailer").exists()


def test_deleting_takes_the_version_that_was_read(robot: Program, send: Tool) -> None:
    problem(robot.ask("DELETE", "servers/mailer"), 428)
    problem(robot.ask("DELETE", "servers/mailer", If_Match='"other"'), 412)

    assert Server.objects.kept().filter(slug="mailer").exists()


# Tools


def test_tags_are_set_anew(robot: Program, send: Tool) -> None:
    assert robot.change(f"tools/{SENT}/tags", {"tags": ["post", "mail"]}, "PUT") == {
        "tags": ["mail", "post"]
    }
    assert robot.change(f"tools/{SENT}/tags", {"tags": []}, "PUT") == {"tags": []}
    assert last("tool.tagged").tool == SENT


def test_handling_is_changed_in_parts(robot: Program, send: Tool) -> None:
    changed = robot.change(f"tools/{SENT}/handling", {"timeout_seconds": 7, "duplicates": "allow"})

    assert changed == robot.get(f"tools/{SENT}/handling")
    send.refresh_from_db()
    assert (send.timeout_s, send.repeats, send.mode) == (7, "allow", Tool.Mode.AUTO)
    assert last("tool.handling_set").details["timeout_s"] == 7


def test_labels_are_an_operators_word_or_the_hints(robot: Program, send: Tool) -> None:
    before = robot.get(f"tools/{SENT}/labels")
    changed = robot.change(f"tools/{SENT}/labels", {"sink": "no", "sensitive": "yes"})

    assert (changed["untrusted"], changed["sink"]) == ("hinted", "no")
    assert "sensitive" in changed["counting"]
    assert "sink" not in changed["counting"]
    again = robot.change(f"tools/{SENT}/labels", {"sink": "hinted", "sensitive": "hinted"})
    assert again == before
    assert last("tool.labels_set").tool == SENT


def test_labels_that_a_policy_file_manages_are_changed_there(robot: Program, send: Tool) -> None:
    managed.manage([ManagedName(managed.TOOLS, SENT)], "https://git.example/policy.yaml")
    tag = robot.ask("GET", f"tools/{SENT}/labels")["ETag"]

    said = problem(robot.ask("PATCH", f"tools/{SENT}/labels", {"sink": "no"}, If_Match=tag), 409)

    assert "git.example" in said


def test_results_are_cleaned_as_chosen(robot: Program, send: Tool) -> None:
    changed = robot.change(f"tools/{SENT}/results", {"secrets": True, "max_bytes": 2048})

    assert (changed["secrets"], changed["max_bytes"], changed["hidden"]) == (True, 2048, "")
    send.refresh_from_db()
    assert send.result_rules.secrets
    assert last("tool.result_rules_set").tool == SENT


@pytest.mark.parametrize(
    ("part", "method", "body"),
    [
        ("tags", "PUT", {"tags": ["Not a tag"]}),
        ("handling", "PATCH", {"timeout_seconds": 0}),
        ("handling", "PATCH", {"mode": "never"}),
        ("labels", "PATCH", {"sink": ""}),
        ("labels", "PATCH", {"counting": []}),
        ("results", "PATCH", {"max_bytes": 1}),
        ("results", "PATCH", {"patterns": "name: ("}),
    ],
)
def test_what_no_form_takes_is_not_set(
    robot: Program, send: Tool, part: str, method: str, body: Any
) -> None:
    there = f"tools/{SENT}/{part}"
    tag = robot.ask("GET", there)["ETag"]

    problem(robot.ask(method, there, body, If_Match=tag), 400)

    assert robot.ask("GET", there)["ETag"] == tag


# Toolsets


def test_a_toolset_shows_a_tool_as_chosen(robot: Program, send: Tool) -> None:
    Toolset.objects.create(slug="office").tools.add(send)
    there = f"toolsets/office/tools/{SENT}/override"
    assert set(robot.get(there).values()) == {""}

    changed = robot.change(there, {"name": "mail", "pinned": '{"subject": "From the office"}'})

    assert changed == {
        "name": "mail",
        "title": "",
        "description": "",
        "pinned": '{"subject": "From the office"}',
    }
    assert last("toolset.tool_shown").details["shown"]["name"] == "mail"
    robot.change(there, dict.fromkeys(changed, ""))
    assert not ShownTool.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a b"}, "#/name"),
        ({"name": "mailer.add"}, "#/name"),
        ({"pinned": "[]"}, "#/pinned"),
        ({"pinned": '{"nobody": 1}'}, "#/pinned"),
    ],
)
def test_an_override_that_cannot_be_is_said_to_be_wrong(
    robot: Program, send: Tool, body: Any, pointer: str
) -> None:
    Toolset.objects.create(slug="office").servers.add(send.server)
    there = f"toolsets/office/tools/{SENT}/override"
    tag = robot.ask("GET", there)["ETag"]

    said = problem(robot.ask("PATCH", there, body, If_Match=tag), 400)

    assert pointer in said
    assert not ShownTool.objects.exists()


def test_a_tool_that_is_not_in_the_toolset_has_no_override(robot: Program, send: Tool) -> None:
    Toolset.objects.create(slug="office")

    problem(robot.ask("GET", f"toolsets/office/tools/{SENT}/override"), 404)


# Messages


def test_all_messages_that_were_given_up_are_sent_again(robot: Program) -> None:
    hook, other = (
        Webhook.objects.create(name=name, url="https://10.1.1.1/x", sealed_secret=b"")
        for name in ("pager", "other")
    )
    ended = {"state": Delivery.State.DEAD, "ended_at": timezone.now(), "error": "It was away."}
    for there in (hook, hook, other):
        robot.post(f"webhooks/{there.pk}/test")
    Delivery.objects.update(**ended)

    assert robot.post(f"webhooks/{hook.pk}/deliveries/repeat") == {"repeated": 2}

    assert Delivery.objects.filter(webhook=hook, state=Delivery.State.PENDING).count() == 2
    assert Delivery.objects.get(webhook=other).state == Delivery.State.DEAD
    assert last("notification.sent_again").details == {"webhook": "pager", "count": 2}
    assert robot.post(f"webhooks/{hook.pk}/deliveries/repeat") == {"repeated": 0}
