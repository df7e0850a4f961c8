"""The boiler room: to look at what the console changes."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from accounts.tokens import look_up
from audit.models import Entry
from audit.services import SYSTEM
from policies.models import Effect, Rule
from policies.services import save_rule
from tests.conftest import person

PAGES = [
    "accounts_user",
    "accounts_agent",
    "accounts_agenttoken",
    "registry_server",
    "registry_tool",
    "registry_definition",
    "registry_publication",
    "registry_discovery",
    "registry_toolset",
]


@pytest.fixture
def carol(db: None) -> User:
    """An administrator."""
    made = person("carol", Role.ADMINISTRATOR)
    made.is_staff = True
    made.save()
    return made


@pytest.fixture
def as_carol(client: Client, carol: User) -> Client:
    client.force_login(carol)
    return client


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_an_administrator_sees_every_page(as_carol: Client, scout_token: str, page: str) -> None:
    assert as_carol.get(reverse(f"admin:{page}_changelist")).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_mallory_sees_none(client: Client, mallory: User, page: str) -> None:
    mallory.is_staff = True
    mallory.save()
    client.force_login(mallory)

    assert client.get(reverse(f"admin:{page}_changelist")).status_code == 403


@pytest.mark.parametrize("page", PAGES[1:])
def test_nothing_else_is_added_there(as_carol: Client, page: str) -> None:
    assert as_carol.get(reverse(f"admin:{page}_add")).status_code == 403


@pytest.fixture(params=["an administrator", "a superuser"])
def as_anybody(request: pytest.FixtureRequest, client: Client, carol: User) -> Client:
    """Whoever may most."""
    User.objects.filter(pk=carol.pk).update(is_superuser=request.param == "a superuser")
    client.force_login(carol)
    return client


@pytest.mark.parametrize(
    "values",
    [
        {"username": "bobby"},
        {"is_active": ""},
        {"is_superuser": "on", "is_staff": "on"},
        {"groups": ["1", "2", "3"]},
        {"user_permissions": ["1"]},
    ],
    ids="".join,
)
def test_nobody_is_changed_there(as_anybody: Client, bob: User, values: dict[str, object]) -> None:
    """What may be done to people, the console does, with its checks and entries."""
    before = User.objects.filter(pk=bob.pk).values().get()
    at = reverse("admin:accounts_user_change", args=[bob.pk])

    assert as_anybody.post(at, values).status_code == 403

    assert User.objects.filter(pk=bob.pk).values().get() == before
    assert set(bob.groups.values_list("name", flat=True)) == {Role.VIEWER}
    assert not bob.user_permissions.exists()


def test_the_last_administrator_is_not_removed_there(as_anybody: Client, carol: User) -> None:
    at = reverse("admin:accounts_user_change", args=[carol.pk])

    assert as_anybody.post(at, {"username": "carol"}).status_code == 403

    assert carol.groups.filter(name=Role.ADMINISTRATOR).exists()


@pytest.mark.long
def test_no_password_is_set_there_and_none_is_offered(as_anybody: Client, bob: User) -> None:
    new = {"password1": "a new secret, long", "password2": "a new secret, long"}

    page = as_anybody.get(reverse("admin:accounts_user_change", args=[bob.pk])).content.decode()
    as_anybody.post(f"/admin/accounts/user/{bob.pk}/password/", new)

    assert "assword" not in page.split('id="content"')[1]
    bob.refresh_from_db()
    assert not bob.check_password("a new secret, long")
    assert as_anybody.post(reverse("admin:accounts_user_add"), {"username": "x"}).status_code == 403


@pytest.mark.long
def test_it_has_no_door_of_its_own(client: Client, bob: User) -> None:
    asked = client.get("/admin/", follow=True)
    assert asked.redirect_chain[-1][0] == "/sign-in/?next=/admin/"

    given = {"username": "bob", "password": "x"}
    assert client.post("/admin/login/", given)["Location"].startswith("/sign-in/")
    client.force_login(bob)
    assert client.get("/admin/", follow=True).status_code == 403


def test_nobody_is_removed(as_carol: Client, bob: User) -> None:
    url = reverse("admin:accounts_user_delete", args=[bob.pk])

    assert as_carol.post(url, {"post": "yes"}).status_code == 403


def _act(client: Client, page: str, action: str, pk: int) -> Any:
    url = reverse(f"admin:{page}_changelist")
    return client.post(url, {"action": action, "_selected_action": [pk]})


def test_tokens_are_revoked_there(as_carol: Client, scout_token: str) -> None:
    _act(as_carol, "accounts_agenttoken", "revoke", AgentToken.objects.get().pk)

    assert look_up(scout_token) is None
    assert Entry.objects.get(action="token.revoked").actor == "carol"


def test_agents_are_switched_there(as_carol: Client, scout: Agent, scout_token: str) -> None:
    _act(as_carol, "accounts_agent", "disable", scout.pk)
    assert look_up(scout_token) is None

    _act(as_carol, "accounts_agent", "enable", scout.pk)
    assert look_up(scout_token) is not None


def test_an_auditor_looks_and_does_not_touch(
    client: Client, scout: Agent, scout_token: str
) -> None:
    auditor = person("ines", Role.AUDITOR)
    auditor.is_staff = True
    auditor.save()
    client.force_login(auditor)

    _act(client, "accounts_agenttoken", "revoke", AgentToken.objects.get().pk)
    _act(client, "accounts_agent", "disable", scout.pk)

    assert look_up(scout_token) is not None


def test_a_tokens_digest_is_not_shown(as_carol: Client, scout_token: str) -> None:
    url = reverse("admin:accounts_agenttoken_change", args=[AgentToken.objects.get().pk])

    page = as_carol.get(url)

    assert page.status_code == 200
    assert "igest" not in page.content.decode()


def test_no_group_is_given_a_permission_there(as_anybody: Client) -> None:
    decide = Permission.objects.get(codename="decide_approval").pk

    for group in (Group.objects.get(name=Role.VIEWER), Group.objects.create(name="payments")):
        at = reverse("admin:auth_group_change", args=[group.pk])
        given = {"name": "other", "permissions": [decide]}
        assert as_anybody.post(at, given).status_code == 403
        assert not group.permissions.filter(pk=decide).exists()
    made = {"name": "night shift", "permissions": [decide]}
    as_anybody.post(reverse("admin:auth_group_add"), made)
    assert not Group.objects.get(name="night shift").permissions.exists()


def test_groups_come_and_go_with_an_entry_and_roles_stay(client: Client, carol: User) -> None:
    User.objects.filter(pk=carol.pk).update(is_superuser=True)
    client.force_login(carol)

    client.post(reverse("admin:auth_group_add"), {"name": "night shift"})
    made = Group.objects.get(name="night shift")
    client.post(reverse("admin:auth_group_delete", args=[made.pk]), {"post": "yes"})
    role = Group.objects.get(name=Role.APPROVER)
    refused = client.post(reverse("admin:auth_group_delete", args=[role.pk]), {"post": "yes"})

    removed, created = Entry.objects.filter(action__startswith="group.")
    assert (created.action, created.details["group"]) == ("group.created", "night shift")
    assert (removed.action, removed.actor) == ("group.removed", "carol")
    assert not Group.objects.filter(name="night shift").exists()
    assert refused.status_code == 403


def test_who_decides_by_a_group_is_seen_to_lose_it_with_the_group(
    client: Client, carol: User, alice: User
) -> None:
    deciders = Group.objects.create(name="deciders")
    deciders.permissions.add(Permission.objects.get(codename="decide_approval"))
    alice.groups.add(deciders)
    User.objects.filter(pk=carol.pk).update(is_superuser=True)
    client.force_login(carol)

    client.post(reverse("admin:auth_group_delete", args=[deciders.pk]), {"post": "yes"})

    lost = Entry.objects.get(action="role.taken")
    assert (lost.actor, lost.details["person"], lost.details["role"]) == (
        "carol",
        "alice",
        "deciders",
    )


def test_rules_are_only_looked_at_there(as_anybody: Client) -> None:
    rule = save_rule(Rule(name="r", effect=Effect.ASK), by=SYSTEM)

    at = reverse("admin:policies_rule_change", args=[rule.pk])
    assert as_anybody.get(at).status_code == 200
    assert as_anybody.post(at, {"name": "r", "effect": "allow"}).status_code == 403
    gone = reverse("admin:policies_rule_delete", args=[rule.pk])
    assert as_anybody.post(gone, {"post": "yes"}).status_code == 403
    rule.refresh_from_db()
    assert rule.effect == Effect.ASK
