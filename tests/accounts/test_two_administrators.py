"""A role that takes two administrators: nobody gets one alone, by whatever order of steps."""

import re
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts import custom_roles
from accounts.custom_roles import RoleTerms
from accounts.models import RoleChange, User
from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery

pytestmark = pytest.mark.django_db

HELPS = frozenset({"accounts.view_user", "accounts.change_user"})


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def eve(db: None) -> User:
    return scenery.person("eve", Role.ADMINISTRATOR)


@pytest.fixture
def mia(ada: User) -> User:
    """May change users, and nothing else."""
    helpdesk = custom_roles.create("Helpdesk", description="x", by=ada, terms=RoleTerms(HELPS))
    made = scenery.person("mia")
    made.groups.add(helpdesk.group)
    return made


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(User.objects.get(pk=person.pk))
    return client


def again(person: User) -> User:
    return User.objects.get(pk=person.pk)


def link_in(page: str) -> str:
    found = re.search(r'id="link"[^>]*>([^<]+)<', page)
    return urlsplit(found[1]).path if found else ""


def invite(by: User, role: Role) -> tuple[User, str]:
    """The new user, and the link that the inviter was shown."""
    given = {"username": "paul", "groups": [Group.objects.get(name=role).pk]}
    page = signed_in(by).post("/new/person/", given).text
    return User.objects.get(username="paul"), link_in(page)


def link_made_by(person: User, of: User) -> str:
    return link_in(signed_in(person).post(f"/people/{of.pk}/link/").text)


def use(link: str) -> Client:
    client = Client()
    client.get(link)
    client.post(link)
    return client


def confirm(by: User) -> None:
    one = RoleChange.objects.get(state=RoleChange.State.REQUESTED)
    signed_in(by).post(f"/people/roles/{one.pk}/", {"answer": "confirm"})


@pytest.mark.long
def test_somebody_else_than_who_asked_confirms(ada: User, eve: User) -> None:
    paul, link = invite(ada, Role.APPROVER)

    for _n in range(2):
        confirm(ada)
    assert again(paul).group_names == []
    entry = Entry.objects.get(action="confirmation.rejected")
    assert (entry.actor, entry.details["confirmed"]) == ("ada", "Approver of paul: requested")
    assert "Another administrator" in entry.reason
    confirm(eve)

    assert again(paul).group_names == [Role.APPROVER]
    assert use(link).get("/queue/").status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.APPROVER])
def test_who_may_not_give_a_role_does_not_confirm_it(
    ada: User, eve: User, mia: User, role: Role
) -> None:
    paul, _link = invite(ada, role)

    confirm(mia)

    assert again(paul).group_names == []
    assert "You may not give the role" in signed_in(mia).get("/people/").text


@pytest.mark.long
@pytest.mark.parametrize("who", ["mia", "eve"])
def test_nobody_else_than_the_inviter_makes_a_link_to_such_a_role(
    ada: User, eve: User, mia: User, who: str
) -> None:
    paul, _link = invite(ada, Role.APPROVER)
    other = {"mia": mia, "eve": eve}[who]

    assert link_made_by(other, paul) == ""
    confirm(eve)
    assert link_made_by(other, paul) == ""

    assert link_made_by(ada, paul) != ""


@pytest.mark.long
def test_who_holds_a_link_does_not_confirm(ada: User, eve: User) -> None:
    paul, _link = invite(ada, Role.VIEWER)
    link = link_made_by(eve, paul)
    groups = [group.pk for group in Group.objects.filter(name__in=[Role.VIEWER, Role.APPROVER])]
    signed_in(ada).post(f"/people/{paul.pk}/", {"groups": groups})

    confirm(eve)
    assert again(paul).group_names == [Role.VIEWER]
    use(link)
    confirm(eve)

    assert again(paul).group_names == [Role.VIEWER]


def test_the_request_of_somebody_who_may_not_ask_any_more_is_not_confirmed(
    ada: User, eve: User
) -> None:
    paul, _link = invite(ada, Role.ADMINISTRATOR)
    User.objects.filter(pk=ada.pk).update(is_active=False)

    confirm(eve)

    assert again(paul).group_names == []


def test_who_may_do_less_changes_no_administrator(ada: User, eve: User, mia: User) -> None:
    client = signed_in(mia)

    client.post(f"/people/{eve.pk}/", {"groups": []})
    client.post(reverse("approvals:set_person_active", args=[eve.pk]), {"active": "0"})
    client.post(f"/people/{eve.pk}/name/", {"name": "frank"})

    left = again(eve)
    assert (left.username, left.is_active, left.group_names) == ("eve", True, [Role.ADMINISTRATOR])


def test_after_one_of_two_was_removed_the_other_gives_no_role_alone(ada: User, eve: User) -> None:
    carl = scenery.person("carl", Role.ADMINISTRATOR)
    sock = scenery.person("sock")
    signed_in(carl).post(f"/people/{eve.pk}/", {"groups": []})
    User.objects.filter(pk=carl.pk).update(is_active=False)

    approver = Group.objects.get(name=Role.APPROVER).pk
    signed_in(ada).post(f"/people/{sock.pk}/", {"groups": [approver]})

    assert again(sock).group_names == []


def test_only_an_administrator_confirms_an_account(ada: User, eve: User, mia: User) -> None:
    paul, link = invite(ada, Role.VIEWER)
    use(link)
    User.objects.filter(pk=paul.pk).update(password="pbkdf2_sha256$1$x$x")

    signed_in(mia).post(f"/people/{paul.pk}/confirm/")
    assert again(paul).unconfirmed_until is not None
    signed_in(eve).post(f"/people/{paul.pk}/confirm/")

    assert again(paul).unconfirmed_until is None
