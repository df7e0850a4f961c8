"""People keep being themselves: what names them goes on meaning them, and nobody else ever."""

from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts import services
from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from policies.thresholds import Threshold, people
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def rename(client: Client, person: User, name: str) -> str:
    at = reverse("accounts:rename", args=[person.pk])
    said = client.post(at, {"name": name}, follow=True).text
    person.refresh_from_db()
    return said


def test_a_name_changes_with_an_entry(as_ada: Client, alice: User) -> None:
    assert "“alice” is called “alicia” now." in rename(as_ada, alice, "alicia").replace(
        "&quot;", '"'
    )

    entry = Entry.objects.get(action="person.renamed")
    assert entry.actor == "ada"
    assert entry.details == {
        "person": "alicia",
        "person_id": alice.pk,
        "before": "alice",
        "after": "alicia",
    }
    page = as_ada.get(reverse("accounts:person", args=[alice.pk])).text
    assert "Formerly" in page
    assert "alice" in page


@pytest.mark.long
@pytest.mark.parametrize("name", ["alice", "Alice", "bob", "BOB", "ada"])
def test_no_name_is_used_twice(as_ada: Client, alice: User, bob: User, name: str) -> None:
    """Not even by who had it before, and not in other letters."""
    rename(as_ada, alice, "alicia")

    said = rename(as_ada, alice, name)

    assert "no name is used twice" in said
    assert alice.username == "alicia"


def test_nobody_is_invited_by_a_name_from_before(as_ada: Client, alice: User) -> None:
    rename(as_ada, alice, "alicia")
    given = {"username": "alice", "groups": [Group.objects.get(name=Role.APPROVER).pk]}

    page = as_ada.post(reverse("accounts:invite"), given)

    assert "no name is used twice" in page.context["form"].errors["username"][0]
    assert not User.objects.filter(username="alice").exists()


def test_past_the_code_too(alice: User, bob: User) -> None:
    for statement in (
        "UPDATE accounts_user SET username = 'alicia' WHERE id = %s",
        "UPDATE accounts_user SET username = 'bob2' WHERE username = 'bob' OR id = %s",
        "DELETE FROM accounts_usedname WHERE person_id = %s",
        "UPDATE accounts_usedname SET name = 'x' WHERE person_id = %s",
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            connection.cursor().execute(statement, [alice.pk])


@pytest.mark.long
def test_a_rule_goes_on_meaning_the_person(
    as_ada: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    only = Threshold(source="person:alice")
    scenery.offered(scout, send_mail)
    held: UUID = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=(only,))
    rename(as_ada, alice, "alicia")
    somebody = services.create_person("alice2", roles=[Role.APPROVER], by=None)
    theirs, hers = Client(), Client()
    theirs.force_login(somebody)
    hers.force_login(alice)
    digest = Call.objects.get(pk=held).call_digest
    at = reverse("approvals:approve", args=[held])

    theirs.post(at, {"seen": digest})
    assert Call.objects.get(pk=held).state == State.HELD
    assert people("person:alice") == {alice.pk}
    hers.post(at, {"seen": digest})

    assert Call.objects.get(pk=held).state == State.QUEUED
    assert claim(held, owner="here") is not None


@pytest.mark.parametrize("name", ["\uff42\uff4f\uff42", "b\u043eb", "\u0430lice"])
def test_nobody_is_called_what_looks_like_another(
    as_ada: Client, alice: User, bob: User, name: str
) -> None:
    rename(as_ada, alice, name)

    assert alice.username == "alice"


@pytest.mark.long
@pytest.mark.parametrize("name", ["\u738b\u82b3", "\u043e\u043b\u044c\u0433\u0430", "jos\u00e9"])
def test_names_of_other_alphabets_are_names(as_ada: Client, alice: User, name: str) -> None:
    rename(as_ada, alice, name)

    assert alice.username == name


@pytest.mark.parametrize("name", ["", " ", "a b!", "x" * 151, "a\0b"])
def test_a_name_that_cannot_be_is_refused(as_ada: Client, alice: User, name: str) -> None:
    rename(as_ada, alice, name)

    assert alice.username == "alice"


@pytest.mark.parametrize("who", ["alice", "olga", "vera", "ines"])
def test_others_rename_nobody(
    client: Client, request: pytest.FixtureRequest, bob: User, who: str
) -> None:
    client.force_login(request.getfixturevalue(who))
    at = reverse("accounts:rename", args=[bob.pk])

    assert client.post(at, {"name": "bobby"}).status_code == 403
    assert client.get(at).status_code in (403, 405)
