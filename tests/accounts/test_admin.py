"""The boiler room: an administrator keeps people, and what is done there is recorded."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from accounts.tokens import look_up
from audit.models import Entry
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


def _change(client: Client, someone: User, **values: Any) -> Any:
    """Send the person's form as it stands, with `values` instead."""
    url = reverse("admin:accounts_user_change", args=[someone.pk])
    form = client.get(url).context["adminform"].form
    filled = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    filled["groups"] = [group.pk for group in filled["groups"] or []]
    filled |= values
    given = {name: value for name, value in filled.items() if value not in (None, False)}
    return client.post(url, given)


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


def test_a_person_is_switched_off_and_it_is_recorded(
    as_carol: Client, bob: User, scout_token: str
) -> None:
    response = _change(as_carol, bob, is_active=False)

    assert response.status_code == 302
    assert look_up(scout_token) is None
    entry = Entry.objects.get(action="person.changed")
    assert (entry.actor, entry.details) == (
        "carol",
        {"person": "bob", "fields": ["is_active"], "groups": ["Viewer"], "active": False},
    )


def test_an_administrator_makes_nobody_a_superuser(as_carol: Client, bob: User) -> None:
    _change(as_carol, bob, is_superuser=True)

    bob.refresh_from_db()
    assert not bob.is_superuser


def test_an_administrator_takes_over_no_superuser(as_carol: Client, bob: User) -> None:
    bob.is_superuser = True
    bob.save()
    new = {"password1": "a new secret, long", "password2": "a new secret, long"}

    changed = as_carol.post(reverse("admin:auth_user_password_change", args=[bob.pk]), new)

    assert changed.status_code == 403
    assert as_carol.post(reverse("admin:accounts_user_change", args=[bob.pk])).status_code == 403


def test_an_administrator_sets_nobodys_password_and_adds_nobody(
    as_carol: Client, bob: User
) -> None:
    new = {"password1": "a new secret, long", "password2": "a new secret, long"}
    at = reverse("admin:auth_user_password_change", args=[bob.pk])

    assert as_carol.post(at, {**new, "usable_password": "true"}).status_code == 403
    assert as_carol.post(reverse("admin:accounts_user_add"), {"username": "x"}).status_code == 403
    bob.refresh_from_db()
    assert not bob.check_password("a new secret, long")


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


def test_what_a_group_may_do_is_changed_with_an_entry(client: Client, carol: User) -> None:
    User.objects.filter(pk=carol.pk).update(is_superuser=True)
    client.force_login(carol)
    look = Permission.objects.get(codename="view_entry").pk
    cancel = Permission.objects.get(codename="cancel_call").pk

    client.post(reverse("admin:auth_group_add"), {"name": "night shift", "permissions": [look]})
    made = Group.objects.get(name="night shift")
    change = reverse("admin:auth_group_change", args=[made.pk])
    client.post(change, {"name": "night shift", "permissions": [cancel]})
    client.post(reverse("admin:auth_group_delete", args=[made.pk]), {"post": "yes"})

    removed, changed, created = Entry.objects.filter(action__startswith="group.")
    assert (created.action, created.details["given"]) == ("group.created", ["audit.view_entry"])
    assert changed.details["given"] == ["calls.cancel_call"]
    assert changed.details["taken"] == ["audit.view_entry"]
    assert (removed.action, removed.actor) == ("group.removed", "carol")
    assert not Group.objects.filter(name="night shift").exists()
