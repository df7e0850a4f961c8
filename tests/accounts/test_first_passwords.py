"""A first password of a user of an identity provider: confirmed, since it outlives the session."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts import stepup
from accounts.models import Identity, Proof, User
from accounts.roles import Role
from audit.models import Entry
from tests.accounts.fake_provider import FakeProvider, callback
from tests.accounts.test_factor_resets import code_of, has_codes
from tests.accounts.test_identity_providers import (
    Configure,
    by_domain,
    configure,
    fake,
    sign_in,
    way_there,
)
from tests.console import scenery

__all__ = ["configure", "fake"]
pytestmark = pytest.mark.django_db
STRONG = "urn:example:mfa"
NEW = {"new_password1": "a quiet harbour at dusk", "new_password2": "a quiet harbour at dusk"}


@pytest.fixture
def vera(fake: FakeProvider) -> User:
    vera = scenery.person("vera", Role.VIEWER)
    Identity.objects.create(person=vera, issuer=fake.issuer, subject=fake.subject)
    return vera


@pytest.fixture
def as_vera(client: Client, fake: FakeProvider, configure: Configure, vera: User) -> Client:
    configure(company=by_domain(fake, step_up_acr_values=[STRONG]))
    assert sign_in(client, fake).status_code == 302
    fake.about |= {"acr": STRONG}
    return client


def set_password(client: Client, **more: str) -> Any:
    return client.post(reverse("accounts:password"), NEW | more, follow=True)


def has_password() -> bool:
    return User.objects.get(username="vera").has_usable_password()


@pytest.mark.long
def test_a_session_alone_sets_none(as_vera: Client, vera: User) -> None:
    profile = as_vera.get("/profile/").text
    assert "Confirm at Company" in profile
    assert "new_password1" not in profile

    page = set_password(as_vera)

    assert "Confirm first that it is you" in page.text
    assert not has_password()
    assert "Confirm first" in set_password(as_vera, code=" ").text
    assert "wrong" in set_password(as_vera, code="000000").text
    assert not has_password()
    assert not Entry.objects.filter(action="person.password_set").exists()


@pytest.mark.long
def test_a_new_sign_in_at_the_provider_confirms_it_once(
    as_vera: Client, fake: FakeProvider, vera: User
) -> None:
    there = way_there(as_vera.post(reverse("accounts:confirm_first_password")))
    assert "prompt=login" in there
    back = as_vera.get(callback("company", fake.authorize(there)))
    assert back["Location"] == "/profile/"
    assert "You confirmed at Company that it is you" in as_vera.get("/profile/").text

    # A password that does not do uses nothing up.
    assert (
        "new_password2"
        in set_password(as_vera, new_password2="another").context["password_form"].errors
    )
    assert "Your password is set." in set_password(as_vera).text

    assert has_password()
    proof = Proof.objects.get()
    assert (proof.method, stepup.problem(proof)) == ("oidc", "")
    entry = Entry.objects.get(action="person.password_set")
    assert entry.details["proof"] == proof.statement_digest
    assert not as_vera.session.get("confirmed_at_provider")


@pytest.mark.long
def test_a_code_confirms_it(client: Client, vera: User) -> None:
    client.force_login(has_codes(vera))
    assert 'name="code"' in client.get("/profile/").text
    assert "wrong" in set_password(client, code="000000").text

    assert "Your password is set." in set_password(client, code=code_of(vera)).text
    assert Proof.objects.get().method == "totp"


def test_where_nothing_confirms_it_the_page_says_who_can_help(client: Client, vera: User) -> None:
    client.force_login(vera)

    assert "manage.py changepassword vera" in client.get("/profile/").text
    set_password(client)
    answer = client.post(reverse("accounts:confirm_first_password"), follow=True)

    assert "did not sign in at a provider" in answer.text
    assert not has_password()
    assert client.get(reverse("accounts:confirm_first_password")).status_code == 405
