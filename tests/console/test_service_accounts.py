"""Service accounts in the console: who makes them, what is shown once, what is recorded."""

import re

import pyotp
import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import one_time_codes, service_accounts, stepup
from accounts.actors import AccountRefused
from accounts.models import CodeApp, Proof, ServiceAccount, ServiceToken, User
from accounts.roles import Role
from audit.models import Entry
from tests.accounts import service_tokens
from tests.approvals.test_stepping import passkey
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_valid_token_is_shown_however_many_have_ended(as_ada: Client, ada: User) -> None:
    make(as_ada)
    account = ServiceAccount.objects.get()
    first, *others = (service_accounts.issue_token(account, by=ada) for _ in range(52))
    for one in account.tokens.exclude(public_id=first[4:12]):
        service_accounts.revoke_token(one, by=ada)

    page = as_ada.get(at("service_account")).text

    assert reverse("approvals:revoke_service_token", args=["robot", first[4:12]]) in page
    assert page.count(">Revoked<") == 50
    assert f"css_{others[0][4:12]}_" not in page


CHANGING = ["policies.add_rule", "registry.view_server"]
ISSUE = {"days": "30"}


@pytest.fixture
def app(ada: User) -> pyotp.TOTP:
    made = pyotp.TOTP(one_time_codes.secret(one_time_codes.begin(ada)))
    CodeApp.objects.filter(person=ada).update(confirmed_at=timezone.now())
    return made


@pytest.mark.long
def test_a_token_that_changes_things_takes_a_code(as_ada: Client, app: pyotp.TOTP) -> None:
    make(as_ada, scopes=CHANGING)
    asked = as_ada.post(at("issue_service_token"), ISSUE)
    wrong = as_ada.post(at("issue_service_token"), {**ISSUE, "code": "000000"})
    assert "Let robot make changes?" in asked.text
    assert 'name="days" value="30"' in asked.text
    assert "The code is wrong" in wrong.text
    assert not ServiceToken.objects.exists()

    page = as_ada.post(at("issue_service_token"), {**ISSUE, "code": app.now()}).text

    assert '<code id="token"' in page
    proof = Proof.objects.get()
    assert "permissions: policies.add_rule registry.view_server\n" in proof.statement
    assert "act: create a token for 30 days\n" in proof.statement
    entry = Entry.objects.get(action="service_token.issued")
    assert entry.details["proof"] == proof.statement_digest


@pytest.mark.long
def test_a_passkey_signs_the_very_token(as_ada: Client, ada: User) -> None:
    make(as_ada, scopes=CHANGING)
    device = passkey(ada)
    offered = as_ada.post(at("issue_service_token") + "?options=1", ISSUE).json()
    assert "act: create a token for 30 days\n" in offered["statement"]
    signed = {"ticket": offered["ticket"], "answer": device.get(offered["publicKey"])}

    other = as_ada.post(at("issue_service_token"), {"days": "90", **signed})
    assert "not this decision" in other.text
    assert not ServiceToken.objects.exists()
    as_ada.post(at("issue_service_token"), {**ISSUE, **signed})
    assert ServiceToken.objects.count() == 1
    assert stepup.problem(Proof.objects.get()) == ""

    as_ada.post(at("issue_service_token"), {**ISSUE, **signed})
    assert ServiceToken.objects.count() == 1


def test_rotating_such_a_token_takes_one_too(as_ada: Client, ada: User, app: pyotp.TOTP) -> None:
    make(as_ada, scopes=CHANGING)
    service_tokens.issue(ServiceAccount.objects.get(), by=ada)
    rotate = at("rotate_service_token", ServiceToken.objects.get().public_id)

    assert "Let robot make changes?" in as_ada.post(rotate).text
    assert ServiceToken.objects.count() == 1
    as_ada.post(rotate, {"code": app.now()})
    assert ServiceToken.objects.count() == 2


def test_adding_permissions_to_change_takes_one_and_removing_none(
    as_ada: Client, app: pyotp.TOTP
) -> None:
    make(as_ada)
    as_ada.post(at("issue_service_token"), ISSUE)
    path, added = at("set_service_account_scopes"), {"scopes": CHANGING}

    page = as_ada.post(path, added).text
    assert "Create rules" in page
    assert "1 valid token has them." in page
    assert "policies.add_rule" not in ServiceAccount.objects.get().scopes
    as_ada.post(path, {**added, "code": app.now()})
    assert ServiceAccount.objects.get().scopes == sorted(CHANGING)
    entry = Entry.objects.get(action="service_account.scopes_set")
    assert entry.details["proof"] == Proof.objects.get().statement_digest
    as_ada.post(path, {"scopes": CHANGING[1:]})
    assert ServiceAccount.objects.get().scopes == CHANGING[1:]


def test_without_a_second_factor_it_is_shown_what_to_do(as_ada: Client) -> None:
    make(as_ada, scopes=CHANGING)
    page = as_ada.post(at("issue_service_token"), ISSUE).text

    assert "You need a passkey or a code app of your own" in page
    assert not ServiceToken.objects.exists()


def test_no_token_is_made_of_permissions_that_nobody_confirmed(ada: User) -> None:
    account = service_accounts.create("robot", purpose="x", scopes=CHANGING[1:], by=ada)
    proof = service_tokens.proof_of(account, ada)
    ServiceAccount.objects.update(scopes=CHANGING)

    for given, said in ((None, "Confirm with a passkey"), (proof, "changed meanwhile")):
        with pytest.raises(AccountRefused, match=said):
            service_accounts.issue_token(account, by=ada, proof=given)
