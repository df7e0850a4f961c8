"""The page on which administrators handle SCIM tokens."""

import re

import pytest
from django.test import Client

from accounts import services
from accounts.models import Agent, ScimToken, User
from accounts.roles import Role
from audit.models import Entry
from tests.accounts.fake_provider import FakeProvider
from tests.accounts.scim import Directory, scim_token
from tests.accounts.test_identity_providers import Configure, company, configure, fake
from tests.console import scenery

__all__ = ["company", "configure", "fake"]

pytestmark = pytest.mark.django_db
ISSUE = "/provisioning/company/tokens/"


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def shown(page: str) -> str:
    found = re.search(r'id="token" tabindex="0">(csp_\w+)<', page)
    assert found
    return found[1]


@pytest.mark.long
def test_a_token_is_shown_once_rotated_and_revoked(company: FakeProvider, ada: User) -> None:
    client = signed_in(ada)

    text = shown(client.post(ISSUE, {"company-days": "30"}).text)

    page = client.get("/provisioning/").text
    assert text not in page
    assert f"csp_{text[4:12]}_…" in page
    assert Directory(text).ask("GET", "/Users").status_code == 200
    other = shown(client.post(f"/provisioning/tokens/{text[4:12]}/rotate/").text)
    assert other != text
    for one in (text, other):
        client.post(f"/provisioning/tokens/{one[4:12]}/revoke/")
        assert Directory(one).ask("GET", "/Users").status_code == 401
    said = Entry.objects.filter(action__startswith="scim_token.").order_by("id")
    actions = ["issued", "issued", "rotated", "revoked", "revoked"]
    assert [one.action for one in said] == [f"scim_token.{what}" for what in actions]
    assert {(one.actor, one.details["provider"]) for one in said} == {("ada", "Company")}
    assert text not in str([(one.reason, one.details) for one in said])


@pytest.mark.parametrize("days", ["0", "366", "x", ""])
def test_days_have_bounds(company: FakeProvider, ada: User, days: str) -> None:
    assert 'class="error"' in signed_in(ada).post(ISSUE, {"company-days": days}).text
    assert not ScimToken.objects.exists()


@pytest.mark.long
def test_another_administrator_confirms(company: FakeProvider, ada: User) -> None:
    eve = signed_in(scenery.person("eve", Role.ADMINISTRATOR))
    client = signed_in(ada)
    page = client.post(ISSUE, {"company-days": "30"}).text
    assert "until another administrator has confirmed it" in page
    confirm = f"/provisioning/tokens/{shown(page)[4:12]}/confirm/"
    assert confirm not in client.get("/provisioning/").text
    assert "Another administrator" in client.post(confirm, follow=True).text
    entry = Entry.objects.get(action="confirmation.rejected")
    assert (entry.actor, entry.details["confirmed"]) == ("ada", str(ScimToken.objects.get()))
    assert Directory(shown(page)).ask("GET", "/Users").status_code == 401

    assert confirm in eve.get("/provisioning/").text
    assert "is confirmed" in eve.post(confirm, follow=True).text

    assert Directory(shown(page)).ask("GET", "/Users").status_code == 200


@pytest.mark.long
def test_tokens_of_a_provider_that_left_the_file_are_shown_and_revoked(
    company: FakeProvider, configure: Configure, ada: User
) -> None:
    text, client = scim_token(ada), signed_in(ada)
    eve = signed_in(scenery.person("eve", Role.ADMINISTRATOR))
    unconfirmed = scim_token(ada)
    configure(other={"issuer": "https://other.example", "name": "Other"})
    assert Directory(text).ask("GET", "/Users").status_code == 401

    page = eve.get("/provisioning/").text.partition('id="shut-out"')[2]

    assert company.issuer in page
    assert f"tokens/{text[4:12]}/rotate/" not in page
    assert f"tokens/{unconfirmed[4:12]}/confirm/" not in page
    confirm = f"/provisioning/tokens/{unconfirmed[4:12]}/confirm/"
    assert "no such identity provider" in eve.post(confirm, follow=True).text
    assert not ScimToken.objects.get(public_id=unconfirmed[4:12]).is_confirmed
    for one in (text, unconfirmed):
        assert f"tokens/{one[4:12]}/revocation/" in page
        client.post(f"/provisioning/tokens/{one[4:12]}/revoke/")
    assert "shut-out" not in client.get("/provisioning/").text
    # In the file again, it opens nothing.
    configure(company={"issuer": company.issuer, "name": "Company"})
    assert Directory(text).ask("GET", "/Users").status_code == 401


@pytest.mark.long
def test_whoever_is_disabled_leaves_tokens_that_are_named_and_marked(
    company: FakeProvider, ada: User, scout: Agent
) -> None:
    csp = scim_token(ada)
    eve = scenery.person("eve", Role.ADMINISTRATOR)
    client, unconfirmed = signed_in(eve), scim_token(ada)
    csa = services.issue_token(scout, by=ada)
    services.issue_token(scout, by=scout.owner)
    lasting = [f"csp_{csp[4:12]}_…", f"csp_{unconfirmed[4:12]}_…", f"csa_{csa[4:12]}_…"]
    there = f"/people/{ada.pk}/"
    assert "are still valid" not in client.get(there).text

    before = client.get(f"{there}disable/").text
    client.post(f"{there}active/", {"active": "0"})

    after = client.get(there).text
    for one in lasting:
        assert one in before
        assert one in after
    assert str(scout.tokens.exclude(created_by=ada).get()) not in before + after
    assert Directory(csp).ask("GET", "/Users").status_code == 200
    page = client.get("/provisioning/").text
    assert page.count("Its issuer, who has seen it, is disabled") == 1
    confirm = f"/provisioning/tokens/{unconfirmed[4:12]}/confirm/"
    assert "may not issue any more" in client.post(confirm, follow=True).text
    for token in (csp, unconfirmed):
        client.post(f"/provisioning/tokens/{token[4:12]}/revoke/")
    services.revoke_token(scout.tokens.get(created_by=ada), by=eve)
    assert "are still valid" not in client.get(there).text


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.VIEWER])
def test_only_administrators_reach_it(company: FakeProvider, role: Role) -> None:
    client = signed_in(scenery.person("mallory", role))

    assert client.get("/provisioning/").status_code == 403
    assert client.post(ISSUE, {"company-days": "30"}).status_code == 403
    for what in ("rotate", "confirm", "revoke"):
        assert client.post(f"/provisioning/tokens/x/{what}/").status_code == 403
        assert client.get(f"/provisioning/tokens/x/{what}/").status_code == 405
    assert "/provisioning/" not in client.get("/settings/").text


def test_a_provider_that_is_not_there_has_no_token(company: FakeProvider, ada: User) -> None:
    client = signed_in(ada)

    assert client.post("/provisioning/nobody/tokens/", {"nobody-days": "30"}).status_code == 404
    assert client.post("/provisioning/tokens/nobody/revoke/").status_code == 404


@pytest.mark.long
def test_every_token_that_opens_something_is_shown_however_many_have_ended(
    company: FakeProvider, configure: Configure, ada: User
) -> None:
    client = signed_in(ada)
    first, *others = (scim_token(ada) for _ in range(23))
    for one in others:
        client.post(f"/provisioning/tokens/{one[4:12]}/revoke/")
    revoke = f"/provisioning/tokens/{first[4:12]}/revocation/"
    # With what was said of each.
    client.get("/provisioning/")

    page = client.get("/provisioning/").text
    assert revoke in page
    assert page.count(">Revoked<") == 20
    # Above the ended ones, also where no file names its provider.
    assert page.index(f"csp_{first[4:12]}_") < page.index(f"csp_{others[-1][4:12]}_")
    configure(other={"issuer": "https://other.example", "name": "Other"})
    assert revoke in client.get("/provisioning/").text


def test_a_client_at_a_provider_is_no_token_that_somebody_has_seen(
    company: FakeProvider, ada: User, scout: Agent
) -> None:
    services.name_client(scout, issuer=company.issuer, client_id="robot", by=ada)
    eve = signed_in(scenery.person("eve", Role.ADMINISTRATOR))

    eve.post(f"/people/{ada.pk}/active/", {"active": "0"})

    assert "are still valid" not in eve.get(f"/people/{ada.pk}/").text
