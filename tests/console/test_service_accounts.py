"""Service accounts in the console: who makes them, what is shown once, what is recorded."""

import re

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from accounts import service_accounts
from accounts.models import ServiceAccount, ServiceToken, User
from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery

pytestmark = pytest.mark.django_db
SCOPES = ["registry.view_server", "calls.view_call"]


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def make(client: Client, **given: object) -> str:
    asked = {"name": "robot", "purpose": "Nightly reports", "scopes": SCOPES, **given}
    return client.post(reverse("accounts:add_service_account"), asked, follow=True).text


def at(name: str, *more: str) -> str:
    return reverse(f"accounts:{name}", args=["robot", *more])


def test_an_administrator_makes_one_and_its_maker_is_shown(as_ada: Client) -> None:
    page = make(as_ada)

    assert "“robot” is there. Give it a token." in page.replace("&quot;", '"')
    assert "Nightly reports" in page
    entry = Entry.objects.get(action="service_account.created")
    assert (entry.actor, entry.details["scopes"]) == ("ada", sorted(SCOPES))


def test_who_made_it_never_changes(as_ada: Client, bob: User) -> None:
    make(as_ada)

    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        ServiceAccount.objects.update(created_by=bob)


def test_a_token_is_shown_once_and_kept_as_an_hmac(as_ada: Client) -> None:
    make(as_ada)
    page = as_ada.post(at("issue_service_token"), {"days": "30"}).text
    found = re.search(r'<code id="token"[^>]*>(css_[^<]+)<', page)

    assert found
    assert found[1] not in as_ada.get(at("service_account")).text
    token = ServiceToken.objects.get()
    assert found[1].encode() not in bytes(token.digest)
    assert service_accounts.authenticate(found[1])


def test_rotating_revoking_and_disabling_are_entries(as_ada: Client) -> None:
    make(as_ada)
    as_ada.post(at("issue_service_token"), {"days": "30"})
    first = ServiceToken.objects.get()
    as_ada.post(at("rotate_service_token", first.public_id))
    as_ada.post(at("revoke_service_token", first.public_id), {"reason": "Leaked."})
    as_ada.post(at("set_service_account_scopes"), {"scopes": SCOPES[:1]})
    as_ada.post(at("set_service_account_enabled"), {"enabled": "0", "reason": "Retired."})
    as_ada.post(at("set_service_account_enabled"), {"enabled": "1"})

    entries = Entry.objects.filter(action__startswith="service_").order_by("id")
    assert [(entry.action, entry.reason) for entry in entries][3:] == [
        ("service_token.rotated", "A new token takes its place; this one ends within the hour."),
        ("service_token.revoked", "Leaked."),
        ("service_account.scopes_set", ""),
        ("service_account.disabled", "Retired."),
        ("service_account.enabled", ""),
    ]
    assert all(entry.details["made_by"] == "ada" for entry in entries)


def test_an_administrator_gives_only_what_they_have(as_ada: Client) -> None:
    page = make(as_ada, scopes=["approvals.view_approval"])

    assert "You do not have the permission" in page
    assert not ServiceAccount.objects.exists()


@pytest.mark.parametrize("days", ["0", "91", ""])
def test_an_expiry_is_required_and_has_a_maximum(as_ada: Client, days: str) -> None:
    make(as_ada)
    as_ada.post(at("issue_service_token"), {"days": days})

    assert not ServiceToken.objects.exists()


@pytest.mark.parametrize("name", ["olga", "alice", "bob", "mallory"])
def test_nobody_else_makes_or_sees_one(
    request: pytest.FixtureRequest, as_ada: Client, name: str
) -> None:
    make(as_ada)
    client = Client()
    client.force_login(request.getfixturevalue(name))

    assert client.get(reverse("accounts:service_accounts")).status_code == 403
    assert client.get(reverse("accounts:add_service_account")).status_code == 403
    assert client.post(at("issue_service_token"), {"days": "1"}).status_code == 403
    assert client.post(at("set_service_account_enabled"), {"enabled": "0"}).status_code == 403


def test_an_auditor_looks_and_changes_nothing(as_ada: Client) -> None:
    make(as_ada)
    client = Client()
    client.force_login(scenery.person("ines", Role.AUDITOR))

    assert "Nightly reports" in client.get(at("service_account")).text
    assert "Create token" not in client.get(at("service_account")).text
    assert client.post(at("issue_service_token"), {"days": "1"}).status_code == 403


def test_a_valid_token_is_shown_however_many_have_ended(as_ada: Client, ada: User) -> None:
    make(as_ada)
    account = ServiceAccount.objects.get()
    first, *others = (service_accounts.issue_token(account, by=ada) for _ in range(52))
    for one in account.tokens.exclude(public_id=first[4:12]):
        service_accounts.revoke_token(one, by=ada)

    page = as_ada.get(at("service_account")).text

    assert at("revoke_service_token", first[4:12]) in page
    assert page.count(">Revoked<") == 50
    assert f"css_{others[0][4:12]}_" not in page
