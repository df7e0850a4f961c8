"""A rule tried on the last week from its form, and the report of one that only monitors."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import services
from approvals.models import Approval
from audit.models import Entry
from calls.record.states import State
from policies.models import Rule
from registry import managed
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
FORM: dict[str, Any] = {
    "name": "mails",
    "mode": "enforce",
    "effect": "ask",
    "server": "mailer",
    "tool": "send_mail",
    "when": "",
    "thresholds-0-approve": "",
}


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def send(olga: User) -> Tool:
    mailer = scenery.server("mailer", olga, scenery.SEND, scenery.ADD)
    return Tool.objects.get(server=mailer, name="send_mail")


@pytest.fixture
def week(scout: Agent, send: Tool) -> None:
    """Three mails that ran, one that a person denied, and a sum."""
    for _n in range(3):
        scenery.call(scout, send, scenery.MAIL, State.QUEUED)
    held = scenery.call(scout, send, {**scenery.MAIL, "subject": "Invoice 12"}, State.HELD)
    approval = Approval.objects.get(pk=held)
    alice = scenery.person("alice", Role.APPROVER)
    digest = approval.call.call_digest
    services.vote(approval, by=alice, approve=False, seen_digest=digest)
    add = Tool.objects.get(name="add")
    scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED)


def attempt(client: Client, there: str, **changes: Any) -> Any:
    return client.post(there, {**FORM, **changes}, headers={"HX-Request": "true"})


def test_a_new_rule_is_tried_and_not_saved(client: Client, ada: User, week: None) -> None:
    Rule.objects.create(name="all", effect="allow")
    client.force_login(ada)
    entries = Entry.objects.count()

    answer = attempt(client, reverse("approvals:try_new_rule"))

    assert "Would have required approval 4 times." in answer.text
    assert "People denied 1 of them." in answer.text
    assert "4 decisions would have been different." in answer.text
    assert "calls of the last 7 days" in answer.text
    assert "<html" not in answer.text
    assert [rule.name for rule in Rule.objects.all()] == ["all"]
    assert Entry.objects.count() == entries


def test_it_is_tried_as_if_it_were_on(client: Client, ada: User, week: None) -> None:
    rule = Rule.objects.create(name="mails", effect="allow", mode="off")
    client.force_login(ada)

    there = reverse("approvals:try_rule", args=[rule.pk])
    answer = attempt(client, there, mode="off", effect="deny", when="args.subject.contains('12')")

    assert "Would have denied 1 call." in answer.text
    rule.refresh_from_db()
    assert (rule.mode, rule.effect, rule.when) == ("off", "allow", "")


def test_without_a_script_it_is_a_page(client: Client, ada: User, week: None) -> None:
    client.force_login(ada)

    answer = client.post(reverse("approvals:try_new_rule"), FORM)

    assert "<h1>mails</h1>" in answer.text
    assert "Would have required approval 4 times." in answer.text
    form = client.get(reverse("policies:add_rule")).text
    assert f'formaction="{reverse("approvals:try_new_rule")}"' in form


def test_mistakes_name_their_field(client: Client, ada: User, week: None) -> None:
    client.force_login(ada)
    there = reverse("approvals:try_new_rule")

    assert "Condition:" in attempt(client, there, when="args.").text
    assert "cannot rest on a server" in attempt(client, there, effect="allow", hint="writes").text
    assert not Rule.objects.exists()


def test_a_rule_that_only_monitors_reports(client: Client, ada: User, week: None) -> None:
    Rule.objects.create(name="all", effect="allow")
    watched = {"server": "mailer", "tool": "send_mail", "mode": "shadow"}
    rule = Rule.objects.create(name="mails", effect="ask", **watched)
    client.force_login(ada)
    there = reverse("approvals:rule_trial", args=[rule.pk])
    assert there in client.get(reverse("policies:rules")).text

    answer = client.get(there)

    assert "Would have required approval 4 times." in answer.text
    assert "People denied 1 of them." in answer.text
    rule.refresh_from_db()
    assert rule.mode == "shadow"


@pytest.mark.long
def test_calls_for_which_others_ask_as_well_are_counted(
    client: Client, ada: User, week: None
) -> None:
    Rule.objects.create(name="all", effect="ask")
    client.force_login(ada)

    answer = attempt(client, reverse("approvals:try_new_rule"))

    assert "Would have required approval 4 times." in answer.text
    assert "0 decisions would have been different." in answer.text


def test_a_managed_rule_is_tried_and_stays(client: Client, ada: User, week: None) -> None:
    managed.manage([managed.ManagedName(managed.RULES)], "git: policy.yaml")
    client.force_login(ada)

    assert "Would have" in attempt(client, reverse("approvals:try_new_rule")).text
    assert not Rule.objects.exists()


@pytest.mark.long
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.VIEWER])
def test_who_may_not_change_rules_tries_none(client: Client, role: Role, week: None) -> None:
    client.force_login(scenery.person("pat", role))

    assert attempt(client, reverse("approvals:try_new_rule")).status_code == 403


def test_who_may_not_see_calls_tries_none(client: Client, week: None) -> None:
    kim = scenery.person("kim")
    codes = ("change_rule", "view_rule")
    kim.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client.force_login(User.objects.get(pk=kim.pk))
    rule = Rule.objects.create(name="all", effect="allow", mode="shadow")

    assert attempt(client, reverse("approvals:try_new_rule")).status_code == 403
    assert client.get(reverse("approvals:rule_trial", args=[rule.pk])).status_code == 403
    assert "Try on the last" not in client.get(reverse("policies:rule", args=[rule.pk])).text
    assert client.get(reverse("approvals:try_new_rule")).status_code in (403, 405)


@pytest.mark.django_db(transaction=True)
def test_one_at_a_time(client: Client, ada: User, week: None) -> None:
    client.force_login(ada)
    with closing(connection.copy()) as other, other.cursor() as cursor:
        # Its session goes back to the pool: a lock of the session would outlive the test.
        cursor.execute("BEGIN")
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('policy plan'))")

        assert (
            "Another plan is being created"
            in attempt(client, reverse("approvals:try_new_rule")).text
        )
        cursor.execute("ROLLBACK")
