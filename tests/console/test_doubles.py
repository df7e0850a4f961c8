"""Accounts that may be of one person: listed for administrators, by what they share."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from accounts import services
from accounts.models import Identity, ScimUser, User
from accounts.roles import Role
from config.access.doubles import likely_doubles
from notifications.models import MailRecipient
from tests.console import scenery

pytestmark = pytest.mark.django_db
COMPANY, OTHER = "https://id.example.org", "https://other.example.org"
ID = "00u1a2b3c4"
Give = Callable[[User], object]


def mail(address: str, *, confirmed: bool = True) -> Give:
    at = timezone.now() if confirmed else None
    return lambda person: MailRecipient.objects.create(
        person=person, address=address, confirmed_at=at
    )


def scim(user_name: str, issuer: str = COMPANY, external_id: str = "", email: str = "") -> Give:
    attributes = {"emails": [{"value": email}]} if email else {}
    return lambda person: ScimUser.objects.create(
        person=person, issuer=issuer, user_name=user_name, external_id=external_id,
        attributes=attributes,
    )  # fmt: skip


def account(subject: str, issuer: str = COMPANY, label: str = "") -> Give:
    return lambda person: Identity.objects.create(
        person=person, issuer=issuer, subject=subject, label=label
    )


@pytest.fixture
def two(db: None) -> tuple[User, User]:
    return scenery.person("anna", Role.APPROVER), scenery.person("anna2", Role.APPROVER)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (mail("Anna@example.org"), scim("anna@example.org"), "anna@example.org"),
        (mail("anna@example.org"), scim("a", email="anna@example.org"), "anna@example.org"),
        (mail("anna@example.org"), account("x", label="anna@example.org"), "anna@example.org"),
        (scim("a", external_id=ID), scim("b", OTHER, external_id=ID), ID),
        (scim("a", external_id=ID), account(ID, OTHER), ID),
        (scim("a", external_id="7"), account("7"), "7"),
    ],
)
def test_accounts_that_share_something_are_listed(
    two: tuple[User, User], one: Give, other: Give, shared: str
) -> None:
    one(two[0])
    other(two[1])

    (found,) = likely_doubles()

    assert found.shared.value == shared
    assert [person.username for person, _sources in found.accounts] == ["anna", "anna2"]
    assert found.voters == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (mail("anna@example.org", confirmed=False), scim("anna@example.org")),
        (mail("anna@example.org"), scim("anna@example.com")),
        (scim("anna"), scim("anna", OTHER)),
        # A running number is nothing that two providers share.
        (scim("a", external_id="7"), scim("b", OTHER, external_id="7")),
    ],
)
def test_what_tells_nothing_is_not_listed(two: tuple[User, User], one: Give, other: Give) -> None:
    one(two[0])
    other(two[1])

    assert likely_doubles() == []


def test_one_account_is_no_double_of_itself(two: tuple[User, User]) -> None:
    for give in (mail("anna@example.org"), scim("anna@example.org"), account("anna@example.org")):
        give(two[0])

    assert likely_doubles() == []


@pytest.mark.long
def test_disabling_one_ends_it_and_voters_come_first(two: tuple[User, User]) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    for name in ("vera", "vera2"):
        scim("aaa@example.org", name)(scenery.person(name, Role.VIEWER))
    scim("anna@example.org")(two[0])
    mail("anna@example.org")(two[1])
    client = Client()
    client.force_login(ada)

    page = client.get("/access/doubles/").text
    assert page.index("anna@example.org") < page.index("aaa@example.org")
    assert page.count("of these accounts may decide on calls") == 1
    assert "provisioned by https://id.example.org" in page
    assert "confirmed for notifications" in page
    assert "/access/doubles/" in client.get("/people/").text

    services.set_active(two[0], False, by=ada)

    page = client.get("/access/doubles/").text
    assert "anna@example.org" not in page
    assert "aaa@example.org" in page


@pytest.mark.long
def test_only_who_handles_users_reads_addresses_of_others(two: tuple[User, User]) -> None:
    for role in (Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.VIEWER):
        client = Client()
        client.force_login(scenery.person(f"one-{role}".lower(), role))
        assert client.get("/access/doubles/").status_code == 403
        assert "/access/doubles/" not in client.get("/people/").text
    assert Client().get("/access/doubles/").status_code == 302


@pytest.mark.long
def test_many_users_take_as_many_queries(
    two: tuple[User, User], django_assert_max_num_queries: Callable[[int], object]
) -> None:
    for n in range(30):
        for issuer in (COMPANY, OTHER):
            person = scenery.person(f"user{n}{len(issuer)}", Role.VIEWER)
            scim(f"user{n}@example.org", issuer)(person)

    with django_assert_max_num_queries(5):  # type: ignore[attr-defined]
        assert len(likely_doubles()) == 30
