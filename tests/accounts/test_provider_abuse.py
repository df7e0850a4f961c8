"""Sign-in by an identity provider, by whoever would misuse it without an account here."""

import base64
import json
from typing import Any

import pytest
from django.test import Client

from accounts import attempts, services
from accounts.models import Identity, User
from accounts.oidc import metadata
from accounts.roles import Role
from audit.models import Entry
from tests.accounts.factors import anna, first_step, is_in
from tests.accounts.fake_provider import FakeProvider, SigningKey, callback
from tests.accounts.test_identity_providers import (
    Configure,
    begin,
    by_domain,
    company,
    configure,
    connect,
    fake,
    refused,
    sign_in,
    sign_out_from_there,
    way_there,
)

__all__ = ["anna", "company", "configure", "fake"]
LOGOUT = "/sign-in/with/company/logout/"


# Invitations.


@pytest.fixture
def invitation(anna: User) -> str:
    ivo = services.create_person("ivo", roles=[Role.VIEWER], by=anna)
    return services.sign_in_link(ivo, by=anna).rstrip("/").rpartition("/")[2]


@pytest.mark.long
def test_a_link_of_others_begins_no_invitation(
    client: Client, company: FakeProvider, anna: User, invitation: str
) -> None:
    client.force_login(anna)
    response = client.get("/sign-in/with/company/", {"invitation": invitation})

    client.get(callback("company", company.authorize(response["Location"])))

    assert not Identity.objects.filter(person__username="ivo").exists()
    strict = Client(enforce_csrf_checks=True)
    posted = strict.post("/sign-in/with/company/", {"invitation": invitation})
    assert posted.status_code == 403


@pytest.mark.long
def test_an_invitation_over_an_open_session_asks_to_sign_out_first(
    client: Client, company: FakeProvider, anna: User, bob: User, invitation: str
) -> None:
    client.force_login(anna)
    for text in (invitation, "a/b", ""):
        unsaid = client.post("/sign-in/with/company/", {"invitation": text})
        assert unsaid.status_code == 409
        assert "You are signed in here as anna." in unsaid.text

    client.post("/sign-out/")
    said = {"invitation": invitation}
    answer = company.authorize(way_there(client.post("/sign-in/with/company/", said)))
    # Somebody else signs in before they come back.
    kept = client.session["at_providers"]
    client.force_login(bob)
    session = client.session
    session["at_providers"] = kept
    session.save()
    assert client.get(callback("company", answer)).status_code == 403
    assert not Identity.objects.exists()

    client.post("/sign-out/")
    assert sign_in(client, company, **said).status_code == 302
    assert int(client.session["_auth_user_id"]) == User.objects.get(username="ivo").pk


# How often.


@pytest.mark.long
def test_answers_that_fail_are_limited_by_address(
    client: Client, company: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "OF_ADDRESS", 3)
    statuses = []
    for _n in range(5):
        answer = company.authorize(begin(client), code=None, error="access_denied")
        statuses.append(client.get(callback("company", answer)).status_code)

    assert statuses == [403, 403, 403, 429, 429]
    assert Entry.objects.filter(action="sign_in.failed").count() == 3
    # Another address is let in.
    other = Client(REMOTE_ADDR="192.0.2.7")
    assert sign_in(other, company).status_code == 302


@pytest.mark.long
def test_a_provider_that_failed_is_not_asked_by_each_junk_token(
    client: Client, company: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    company.document = {"issuer": "https://evil.example"}
    for _n in range(5):
        assert client.post(LOGOUT, {"logout_token": company.logout_token()}).status_code == 400
    assert len(company.asked) == 1

    company.document = {}
    monkeypatch.setattr(metadata, "FAILED_S", 0.0)
    assert sign_in(client, company).status_code == 302


@pytest.mark.long
def test_junk_logout_tokens_leave_new_keys_for_signing_in(
    client: Client, company: FakeProvider
) -> None:
    sign_in(client, company)
    good, company.keys = company.key, [company.key.public]
    for _n in range(metadata.RENEWALS + 3):
        company.key = SigningKey()
        assert sign_out_from_there(company).status_code == 400
    assert company.key != good
    company.keys = None

    assert sign_in(Client(), company).status_code == 302


# What is no token.


def part(said: Any) -> str:
    text = said if isinstance(said, str) else json.dumps(said)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", [[], {}, ["RS256"], 1, None])
def test_a_header_that_is_odd(client: Client, company: FakeProvider, algorithm: object) -> None:
    token = f"{part({'alg': algorithm})}.{part({})}.{part('x')}"

    assert client.post(LOGOUT, {"logout_token": token}).status_code == 400


def test_a_header_that_is_nested_too_deeply(client: Client, company: FakeProvider) -> None:
    token = f"{part('[' * 40_000)}.{part({})}.{part('x')}"

    assert client.post(LOGOUT, {"logout_token": token}).status_code == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"sub": ""},
        {"sub": "a\0b"},
        {"sub": "a" * 256},
        {"sub": 5},
        {"email": "nora\0@example.com"},
        {"nonce": "\ud800"},
        {"nonce": ["a"]},
        {"sid": "\0"},
        {"name": "\udfff"},
        {"iat": float("inf")},
    ],
)
def test_claims_that_nobody_can_have(
    client: Client, company: FakeProvider, wrong: dict[str, Any]
) -> None:
    company.wrong = wrong

    assert sign_in(client, company).status_code == 403
    assert not is_in(client)


def test_userinfo_that_nobody_can_have(client: Client, company: FakeProvider) -> None:
    company.userinfo = {"sub": company.subject, "name": "a\0b"}

    refused(sign_in(client, company), "characters that no text may have")


@pytest.mark.parametrize("wrong", [{"sid": 5}, {"sub": "\0"}, {"sub": ""}, {"sid": ["a"]}])
def test_a_logout_token_with_odd_names(
    client: Client, company: FakeProvider, wrong: dict[str, Any]
) -> None:
    assert sign_out_from_there(company, **wrong).status_code == 400


# Where it leads, and what it tells.


@pytest.mark.long
def test_a_page_asked_for_is_no_name_of_a_view(
    client: Client, company: FakeProvider, anna: User
) -> None:
    assert sign_in(client, company, next="foo")["Location"] == "/foo"
    assert first_step(Client(), next="foo")["Location"] == "/foo"
    assert first_step(Client())["Location"] == "/"
    assert Client().post("/theme/", {"theme": "dark", "next": "foo"})["Location"] == "/foo"


def test_a_secret_that_cannot_be_read_is_not_named(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    for where in ({"client_secret_file": "/etc/s3cret"}, {"client_secret_env": "S3CRET_NAME"}):
        configure(company=by_domain(company, **where))
        response = sign_in(Client(), company)

        refused(response, "ask whoever runs the host")
        assert "s3cret" not in response.text.lower()
        assert "s3cret" not in Entry.objects.filter(action="sign_in.failed").latest("id").reason


def test_a_file_that_cannot_be_read_is_not_named(
    client: Client, configure: Configure, settings: Any, db: None
) -> None:
    settings.OIDC_FILE.write_text("{")

    said = client.post(LOGOUT, {"logout_token": "x"})

    assert said.status_code == 400
    assert str(settings.OIDC_FILE) not in said.json()["error_description"]


def test_two_who_connect_one_account_at_once(
    client: Client, company: FakeProvider, anna: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    Identity.objects.create(person=bob, issuer=company.issuer, subject=company.subject)
    # As it looks to whoever looked a moment before.
    monkeypatch.setattr("accounts.oidc.identities._find", lambda _at, _claims: None)
    client.force_login(anna)

    client.get(callback("company", company.authorize(way_there(connect(client)))))

    assert "is used by another user" in client.get("/profile/").text


@pytest.mark.django_db(transaction=True)
def test_no_database_connection_is_kept_while_the_provider_is_asked(
    client: Client, company: FakeProvider, kept_connections: list[bool]
) -> None:
    assert sign_in(client, company).status_code == 302

    # Its document, the token and its keys.
    assert kept_connections == [False] * 3
