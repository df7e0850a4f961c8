"""Who becomes an approver or an administrator: by two where there are two, and seen on cards."""

from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import role_changes, services
from accounts.models import RoleChange, User
from accounts.roles import Role
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def eve(db: None) -> User:
    """Another administrator."""
    return scenery.person("eve", Role.ADMINISTRATOR)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def choose(client: Client, person: User, *roles: Role) -> str:
    groups = list(Group.objects.filter(name__in=roles).values_list("pk", flat=True))
    at = reverse("accounts:person", args=[person.pk])
    return client.post(at, {"groups": groups}, follow=True).text


def answer(client: Client, answer: str = "confirm") -> str:
    change = RoleChange.objects.get(state=RoleChange.State.REQUESTED)
    at = reverse("accounts:answer_request", args=[change.pk])
    return client.post(at, {"answer": answer}, follow=True).text


def roles(person: User) -> set[str]:
    return set(person.groups.values_list("name", flat=True))


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="role.").exclude(action="role.set")
    return list(found.order_by("id").values_list("action", flat=True))


@pytest.mark.long
@pytest.mark.parametrize("role", [Role.APPROVER, Role.ADMINISTRATOR])
def test_where_there_are_two_a_second_administrator_confirms(
    ada: User, eve: User, vera: User, role: Role
) -> None:
    said = choose(signed_in(ada), vera, Role.AUDITOR, role)

    assert f"Another administrator has to confirm: {role}" in said
    # What nobody decides with is given at once.
    assert roles(vera) == {Role.AUDITOR}
    page = signed_in(eve).get("/people/").text
    assert "Roles pending confirmation by a second administrator" in page

    answer(signed_in(eve))

    assert roles(vera) == {Role.AUDITOR, role}
    assert actions() == ["role.requested", "role.given"]
    given = Entry.objects.get(action="role.given")
    assert (given.actor, given.details["asked_by"], given.details["person"]) == (
        "eve",
        "ada",
        "vera",
    )


@pytest.mark.long
def test_many_requests_ask_the_database_no_more_than_one(
    ada: User, eve: User, vera: User, olga: User
) -> None:
    as_eve, counts = signed_in(eve), []
    # The first page of a session also notes its use.
    as_eve.get("/people/")
    for person in (vera, olga):
        choose(signed_in(ada), person, Role.APPROVER)
        with CaptureQueriesContext(connection) as queries:
            assert as_eve.get("/people/").status_code == 200
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_neither_who_asked_nor_who_gets_it_confirms(ada: User, eve: User) -> None:
    choose(signed_in(ada), eve, Role.ADMINISTRATOR, Role.APPROVER)

    for person in (ada, eve):
        assert "Another administrator than who asked" in answer(signed_in(person))

    assert roles(eve) == {Role.ADMINISTRATOR}
    assert actions() == ["role.requested"]


@pytest.mark.long
def test_an_administrator_does_not_make_herself_approver(ada: User, eve: User) -> None:
    choose(signed_in(ada), ada, Role.ADMINISTRATOR, Role.APPROVER)

    assert roles(ada) == {Role.ADMINISTRATOR}
    answer(signed_in(eve))
    assert roles(ada) == {Role.ADMINISTRATOR, Role.APPROVER}


def test_an_invited_approver_waits_too(ada: User, eve: User) -> None:
    group = Group.objects.get(name=Role.APPROVER).pk
    signed_in(ada).post(reverse("accounts:invite"), {"username": "carol", "groups": [group]})

    carol = User.objects.get(username="carol")
    assert roles(carol) == set()
    details = Entry.objects.get(action="person.created").details
    assert (details["roles"], details["requested"]) == ([], ["Approver"])
    answer(signed_in(eve))
    assert roles(carol) == {Role.APPROVER}


@pytest.mark.long
def test_ones_own_guest_is_no_second_administrator(ada: User, vera: User) -> None:
    """Until somebody else has confirmed the account: there is but one administrator."""
    puppet = services.create_person("puppet", roles=[Role.ADMINISTRATOR], by=ada)

    choose(signed_in(ada), vera, Role.APPROVER)
    assert roles(vera) == {Role.APPROVER}

    scenery.person("eve", Role.ADMINISTRATOR)
    choose(signed_in(ada), vera, Role.APPROVER, Role.ADMINISTRATOR)
    said = answer(signed_in(puppet))

    assert "let the other in" in said
    assert roles(vera) == {Role.APPROVER}


def test_removing_the_other_administrator_makes_nobody_the_only_one(
    ada: User, eve: User, vera: User
) -> None:
    signed_in(ada).post(reverse("approvals:set_person_active", args=[eve.pk]), {"active": "0"})

    choose(signed_in(ada), vera, Role.APPROVER)

    assert roles(vera) == set()
    call_command("confirm_role", "vera", "Approver", stdout=StringIO())
    assert roles(vera) == {Role.APPROVER}
    assert Entry.objects.filter(action="role.given").latest("id").actor == "command line"
    with pytest.raises(CommandError, match="Nobody asked"):
        call_command("confirm_role", "vera", "Approver")


def test_a_request_is_answered_once(ada: User, eve: User, vera: User) -> None:
    choose(signed_in(ada), vera, Role.APPROVER)
    change = RoleChange.objects.get()
    answer(signed_in(eve), "refuse")

    with pytest.raises(services.AccountRefused, match="answered this request first"):
        role_changes.confirm(change, by=eve)

    assert roles(vera) == set()
    assert actions() == ["role.requested", "role.refused"]


def test_the_host_may_leave_it_to_one(ada: User, eve: User, vera: User, settings: object) -> None:
    settings.TWO_ADMINISTRATORS = False  # type: ignore[attr-defined]

    choose(signed_in(ada), vera, Role.APPROVER)

    assert roles(vera) == {Role.APPROVER}


def test_others_answer_no_request(ada: User, eve: User, vera: User, olga: User) -> None:
    choose(signed_in(ada), vera, Role.APPROVER)
    change = RoleChange.objects.get()
    at = reverse("accounts:answer_request", args=[change.pk])

    for person in (vera, olga):
        assert signed_in(person).post(at, {"answer": "confirm"}).status_code == 403
    assert signed_in(eve).get(at).status_code == 405

    assert roles(vera) == set()


def card(client: Client, held: UUID) -> str:
    return client.get(reverse("approvals:detail", args=[held])).text


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.long
def test_cards_say_for_a_week_who_came_to_decide(
    ada: User, eve: User, vera: User, as_alice: Client, held: UUID
) -> None:
    choose(signed_in(ada), vera, Role.APPROVER)
    assert "became Approver" not in card(as_alice, held)
    answer(signed_in(eve))

    shown = flat(card(as_alice, held))
    assert "<strong>vera</strong> became Approver" in shown
    assert "by ada, confirmed by eve" in shown

    # Of a decided call, if it was they who voted.
    digest = Call.objects.get(pk=held).call_digest
    theirs = signed_in(vera)
    theirs.post(reverse("approvals:approve", args=[held]), {"seen": digest})
    assert Call.objects.get(pk=held).state == State.QUEUED
    assert "became Approver" in card(theirs, held)

    RoleChange.objects.update(decided_at=timezone.now() - timedelta(days=8))
    assert "became Approver" not in card(as_alice, held)


@pytest.mark.long
def test_a_lone_administrator_is_seen_to_make_herself_approver(
    ada: User, as_alice: Client, held: UUID
) -> None:
    choose(signed_in(ada), ada, Role.ADMINISTRATOR, Role.APPROVER)

    shown = flat(card(as_alice, held))

    assert "<strong>ada</strong> became Approver" in shown
    assert "by ada</p>" in shown


@pytest.mark.long
def test_the_report_lists_who_came_to_decide(ada: User, eve: User, vera: User, ines: User) -> None:
    choose(signed_in(ada), vera, Role.APPROVER)
    answer(signed_in(eve))

    report = flat(signed_in(ines).get(reverse("audit:report")).text)

    assert "Changes of who may decide" in report
    assert "<strong>vera</strong>, Approver" in report
    assert "by eve" in report


def test_an_administrator_made_at_the_host_is_on_cards_and_in_the_report(
    as_alice: Client, held: UUID, ines: User
) -> None:
    User.objects.create_user("admin", is_active=False)

    call_command("sign_in_link", stdout=StringIO())

    assert "<strong>admin</strong> became Administrator" in flat(card(as_alice, held))
    report = flat(signed_in(ines).get(reverse("audit:report")).text)
    assert "<strong>admin</strong>, Administrator" in report
    assert "<strong>admin</strong>, Approver" in report


def test_the_report_lists_ways_in_made_at_the_host(vera: User, ines: User) -> None:
    services.sign_in_link(vera)

    report = flat(signed_in(ines).get(reverse("audit:report")).text)

    assert "Sign-in link created</a>: <strong>vera</strong>" in report
    assert "by command line" in report
