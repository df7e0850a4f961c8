"""An account at an identity provider is one person's for ever, and a link gives it to nobody who
should not have it."""

from typing import Any

import pyotp
import pytest
from django.conf import settings as current
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from accounts import independence, services
from accounts.models import BrowserSession, Identity, RoleChange, User
from accounts.roles import Role
from audit.models import Entry
from tests.accounts.factors import anna, is_in
from tests.accounts.fake_provider import FakeProvider, callback
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
    totp,
    way_there,
)
from tests.console import scenery

__all__ = ["anna", "company", "configure", "fake", "totp"]


def disconnect(client: Client, identity: Identity) -> Any:
    there = f"/profile/identities/{identity.pk}/disconnect/"
    return client.post(there, {"password": scenery.PASSWORD})


def with_password(person: User) -> User:
    person.set_password(scenery.PASSWORD)
    person.save()
    return person


def text_of(link: str) -> str:
    return link.rstrip("/").rpartition("/")[2]


def invited(by: User, name: str = "ivo") -> tuple[User, str]:
    person = services.create_person(name, roles=[Role.VIEWER], by=by)
    return person, text_of(services.sign_in_link(person, by=by))


# Disconnected.


@pytest.mark.long
def test_nobody_becomes_a_second_person_by_disconnecting(
    client: Client, company: FakeProvider, configure: Configure, anna: User, bob: User
) -> None:
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    company.about["groups"] = ["cs-approvers"]
    sign_in(client, company)
    identity = Identity.objects.get()
    nora = with_password(identity.person)
    nora.groups.add(Group.objects.get(name=Role.OPERATOR))
    client.force_login(nora)
    people = User.objects.count()

    assert disconnect(client, identity).status_code == 302

    # What the provider's groups gave goes with it; what an administrator gave stays.
    names = sorted(nora.groups.values_list("name", flat=True))
    assert names == [Role.OPERATOR, Role.VIEWER]
    assert RoleChange.objects.filter(person=nora, role=Role.APPROVER, state="taken").exists()
    entry = Entry.objects.filter(action="person.groups_set").latest("id")
    assert (entry.actor, entry.reason) == ("nora", "The account was disconnected.")
    assert "None is connected." in client.get("/profile/").text
    assert disconnect(client, identity).status_code == 404
    refused(sign_in(Client(), company), "This account was disconnected.")
    assert User.objects.count() == people

    # Nobody else's either, not by an invitation, and not from a profile.
    _ivo, text = invited(anna)
    refused(sign_in(Client(), company, invitation=text), "is used by another user")
    other = Client()
    with_password(bob)
    other.force_login(bob)
    other.get(callback("company", company.authorize(way_there(connect(other)))))
    assert "is used by another user" in other.get("/profile/").text

    # Hers again, by herself.
    client.get(callback("company", company.authorize(way_there(connect(client)))))
    assert Identity.objects.get().disconnected_at is None
    assert sign_in(Client(), company).status_code == 302
    assert Role.APPROVER in nora.groups.values_list("name", flat=True)
    assert Entry.objects.filter(action="identity.connected").count() == 2


def test_a_group_of_an_administrators_is_not_the_providers(
    client: Client, company: FakeProvider, configure: Configure, anna: User
) -> None:
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    company.about["groups"] = ["cs-approvers"]
    identity = Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)
    sign_in(client, company)

    disconnect(client, identity)

    assert anna.groups.filter(name=Role.APPROVER).exists()


# By a link that somebody made.


def test_an_invitation_used_at_a_provider_counts_like_the_ordinary_one(
    client: Client, company: FakeProvider, anna: User, bob: User
) -> None:
    ivo, _first = invited(anna)
    text = text_of(services.sign_in_link(ivo, by=bob))
    User.objects.filter(pk=ivo.pk).update(
        unconfirmed_until=None, confirmed_by=anna, confirmed_at=timezone.now()
    )

    assert sign_in(client, company, invitation=text).status_code == 302

    ivo = User.objects.get(pk=ivo.pk)
    assert not ivo.is_confirmed
    assert (ivo.confirmed_by, ivo.confirmed_at, ivo.let_in_by) == (None, None, bob)
    known = independence.unconfirmed_inviters()
    assert not independence.are_independent(ivo, bob, known)
    # It is a way in that is theirs alone: they may decide.
    assert ivo.is_vouched_for
    assert Entry.objects.get(action="sign_in_link.used").details["link_made_by"] == "bob"


@pytest.mark.long
def test_an_inviter_keeps_no_back_door(client: Client, company: FakeProvider, anna: User) -> None:
    ivo, first = invited(anna)
    second = text_of(services.sign_in_link(ivo, by=anna))
    third = text_of(services.sign_in_link(ivo, by=anna))
    inviter = Client()
    inviter.post(f"/sign-in/{first}/")
    assert is_in(inviter)
    fourth = text_of(services.sign_in_link(ivo, by=anna))

    assert sign_in(client, company, invitation=fourth).status_code == 302

    assert is_in(client)
    assert client.get("/profile/").status_code == 200
    # The session and the links of whoever made them have ended.
    assert inviter.get("/profile/").status_code == 302
    for text in (second, third):
        assert Client().post(f"/sign-in/{text}/").status_code == 403
    company.subject = "the inviter's own"
    refused(sign_in(Client(), company, invitation=second), "was used before")
    assert Identity.objects.get().person == ivo


def test_a_link_of_before_takes_nobody_over(
    client: Client, company: FakeProvider, anna: User
) -> None:
    ivo, text = invited(anna)
    with_password(ivo)

    refused(sign_in(client, company, invitation=text), "was used before")
    assert client.post(f"/sign-in/{text}/").status_code == 403
    assert not Identity.objects.exists()


# Over a session that is open.


def test_somebody_signs_in_again_over_their_own_session(
    client: Client, company: FakeProvider
) -> None:
    sign_in(client, company)

    assert sign_in(client, company).status_code == 302
    assert sign_out_from_there(company).status_code == 200
    assert not is_in(client)


def test_a_session_over_that_of_another_is_ended_from_there(
    client: Client, company: FakeProvider, anna: User
) -> None:
    client.force_login(anna)
    answer = company.authorize(begin(client))

    assert client.get(callback("company", answer)).status_code == 302

    assert not BrowserSession.objects.filter(key="").exists()
    assert sign_out_from_there(company).status_code == 200
    assert not is_in(client)


def test_a_sign_in_before_its_second_step_is_ended_from_there(
    client: Client, company: FakeProvider, anna: User, totp: pyotp.TOTP
) -> None:
    Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)
    company.about["sid"] = "s1"
    sign_in(client, company)

    assert sign_out_from_there(company, sub=None, sid="s1").status_code == 200

    answer = client.post("/sign-in/second-step/", {"code": totp.now()})
    assert answer["Location"] == "/sign-in/"
    assert not is_in(client)


def test_the_second_step_is_not_listed_as_a_session(
    client: Client, company: FakeProvider, anna: User, totp: pyotp.TOTP
) -> None:
    Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)
    sign_in(client, company)
    client.post("/sign-in/second-step/", {"code": totp.now()})

    row = BrowserSession.objects.get()
    assert row.key == client.session.session_key
    assert current.SESSION_COOKIE_NAME in client.cookies
