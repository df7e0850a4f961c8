"""An installation of one person: usable, marked each time, and over for good once there are two."""

from collections.abc import Callable
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import independence, services, single_person
from accounts.models import Agent, Identity, SinglePersonMode, User
from accounts.roles import Role
from approvals import standing_approvals
from approvals.models import Vote
from approvals.standing_approvals import GrantRefused, Terms
from audit.models import Entry
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from config.first_run import first_run
from config.sweep import Sweep
from registry.models import Tool
from tests.approvals.test_editing import change
from tests.approvals.test_two_people import approve
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(db: None) -> User:
    """Alone in a new installation."""
    return services.first_administrator()


@pytest.fixture
def own(admin: User) -> Agent:
    return services.create_agent("demo", owner=admin, by=None)


@pytest.fixture
def send_mail(admin: User, own: Agent) -> Tool:
    return scenery.offered(own, scenery.server("mailer", admin, scenery.SEND).tools.get())


@pytest.fixture
def held(own: Agent, send_mail: Tool) -> UUID:
    return scenery.call(own, send_mail, scenery.MAIL, State.HELD)


@pytest.fixture
def as_admin(client: Client, admin: User) -> Client:
    client.force_login(admin)
    return client


def seen(client: Client, name: str, *args: object) -> str:
    return client.get(reverse(name, args=args)).text


@pytest.mark.long
def test_who_is_alone_decides_and_it_is_said_everywhere(as_admin: Client, held: UUID) -> None:
    assert "Single-person mode: you have a part" in seen(as_admin, "approvals:detail", held)
    assert "Single-person mode" in seen(as_admin, "accounts:people")

    assert approve(as_admin, held) == State.QUEUED

    assert Vote.objects.get().single_person
    assert Entry.objects.get(action="approval.voted").details["single_person"] is True
    moved = Entry.objects.get(action="call.approved")
    assert moved.reason == "Approved by admin. Single-person mode: nobody else may decide."
    assert "single-person mode" in seen(as_admin, "approvals:detail", held)
    assert "Single-person mode" in seen(as_admin, "calls:detail", held)
    report = as_admin.get(reverse("audit:report"), {"agent": "demo"}).text
    assert "admin (single-person mode)" in report
    assert claim(held, owner="here") is not None


def test_no_yes_in_advance_and_no_vote_on_ones_own_edit(as_admin: Client, held: UUID) -> None:
    change(as_admin, held, subject="Other")
    assert Call.objects.get(pk=held).amendment is None
    assert approve(as_admin, held) == State.QUEUED

    admin = User.objects.get(username="admin")
    with pytest.raises(GrantRefused, match="The agent is yours"):
        standing_approvals.make(Call.objects.for_page().get(pk=held), Terms(), by=admin)


def ended() -> bool:
    return SinglePersonMode.objects.get().ended_at is not None


def invite(client: Client) -> User:
    group = Group.objects.get(name=Role.APPROVER).pk
    client.post(reverse("accounts:invite"), {"username": "carol", "groups": [group]})
    return User.objects.get(username="carol")


def confirm(person: User) -> None:
    services.set_password(person, scenery.PASSWORD)
    independence.confirm(person, by=None)


def right() -> Permission:
    return Permission.objects.get(codename="decide_approval")


def invite_and_confirm(client: Client) -> None:
    carol = invite(client)
    Client().force_login(carol)
    confirm(carol)


def invite_confirm_and_wait(client: Client) -> None:
    carol = invite(client)
    confirm(carol)
    assert not ended()
    Client().force_login(carol)


def give_a_right(_client: Client) -> None:
    carol = scenery.person("carol")
    Client().force_login(carol)
    carol.user_permissions.add(right())


def give_a_group_the_right(_client: Client) -> None:
    group = Group.objects.create(name="x")
    carol = scenery.person("carol")
    Client().force_login(carol)
    carol.groups.add(group)
    group.permissions.add(right())


def make_a_superuser(_client: Client) -> None:
    carol = scenery.person("carol")
    Client().force_login(carol)
    sql = "UPDATE accounts_user SET is_superuser = true WHERE id = %s"
    connection.cursor().execute(sql, [carol.pk])


def connect_an_identity(client: Client) -> None:
    carol, admin = invite(client), User.objects.get(username="admin")
    Client().force_login(carol)
    User.objects.filter(pk=carol.pk).update(unconfirmed_until=None, let_in_by=admin)
    assert not ended()
    Identity.objects.create(person=carol, issuer="https://id.example", subject="c")
    Sweep()._once()


SECOND = {
    "confirmed": invite_and_confirm,
    "confirmed before the first sign-in": invite_confirm_and_wait,
    "by an identity of their own": connect_an_identity,
    "by a right of their own": give_a_right,
    "by a group": give_a_group_the_right,
    "by SQL": make_a_superuser,
}


@pytest.mark.long
@pytest.mark.parametrize("way", SECOND)
def test_it_is_over_for_good_once_a_second_persons_vote_counts(
    as_admin: Client, held: UUID, way: str
) -> None:
    assert not ended()

    SECOND[way](as_admin)

    assert ended()
    entry = Entry.objects.get(action="single_person_mode.ended")
    assert entry.reason == single_person.ENDED
    assert "The agent is yours" in seen(as_admin, "approvals:detail", held)
    assert approve(as_admin, held) == State.HELD
    # The second one goes: alone again, and not in that mode.
    User.objects.filter(username="carol").update(is_active=False)
    single_person.begin()
    assert approve(as_admin, held) == State.HELD


def only_invite(client: Client) -> None:
    invite(client)


def invite_and_sign_in(client: Client) -> None:
    Client().force_login(invite(client))


def be_disabled(_client: Client) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    User.objects.filter(pk=carol.pk).update(is_active=False)
    User.objects.filter(pk=carol.pk).update(last_login=timezone.now())


def never_sign_in(_client: Client) -> None:
    scenery.person("carol", Role.APPROVER)


NOBODY = [only_invite, invite_and_sign_in, be_disabled, never_sign_in]


@pytest.mark.long
@pytest.mark.parametrize("way", NOBODY)
def test_who_cannot_vote_on_these_calls_does_not_lock_out_the_one_who_could(
    as_admin: Client, held: UUID, way: Callable[[Client], None]
) -> None:
    way(as_admin)

    assert not ended()
    assert "Single-person mode: you have a part" in seen(as_admin, "approvals:detail", held)
    assert approve(as_admin, held) == State.QUEUED
    assert claim(held, owner="here") is not None


@pytest.mark.long
def test_who_was_only_invited_does_not_decide_alone(as_admin: Client, send_mail: Tool) -> None:
    carol = invite(as_admin)
    as_carol = Client()
    as_carol.force_login(carol)
    services.set_password(carol, scenery.PASSWORD)
    as_carol.force_login(carol)
    hers = services.create_agent("hers", owner=carol, by=None)
    asked = scenery.call(hers, scenery.offered(hers, send_mail), scenery.MAIL, State.HELD)

    assert approve(as_carol, asked) == State.HELD
    assert "The agent is yours" in seen(as_carol, "approvals:detail", asked)
    # Who may be behind that account decides; it is marked.
    assert approve(as_admin, asked) == State.QUEUED
    assert Vote.objects.get().single_person


@pytest.mark.long
def test_what_was_decided_alone_is_not_sent_after_its_end(as_admin: Client, held: UUID) -> None:
    assert approve(as_admin, held) == State.QUEUED

    invite_and_confirm(as_admin)

    assert claim(held, owner="here") is None
    assert Call.objects.get(pk=held).state == State.SUPERSEDED


@pytest.mark.long
def test_a_second_person_who_decides_nothing_ends_nothing(as_admin: Client, held: UUID) -> None:
    as_admin.post(
        reverse("accounts:invite"),
        {"username": "vera", "groups": [Group.objects.get(name=Role.VIEWER).pk]},
    )

    assert not ended()
    assert approve(as_admin, held) == State.QUEUED


@pytest.mark.long
def test_the_host_may_refuse_it(held: UUID, as_admin: Client, settings: object) -> None:
    settings.SINGLE_PERSON = False  # type: ignore[attr-defined]

    Sweep()._once()

    assert ended()
    assert (
        "COUNTERSIGN_SINGLE_PERSON" in Entry.objects.get(action="single_person_mode.ended").reason
    )
    assert approve(as_admin, held) == State.HELD


def test_where_the_host_refuses_it_it_never_begins(db: None, settings: object) -> None:
    settings.SINGLE_PERSON = False  # type: ignore[attr-defined]

    services.first_administrator()

    assert not SinglePersonMode.objects.exists()


def test_an_installation_that_has_people_never_begins_it(alice: User) -> None:
    services.first_administrator()

    assert not SinglePersonMode.objects.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_singlepersonmode SET ended_at = NULL",
        "UPDATE accounts_singlepersonmode SET began_at = now()",
        "DELETE FROM accounts_singlepersonmode",
        "INSERT INTO accounts_singlepersonmode (id) VALUES (2)",
    ],
)
def test_nobody_begins_it_again(as_admin: Client, held: UUID, statement: str) -> None:
    invite_and_confirm(as_admin)

    with pytest.raises(DatabaseError), transaction.atomic():
        connection.cursor().execute(statement)


def test_the_examples_agent_is_the_first_persons_own(db: None) -> None:
    first_run(examples=False)

    assert Agent.objects.get(name="demo").owner.username == "admin"
    assert [person.username for person in User.objects.all()] == ["admin"]
