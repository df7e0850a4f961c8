"""Signing in at an identity provider: whom its word lets in, and what it must not be taken for."""

import html
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyotp
import pytest
from django.conf import settings as current
from django.contrib.auth.models import Group
from django.test import Client

from accounts import one_time_codes, password_reset, services
from accounts.models import Identity, RoleChange, User
from accounts.oidc import metadata
from accounts.roles import Role, ensure_roles
from audit.models import Entry
from tests.accounts import fake_provider, real_provider
from tests.accounts.factors import anna, is_in
from tests.accounts.fake_provider import FakeProvider, SigningKey, callback
from tests.console import scenery

__all__ = ["anna"]

Configure = Callable[..., None]


@pytest.fixture
def configure(settings: Any, tmp_path: Path) -> Iterator[Configure]:
    """Writes the host's file: for each provider its settings beside those that all have."""
    settings.OIDC_FILE = tmp_path / "oidc.json"
    metadata.forget()

    def write(**providers: dict[str, Any]) -> None:
        read = {slug: {"client_id": "countersign", **one} for slug, one in providers.items()}
        settings.OIDC_FILE.write_text(json.dumps({"providers": read}))

    yield write
    metadata.forget()


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with fake_provider.running() as provider:
        yield provider


@pytest.fixture
def company(fake: FakeProvider, configure: Configure, db: None) -> FakeProvider:
    """Lets in whoever has a verified address at example.com."""
    ensure_roles()
    configure(company=by_domain(fake))
    fake.about = {"email": "nora@example.com", "email_verified": True}
    return fake


def by_domain(fake: FakeProvider, **more: Any) -> dict[str, Any]:
    policy = {"first_sign_in": "domain", "domains": ["example.com"]}
    return {"issuer": fake.issuer, "name": "Company", **policy, **more}


def begin(client: Client, slug: str = "company", **query: str) -> str:
    if "invitation" in query:
        return way_there(client.post(f"/sign-in/with/{slug}/", query))
    response = client.get(f"/sign-in/with/{slug}/", query)
    assert response.status_code == 302, response.text
    return str(response["Location"])


def sign_in(client: Client, fake: FakeProvider, slug: str = "company", **query: str) -> Any:
    return client.get(callback(slug, fake.authorize(begin(client, slug, **query))))


def refused(response: Any, said: str) -> None:
    assert response.status_code == 403
    assert said in response.text
    assert not is_in(response.client)


@pytest.fixture
def totp(anna: User) -> pyotp.TOTP:
    """An app of hers; its code of now is not used yet."""
    app = one_time_codes.begin(anna)
    codes = pyotp.TOTP(one_time_codes.secret(app))
    one_time_codes.confirm(anna, codes.at(time.time() - 30))
    return codes


# With a provider of others.


@pytest.fixture
def real(configure: Configure, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[str]:
    people = {"nora": {"email": "nora@example.com", "email_verified": True, "groups": ["sre"]}}
    with real_provider.running(current.PUBLIC_URL, people) as issuer:
        ensure_roles()
        monkeypatch.setenv("COMPANY_SECRET", real_provider.SECRET)
        configure(
            company={
                "issuer": issuer,
                "name": "Company",
                "client_secret_env": "COMPANY_SECRET",
                "first_sign_in": "group",
                "allowed_groups": ["sre"],
                "groups": {"sre": Role.OPERATOR},
            }
        )
        yield issuer


@pytest.mark.long
def test_somebody_signs_in_at_a_real_provider(client: Client, real: str) -> None:
    page = client.get("/sign-in/?next=/calls/").text
    assert "Sign in with Company" in page
    assert 'href="/sign-in/with/company/?next=%2Fcalls%2F"' in page
    browser = real_provider.PlainBrowser()

    back = browser.sign_in(begin(client, next="/calls/"), "nora")
    response = client.get(back.removeprefix(current.PUBLIC_URL))

    assert response["Location"] == "/calls/"
    assert is_in(client)
    person = Identity.objects.get(issuer=real, subject="nora").person
    assert person.username == "nora"
    assert person.group_names == [Role.OPERATOR, Role.VIEWER]
    entry = Entry.objects.get(action="person.signed_in")
    assert (entry.actor, entry.reason) == ("nora", "By the identity provider Company.")
    assert entry.details["issuer"] == real


# With one that lies.


def test_a_second_sign_in_is_of_the_same_person(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)
    company.about = {"email": "nora.new@elsewhere.example", "preferred_username": "other"}

    response = sign_in(Client(), company)

    assert response.status_code == 302
    assert Identity.objects.get().person.username == "nora"
    assert User.objects.filter(username__startswith="nora").count() == 1


@pytest.mark.long
def test_an_address_of_mail_opens_no_account(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    """Another provider may give anybody any address: it is another person."""
    sign_in(client, company)
    nora = Identity.objects.get().person
    with fake_provider.running() as other:
        other.about, other.subject = company.about, company.subject
        configure(company=by_domain(company), other=by_domain(other, name="Other"))

        response = sign_in(Client(), other, "other")

    assert response.status_code == 302
    found = Identity.objects.get(issuer=other.issuer).person
    assert found != nora
    assert found.username == "nora-2"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"aud": "another"}, "for another application"),
        ({"aud": ["countersign", "another"]}, "for another application"),
        ({"aud": ["countersign", "another"], "azp": "another"}, "for another application"),
        ({"azp": "another"}, "for another application"),
        ({"iss": "https://evil.example"}, "from another issuer"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"iat": 4_000_000_000}, "from the future"),
        ({"nonce": "another"}, "for another sign-in"),
        ({"nonce": None}, "for another sign-in"),
        ({"sub": None}, "lacks “sub”"),
        ({"exp": None}, "lacks “exp”"),
    ],
)
def test_a_token_that_is_not_for_this_sign_in(
    client: Client, company: FakeProvider, wrong: dict[str, Any], said: str
) -> None:
    company.wrong = wrong

    refused(sign_in(client, company), said)

    entry = Entry.objects.get(action="sign_in.failed")
    assert entry.details["provider"] == "Company"
    assert said in entry.reason


@pytest.mark.long
@pytest.mark.parametrize("skew", [-50, 50])
def test_clocks_may_differ_by_a_minute(client: Client, company: FakeProvider, skew: int) -> None:
    now = int(time.time())
    company.wrong = {"iat": now + skew, "exp": now + skew}

    assert sign_in(client, company).status_code == 302


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_anybody_could_sign(
    client: Client, company: FakeProvider, algorithm: str
) -> None:
    company.algorithm = algorithm

    refused(sign_in(client, company), "signed in a way that is not taken")


def test_a_token_by_another_key_of_the_same_name(client: Client, company: FakeProvider) -> None:
    public = company.key.public
    company.key.private = SigningKey().private
    company.keys = [public]

    refused(sign_in(client, company), "signature is not valid")


@pytest.mark.long
def test_keys_are_changed_while_we_run(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)
    company.key = SigningKey()

    assert sign_in(Client(), company).status_code == 302

    asked = company.asked.count("/jwks")
    company.keys = []
    company.key = SigningKey()
    for _n in range(metadata.RENEWALS + 3):
        assert sign_in(Client(), company).status_code == 403
    assert company.asked.count("/jwks") - asked < metadata.RENEWALS


@pytest.mark.long
def test_an_answer_is_good_once(client: Client, company: FakeProvider) -> None:
    answer = company.authorize(begin(client))
    assert client.get(callback("company", answer)).status_code == 302
    client.post("/sign-out/")

    refused(client.get(callback("company", answer)), "expired, or was used before")


@pytest.mark.long
def test_a_code_is_good_once(client: Client, company: FakeProvider) -> None:
    first = company.authorize(begin(client))
    client.get(callback("company", first))
    other = Client()
    state = company.authorize(begin(other))["state"]

    refused(other.get(callback("company", {**first, "state": state})), "did not take the code")


def test_a_code_of_another_browser(client: Client, company: FakeProvider) -> None:
    """Whoever makes somebody come here with their own answer signs nobody in as themselves."""
    answer = company.authorize(begin(client))
    victim = Client()

    refused(victim.get(callback("company", answer)), "expired, or was used before")
    state = company.authorize(begin(victim))["state"]
    # PKCE: the code is for whoever began it.
    refused(victim.get(callback("company", {**answer, "state": state})), "did not take the code")


def test_an_answer_comes_too_late(
    client: Client, company: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = company.authorize(begin(client))
    now = time.time() + 601
    monkeypatch.setattr("accounts.oidc.authorization.time.time", lambda: now)

    refused(client.get(callback("company", answer)), "expired, or was used before")


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"iss": "https://evil.example"}, "Another provider answered"),
        ({"iss": None}, "does not name its provider"),
        ({"code": None}, "not what was asked for"),
        ({"code": None, "error": "access_denied"}, "did not let you in"),
        ({"code": None, "error": "<b>"}, "The provider reported an error."),
    ],
)
def test_an_answer_that_is_wrong(
    client: Client, company: FakeProvider, wrong: dict[str, Any], said: str
) -> None:
    refused(client.get(callback("company", company.authorize(begin(client), **wrong))), said)
    assert "/token" not in company.asked


def test_one_provider_answers_in_place_of_another(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    """Mix-up: the code of an honest provider must not be handed to a hostile one."""
    with fake_provider.running() as evil:
        configure(company=by_domain(company), evil=by_domain(evil))
        answer = company.authorize(begin(client))

        refused(client.get(callback("evil", answer)), "Another provider answered")
        assert "/token" not in evil.asked


def test_userinfo_of_somebody_else(client: Client, company: FakeProvider) -> None:
    company.userinfo = {"sub": "another", "email": "nora@example.com", "email_verified": True}

    refused(sign_in(client, company), "for a different account")


# Whom it lets in.


@pytest.mark.long
@pytest.mark.parametrize(
    "about",
    [
        {"email": "nora@example.com"},
        {"email": "nora@example.com", "email_verified": False},
        {"email": "nora@example.com.evil.example", "email_verified": True},
        {"email": "nora@evil.example@example.com", "email_verified": True},
        {},
    ],
)
def test_an_address_that_is_not_theirs(
    client: Client, company: FakeProvider, about: dict[str, Any]
) -> None:
    company.about = about

    refused(sign_in(client, company), "Nobody here is connected to this account.")
    assert not Identity.objects.exists()


@pytest.mark.long
def test_a_stranger_comes_by_invitation_alone(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    configure(company={"issuer": company.issuer, "name": "Company"})
    refused(sign_in(client, company), "Open your invitation")

    invited = services.create_person("nora", roles=[Role.APPROVER], by=None)
    link = services.sign_in_link(invited).removeprefix(current.PUBLIC_URL)
    page = client.get(link).text
    assert "Sign in with Company" in page

    response = sign_in(client, company, invitation=link.split("/")[2])

    assert response.status_code == 302
    assert is_in(client)
    assert Identity.objects.get().person == invited
    # The link is used up, also for the password's way.
    assert Client().post(link).status_code == 403
    company.subject = "another"
    refused(sign_in(Client(), company, invitation=link.split("/")[2]), "was used before")


def test_a_disabled_person_stays_outside(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)
    User.objects.filter(username="nora").update(is_active=False)

    refused(sign_in(Client(), company), "Your account is disabled.")


def test_a_second_factor_is_asked_for(
    client: Client, company: FakeProvider, anna: User, totp: Any
) -> None:
    Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)

    response = sign_in(client, company)

    assert response["Location"] == "/sign-in/second-step/"
    assert not is_in(client)
    assert client.post("/sign-in/second-step/", {"code": totp.now()}).status_code == 302
    assert is_in(client)
    assert (
        Entry.objects.get(action="person.signed_in").reason == "By the identity provider Company."
    )


def test_a_strong_sign_in_replaces_it(
    client: Client, company: FakeProvider, configure: Configure, anna: User, totp: Any
) -> None:
    more = {"acr_values": ["urn:mfa"], "replaces_second_factor": True}
    configure(company=by_domain(company, **more))
    Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)
    refused(sign_in(client, company), "not as strong as is wanted")
    company.about["acr"] = "urn:mfa"

    assert "acr_values=urn:mfa" in begin(client)
    assert sign_in(client, company)["Location"] == "/"
    assert is_in(client)


def test_a_sign_in_of_yesterday_is_too_old(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    configure(company=by_domain(company, max_age_s=600))
    company.wrong = {"auth_time": int(time.time()) - 86400}
    refused(sign_in(client, company), "too long ago")
    company.wrong = {"auth_time": None}
    refused(sign_in(client, company), "sent no time of sign-in")


# Groups.


@pytest.mark.long
def test_groups_follow_at_each_sign_in(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    mapped = {"cs-approvers": Role.APPROVER, "cs-audit": Role.AUDITOR}
    configure(company=by_domain(company, groups=mapped))
    company.about["groups"] = ["cs-approvers", "others"]
    sign_in(client, company)
    person = Identity.objects.get().person
    # By hand: not the provider's to take.
    person.groups.add(Group.objects.get(name=Role.OPERATOR))
    company.about["groups"] = ["cs-audit"]

    sign_in(Client(), company)

    names = sorted(person.groups.values_list("name", flat=True))
    assert names == [Role.AUDITOR, Role.OPERATOR, Role.VIEWER]
    changes = RoleChange.objects.filter(person=person).order_by("pk")
    assert [(one.role, one.state, one.source) for one in changes] == [
        (Role.APPROVER, "given", "Company"),
        (Role.APPROVER, "taken", "Company"),
    ]
    entry = Entry.objects.filter(action="person.groups_set").latest("id")
    assert (entry.actor_kind, entry.actor) == ("system", "Company")
    assert entry.details["after"] == names


def test_groups_that_are_told_elsewhere(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    company.about |= {"_claim_names": {"groups": "src1"}}

    refused(sign_in(client, company), "more groups than the provider lists")


def test_the_last_administrator_stays_one(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    configure(company=by_domain(company, groups={"cs-admins": Role.ADMINISTRATOR}))
    admin = scenery.person("root", Role.ADMINISTRATOR)
    Identity.objects.create(person=admin, issuer=company.issuer, subject=company.subject)

    sign_in(client, company)

    assert admin.groups.filter(name=Role.ADMINISTRATOR).exists()


# The file, and the way there.


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": None},
        {"code_challenge_methods_supported": ["plain"]},
    ],
)
def test_a_document_that_cannot_be_trusted(
    client: Client, company: FakeProvider, document: dict[str, Any]
) -> None:
    company.document = document

    response = client.get("/sign-in/with/company/")

    assert response.status_code == 502
    assert 'role="alert"' in response.text


def test_a_provider_in_a_network_that_nobody_named(
    client: Client, company: FakeProvider, settings: Any
) -> None:
    settings.UPSTREAM_NETWORKS = []

    response = client.get("/sign-in/with/company/")

    assert response.status_code == 502
    assert "COUNTERSIGN_UPSTREAM_NETWORKS" in response.text
    assert company.asked == []


@pytest.mark.long
@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example/", "javascript:1"])
def test_it_leads_to_no_other_site(client: Client, company: FakeProvider, there: str) -> None:
    assert sign_in(client, company, next=there)["Location"] == "/"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"providers": {"company": {"issuer": "https://a.example"}}}',
        '{"providers": {"company": {"issuer": "https://a.example", "client_id": "c", "no": 1}}}',
        '{"providers": {"company": {"issuer": "https://a.example", "client_id": "c", '
        '"first_sign_in": "everybody"}}}',
        '{"providers": {"company": {"issuer": "https://a.example", "client_id": "c", '
        '"first_sign_in": "domain"}}}',
    ],
)
def test_a_file_that_cannot_be_used_shows_no_provider(
    client: Client, configure: Configure, settings: Any, db: None, text: str
) -> None:
    settings.OIDC_FILE.write_text(text)

    assert "Sign in with Company" not in client.get("/sign-in/").text
    assert client.get("/sign-in/with/company/")["Location"] == "/sign-in/"


def test_without_a_file_there_is_none(client: Client, configure: Configure, db: None) -> None:
    assert "/sign-in/with/" not in client.get("/sign-in/").text
    assert client.post("/sign-in/with/company/")["Location"] == "/sign-in/"
    assert client.put("/sign-in/with/company/").status_code == 405
    assert client.get("/sign-in/with/company/callback/")["Location"] == "/sign-in/"
    assert "There is no such identity provider." in client.get("/sign-in/").text


# Connecting an account to one that is there.


def connect(client: Client, **fields: str) -> Any:
    given = {"password": scenery.PASSWORD, **fields}
    return client.post("/profile/identities/company/connect/", given)


def way_there(response: Any) -> str:
    assert response.status_code == 200
    found = re.search(r'href="(http[^"]+)"', response.text)
    assert found is not None
    return html.unescape(found[1])


@pytest.mark.long
def test_somebody_connects_an_account_and_disconnects_it(
    client: Client, company: FakeProvider, anna: User
) -> None:
    client.force_login(anna)
    assert "Connect Company" in client.get("/profile/").text

    answer = company.authorize(way_there(connect(client)))
    response = client.get(callback("company", answer))

    assert response["Location"] == "/profile/#identities"
    assert "nora@example.com" in client.get("/profile/").text
    assert Entry.objects.get(action="identity.connected").actor == "anna"
    other = Client()
    assert sign_in(other, company).status_code == 302
    assert Entry.objects.get(action="person.signed_in").actor == "anna"

    pk = Identity.objects.get().pk
    client.post(f"/profile/identities/{pk}/disconnect/", {"password": scenery.PASSWORD})

    assert not Identity.objects.connected().exists()
    assert is_in(client)
    assert not is_in(other)
    assert Entry.objects.get(action="identity.disconnected").details["person"] == "anna"


def test_connecting_asks_for_the_password(
    client: Client, company: FakeProvider, anna: User
) -> None:
    client.force_login(anna)
    identity = Identity.objects.create(person=anna, issuer=company.issuer, subject="s")

    assert connect(client, password="wrong").status_code == 302
    there = f"/profile/identities/{identity.pk}/disconnect/"
    client.post(there, {"password": "wrong"})

    assert "That is not your password." in client.get("/profile/").text
    assert Identity.objects.exists()
    assert client.get("/profile/identities/company/connect/").status_code == 405
    assert Client().post(there).status_code == 302


def test_nobody_disconnects_the_account_of_another(
    client: Client, company: FakeProvider, anna: User, bob: User
) -> None:
    identity = Identity.objects.create(person=bob, issuer=company.issuer, subject="s")
    client.force_login(anna)

    there = f"/profile/identities/{identity.pk}/disconnect/"
    assert client.post(there, {"password": scenery.PASSWORD}).status_code == 404


def test_an_account_of_somebody_else_is_not_connected(
    client: Client, company: FakeProvider, anna: User, bob: User
) -> None:
    Identity.objects.create(person=bob, issuer=company.issuer, subject=company.subject)
    client.force_login(anna)

    answer = company.authorize(way_there(connect(client)))
    client.get(callback("company", answer))

    assert "is used by another user" in client.get("/profile/").text
    assert Identity.objects.get().person == bob


def test_connecting_ends_with_the_session_that_began_it(
    client: Client, company: FakeProvider, anna: User, bob: User
) -> None:
    client.force_login(anna)
    answer = company.authorize(way_there(connect(client)))
    session = client.session
    kept = session["at_providers"]
    client.force_login(bob)
    session = client.session
    session["at_providers"] = kept
    session.save()

    assert client.get(callback("company", answer)).status_code == 403
    assert not Identity.objects.exists()


# Signing out, both ways.


def sign_out_from_there(fake: FakeProvider, slug: str = "company", **wrong: Any) -> Any:
    strict = Client(enforce_csrf_checks=True)
    there = f"/sign-in/with/{slug}/logout/"
    return strict.post(there, {"logout_token": fake.logout_token(**wrong)})


@pytest.mark.long
def test_signing_out_offers_to_sign_out_there(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)

    response = client.post("/sign-out/", follow=True)

    assert not is_in(client)
    assert "You are still signed in at Company" in response.text
    there = client.get("/signed-out/at-provider/")["Location"]
    assert there.startswith(f"{company.issuer}/end?id_token_hint=ey")
    assert "post_logout_redirect_uri=" in there


@pytest.mark.long
def test_a_provider_without_a_page_for_signing_out(client: Client, company: FakeProvider) -> None:
    company.document = {"end_session_endpoint": None}
    sign_in(client, company)
    client.post("/sign-out/")

    response = client.get("/signed-out/at-provider/", follow=True)

    assert "has no page for signing out" in response.text
    assert Client().get("/signed-out/")["Location"] == "/sign-in/"
    assert Client().get("/signed-out/at-provider/")["Location"] == "/sign-in/"


def test_the_provider_signs_somebody_out(client: Client, company: FakeProvider, anna: User) -> None:
    sign_in(client, company)
    other = Client()
    other.force_login(anna)

    response = sign_out_from_there(company)

    assert response.status_code == 200
    assert not is_in(client)
    assert is_in(other)
    entry = Entry.objects.get(action="sessions.ended")
    assert (entry.actor, entry.details["person"]) == ("Company", "nora")


def test_it_ends_one_of_its_sessions(company: FakeProvider) -> None:
    one, two = Client(), Client()
    for browser, sid in ((one, "s1"), (two, "s2")):
        company.about["sid"] = sid
        sign_in(browser, company)

    assert sign_out_from_there(company, sub=None, sid="s1").status_code == 200

    assert not is_in(one)
    assert is_in(two)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nonce": "any"}, "not one for signing out"),
        ({"events": {}}, "another event"),
        ({"events": {"http://schemas.openid.net/event/other": {}}}, "another event"),
        ({"events": [fake_provider.LOGOUT]}, "another event"),
        ({"events": None}, "lacks “events”"),
        ({"sub": None}, "names nobody"),
        ({"jti": None}, "lacks “jti”"),
        ({"aud": "another"}, "another application"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"iat": 1_000_000_000}, "too old"),
        ({"iat": 4_000_000_000}, "from the future"),
    ],
)
def test_a_logout_token_that_is_none(
    client: Client, company: FakeProvider, wrong: dict[str, Any], said: str
) -> None:
    sign_in(client, company)

    response = sign_out_from_there(company, **wrong)

    assert response.status_code == 400
    assert said in response.json()["error_description"]
    assert is_in(client)


@pytest.mark.long
def test_an_id_token_signs_nobody_out(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)

    there = "/sign-in/with/company/logout/"
    assert client.post(there, {"logout_token": company.id_token("any")}).status_code == 400
    assert client.post(there).status_code == 400
    assert client.post("/sign-in/with/nobody/logout/").status_code == 400
    assert client.get(there).status_code == 405
    assert is_in(client)


@pytest.mark.long
def test_a_logout_token_is_good_once(client: Client, company: FakeProvider) -> None:
    sign_in(client, company)
    again = {"logout_token": company.logout_token()}
    there = "/sign-in/with/company/logout/"
    assert client.post(there, again).status_code == 200
    sign_in(client, company)

    assert client.post(there, again).status_code == 400
    assert is_in(client)


@pytest.mark.long
def test_another_provider_signs_nobody_out(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    sign_in(client, company)
    with fake_provider.running() as other:
        configure(company=by_domain(company), other=by_domain(other))
        other.subject = company.subject

        assert sign_out_from_there(other, "other").status_code == 200
        assert sign_out_from_there(other, "company").status_code == 400

    assert is_in(client)


# Without passwords.


@pytest.mark.long
def test_without_local_sign_in_only_the_provider_lets_in(
    client: Client, company: FakeProvider, anna: User, settings: Any
) -> None:
    given = {"username": "anna", "password": scenery.PASSWORD}
    assert Client().post("/sign-in/", given).status_code == 302
    invited = services.create_person("ivo", roles=[Role.VIEWER], by=anna)
    link = services.sign_in_link(invited, by=anna).removeprefix(current.PUBLIC_URL)
    password_reset.set_allowed(anna, True)
    reset = f"/password-reset/{password_reset.link_text(anna)}/"
    settings.LOCAL_SIGN_IN = False

    page = client.get("/sign-in/").text
    assert "Sign in with Company" in page
    assert 'name="password"' not in page
    assert "passkey/" not in page
    refused(client.post("/sign-in/", given), "sign nobody in here")
    refused(client.post("/sign-in/passkey/", {"answer": "{}"}), "sign nobody in here")
    refused(client.post(link), "sign in at the identity provider")
    refused(client.get(reset), "sign nobody in here")

    # The link is not used up, and opens the way by the provider.
    response = sign_in(client, company, invitation=link.split("/")[2])
    assert response.status_code == 302
    assert Identity.objects.get().person == invited


def test_whoever_runs_the_host_still_makes_a_way_in(
    client: Client, configure: Configure, anna: User, settings: Any
) -> None:
    settings.LOCAL_SIGN_IN = False
    assert "No identity provider can be used." in client.get("/sign-in/").text

    link = services.sign_in_link(anna).removeprefix(current.PUBLIC_URL)

    assert client.post(link).status_code == 302
    assert is_in(client)
