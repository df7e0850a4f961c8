"""Delegations: one votes in another's place, never both, never on, and never with a new right."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations
from approvals.delegations import DelegationRefused
from approvals.models import Delegation, Vote
from approvals.services import DecisionRefused
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Threshold
from registry.models import Server, Tool
from tests.approvals.test_quorum import approver, back, hold, say, send_mail
from tests.console import scenery

__all__ = ["send_mail"]

pytestmark = pytest.mark.django_db
TWO = Threshold(approve=2, deny=2)
HERE = "/profile/delegations/"


@pytest.fixture
def carol(db: None) -> User:
    return approver("carol")


@pytest.fixture
def dora(db: None) -> User:
    return approver("dora")


def delegate(
    by: User,
    to: User,
    *,
    days: tuple[float, float] = (-1, 1),
    now: datetime | None = None,
    **scope: Any,
) -> Delegation:
    now = now or timezone.now()
    made = Delegation(
        delegator=by,
        delegate=to,
        begins_at=now + timedelta(days=days[0]),
        ends_at=now + timedelta(days=days[1]),
        **scope,
    )
    delegations.make(made)
    return made


@pytest.mark.long
def test_the_vote_the_card_and_the_entries_name_both(
    scout: Agent, send_mail: Tool, alice: User, carol: User, client: Client
) -> None:
    held = hold(scout, send_mail, TWO)
    delegate(alice, carol)
    client.force_login(alice)
    card = reverse("approvals:detail", args=[held])
    assert "carol (for alice)" in client.get(card).text

    say(held, carol)

    vote = Vote.objects.get()
    assert vote.for_people == [alice.pk]
    entry = Entry.objects.get(action="approval.voted")
    assert entry.details["voter"] == "carol (for alice)"
    assert entry.details["for"] == [alice.pk]
    page = client.get(card).text
    assert "for alice" in page
    assert "carol voted already" in page


def test_the_decision_names_both(scout: Agent, send_mail: Tool, alice: User, carol: User) -> None:
    held = hold(scout, send_mail, Threshold())
    delegate(alice, carol)

    assert say(held, carol, reason="Fine.") == State.QUEUED

    assert Entry.objects.get(action="call.approved").reason == (
        "Approved by carol (for alice). Fine."
    )


@pytest.mark.long
@pytest.mark.parametrize("first_is_delegate", [True, False])
def test_both_cannot_vote_on_the_same_call(
    scout: Agent, send_mail: Tool, alice: User, carol: User, dora: User, first_is_delegate: bool
) -> None:
    held = hold(scout, send_mail, TWO)
    delegate(alice, carol)
    first, second = (carol, alice) if first_is_delegate else (alice, carol)
    say(held, first)

    with pytest.raises(DecisionRefused, match=f"{first.username} voted already"):
        say(held, second)
    # Nor past the code: the database refuses it as well.
    digest = Call.objects.get(pk=held).call_digest
    with pytest.raises(DatabaseError, match=r"are one vote|have a part in"), transaction.atomic():
        Vote.objects.create(approval_id=held, person=second, approve=True, seen_digest=digest)

    # Once it is taken back, the other may; and a third person is the second vote.
    back(held, first)
    assert say(held, second) == State.HELD
    assert say(held, dora) == State.QUEUED


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.django_db(transaction=True)
def test_a_delegates_denial_takes_the_place_of_the_delegators_approval(
    scout: Agent, send_mail: Tool, alice: User, carol: User, dora: User, client: Client,
    is_ended: bool,
) -> None:  # fmt: skip
    """Whoever names somebody their delegate, and approves first, takes nobody's no. After the
    delegation has ended they are still one vote."""
    held = hold(scout, send_mail, Threshold(approve=2, deny=2))
    made = delegate(alice, carol)
    say(held, alice)
    if is_ended:
        delegations.end(made, by=carol)
    with pytest.raises(DecisionRefused, match="alice voted already"):
        say(held, carol)
    client.force_login(carol)
    page = client.get(reverse("approvals:detail", args=[held])).text
    assert "alice voted already" in page
    assert "You can still deny the call: the approval then no longer counts." in page
    assert re.search(r"data-approve disabled", page)
    digest = Call.objects.get(pk=held).call_digest
    with pytest.raises(DatabaseError, match="are one vote"), transaction.atomic():
        Vote.objects.create(approval_id=held, person=carol, approve=False, seen_digest=digest)

    assert say(held, carol, approve=False) == State.HELD

    approval, denial = Vote.objects.order_by("pk")
    assert approval.fallen_why == Vote.Fallen.DELEGATE
    assert denial.fallen_at is None
    assert denial.for_people == [alice.pk]
    entry = Entry.objects.filter(action="approval.voted").latest("pk")
    assert entry.details["replaced"] == [approval.pk]
    assert (
        "The delegate denied the call" in client.get(reverse("approvals:detail", args=[held])).text
    )
    with pytest.raises(DecisionRefused, match="carol voted already"):
        say(held, alice)
    assert say(held, dora, approve=False) == State.DENIED


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.django_db(transaction=True)
def test_whose_delegate_approved_has_no_vote_besides(
    scout: Agent, send_mail: Tool, alice: User, carol: User, client: Client, is_ended: bool
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, deny=1))
    made = delegate(alice, carol)
    say(held, carol)
    if is_ended:
        delegations.end(made, by=alice)

    for approve in (True, False):
        with pytest.raises(DecisionRefused, match="carol voted already"):
            say(held, alice, approve=approve)
    digest = Call.objects.get(pk=held).call_digest
    with pytest.raises(DatabaseError, match="have a part in"), transaction.atomic():
        Vote.objects.create(approval_id=held, person=alice, approve=False, seen_digest=digest)
    client.force_login(alice)
    page = client.get(reverse("approvals:detail", args=[held])).text
    assert "carol voted already" in page
    assert "You can still deny" not in page
    assert Vote.objects.standing().count() == 1


def test_two_who_are_one_vote_deny_once(
    scout: Agent, send_mail: Tool, alice: User, carol: User, dora: User
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, deny=2))
    delegate(alice, carol)
    say(held, alice, approve=False)

    for approve in (True, False):
        with pytest.raises(DecisionRefused, match="alice voted already"):
            say(held, carol, approve=approve)
    digest = Call.objects.get(pk=held).call_digest
    with pytest.raises(DatabaseError, match="have a part in"), transaction.atomic():
        Vote.objects.create(approval_id=held, person=carol, approve=False, seen_digest=digest)
    assert say(held, dora, approve=False) == State.DENIED


def test_a_vote_for_somebody_stays_theirs_after_the_delegation_ended(
    scout: Agent, send_mail: Tool, alice: User, carol: User, dora: User
) -> None:
    held = hold(scout, send_mail, Threshold(approve=3))
    made = delegate(alice, carol)
    say(held, carol)
    delegations.end(made, by=alice)

    with pytest.raises(DecisionRefused, match="carol voted already"):
        say(held, alice)
    # Another delegate votes for herself alone.
    delegate(alice, dora, days=(0, 1))
    say(held, dora)
    assert [vote.for_people for vote in Vote.objects.all()] == [[alice.pk], []]


def test_votes_from_before_count_on(
    scout: Agent, send_mail: Tool, alice: User, carol: User, dora: User
) -> None:
    held = hold(scout, send_mail, Threshold(approve=3))
    say(held, alice)
    say(held, carol)

    delegate(alice, carol)

    assert say(held, dora) == State.QUEUED


def test_a_delegation_gives_no_right(
    scout: Agent, send_mail: Tool, alice: User, carol: User
) -> None:
    alice.groups.add(Group.objects.create(name="payments"))
    held = hold(scout, send_mail, Threshold(source="group:payments"))
    delegate(alice, carol)

    with pytest.raises(DecisionRefused, match="The rule asks other people"):
        say(held, carol)
    # So alice votes herself.
    assert say(held, alice) == State.QUEUED


def test_a_delegate_whom_one_of_two_rules_asks_leaves_the_other_to_the_delegator(
    scout: Agent, send_mail: Tool, alice: User, carol: User
) -> None:
    alice.groups.add(Group.objects.create(name="finance"))
    carol.groups.add(Group.objects.create(name="security"))
    finance = Threshold(source="group:finance")
    held = hold(scout, send_mail, finance, Threshold(source="group:security", clause=1))
    delegate(alice, carol)

    assert say(held, carol) == State.HELD
    assert Vote.objects.get().for_people == []
    assert say(held, alice) == State.QUEUED


def test_nobody_votes_for_who_has_a_part_in_the_call(
    scout: Agent, send_mail: Tool, bob: User, carol: User
) -> None:
    # scout is his.
    bob.groups.add(Group.objects.get(name=Role.APPROVER))
    held = hold(scout, send_mail, TWO)
    delegate(User.objects.get(pk=bob.pk), carol)

    say(held, carol)

    assert Vote.objects.get().for_people == []


SCOPES: dict[str, tuple[Callable[[Tool], dict[str, Any]], bool]] = {
    "any": (lambda tool: {}, True),
    "its group": (lambda tool: {"group": Group.objects.get(name="payments")}, True),
    "another group": (lambda tool: {"group": Group.objects.create(name="leads")}, False),
    "its server": (lambda tool: {"server": tool.server}, True),
    "another server": (
        lambda tool: {"server": Server.objects.exclude(pk=tool.server_id).get()},
        False,
    ),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_it_holds_within_its_scope(
    scout: Agent, send_mail: Tool, olga: User, alice: User, carol: User, scope: str
) -> None:
    scenery.server("books", olga, scenery.SEND)
    payments = Group.objects.create(name="payments")
    alice.groups.add(payments)
    carol.groups.add(payments)
    held = hold(scout, send_mail, Threshold(approve=2, source="group:payments"))
    given, holds = SCOPES[scope]
    delegate(alice, carol, **given(send_mail))

    say(held, carol)

    assert Vote.objects.get().for_people == ([alice.pk] if holds else [])
    if holds:
        with pytest.raises(DecisionRefused):
            say(held, alice)
    else:
        assert say(held, alice) == State.QUEUED


@pytest.mark.parametrize("days", [(-2, -1), (1, 2)])
def test_it_holds_in_its_time(
    scout: Agent, send_mail: Tool, alice: User, carol: User, days: tuple[float, float]
) -> None:
    held = hold(scout, send_mail, TWO)
    delegate(alice, carol, days=days)

    say(held, carol)

    assert Vote.objects.get().for_people == []
    assert say(held, alice) == State.QUEUED


SPANS = [(-2, -1), (-1, 1), (0, 2), (1, 3)]


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@pytest.mark.parametrize(("first", "second"), list(product(SPANS, SPANS)))
def test_chains_and_second_delegates_are_refused_where_times_overlap(
    alice: User, carol: User, dora: User, first: tuple[float, float], second: tuple[float, float]
) -> None:
    # One moment for all: some begin when others end.
    now = timezone.now()
    delegate(alice, carol, days=first, now=now)
    clash = overlap(first, second)
    for by, to in ((carol, dora), (dora, alice), (carol, alice), (alice, dora)):
        if clash:
            with pytest.raises(DelegationRefused), transaction.atomic():
                delegate(by, to, days=second, now=now)
        else:
            delegate(by, to, days=second, now=now).delete()
        assert _inserts(by, to, second, now) == (not clash)


def _inserts(by: User, to: User, days: tuple[float, float], now: datetime) -> bool:
    """Whether the database takes it, whatever the code says."""
    begin, end = (now + timedelta(days=one) for one in days)
    try:
        with transaction.atomic():
            Delegation.objects.create(
                delegator=by, delegate=to, begins_at=begin, ends_at=end
            ).delete()
    except DatabaseError:
        return False
    return True


def test_two_delegates_have_different_calls(
    alice: User, carol: User, dora: User, send_mail: Tool
) -> None:
    payments = Group.objects.create(name="payments")
    delegate(alice, carol, group=payments)
    with pytest.raises(DelegationRefused, match="already"):
        delegate(alice, dora)
    with pytest.raises(DelegationRefused, match="already"):
        delegate(alice, dora, server=send_mail.server)

    delegate(alice, dora, group=Group.objects.create(name="leads"))

    assert Delegation.objects.count() == 2


def test_the_database_lets_nobody_change_one(alice: User, carol: User, dora: User) -> None:
    made = delegate(alice, carol)
    for changed in ({"delegate": dora}, {"ends_at": made.ends_at + timedelta(days=1)}):
        with pytest.raises(DatabaseError, match="only ended"), transaction.atomic():
            Delegation.objects.update(**changed)
    with pytest.raises(DatabaseError), transaction.atomic():
        Delegation.objects.create(
            delegator=dora, delegate=dora, begins_at=made.begins_at, ends_at=made.ends_at
        )


LATELY = timezone.now() - timedelta(minutes=15)


def given_form(to: User, **changed: str) -> dict[str, str]:
    now = timezone.now()
    return {
        "delegate": str(to.pk),
        "begins_at": f"{now:%Y-%m-%dT%H:%M}",
        "ends_at": f"{now + timedelta(days=7):%Y-%m-%dT%H:%M}",
        **changed,
    }


def test_a_person_names_a_delegate_and_either_of_the_two_ends_it(
    client: Client, alice: User, carol: User
) -> None:
    client.force_login(alice)
    assert HERE in client.get("/profile/").text

    page = client.post(HERE, given_form(carol), follow=True).text

    assert "Delegation created." in page
    assert "<strong>carol</strong> votes for <strong>alice</strong>" in page
    made = Delegation.objects.get()
    client.force_login(carol)
    assert "votes for <strong>alice</strong>" in client.get(HERE).text
    page = client.post(reverse("approvals:end_delegation", args=[made.pk]), follow=True).text
    assert "The delegation is ended." in page
    assert not Delegation.objects.current().exists()
    recorded = Entry.objects.filter(action__startswith="delegation.").order_by("id")
    assert [(one.action, one.actor) for one in recorded] == [
        ("delegation.made", "alice"),
        ("delegation.ended", "carol"),
    ]
    assert recorded[0].details["delegate"] == "carol"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ends_at": "2020-01-01T00:00"}, "It must end after it begins."),
        ({"ends_at": "2999-01-01T00:00"}, "last a year at most"),
        (
            {"begins_at": "9999-12-01T00:00", "ends_at": "9999-12-31T23:59"},
            "It must begin within a year.",
        ),
        ({"begins_at": f"{LATELY:%Y-%m-%dT%H:%M}"}, "It must not begin in the past."),
        ({"delegate": ""}, "required"),
        ({"delegate": "0"}, "Select a valid choice."),
    ],
)
def test_what_is_wrong_is_said(
    client: Client, alice: User, carol: User, changed: dict[str, str], said: str
) -> None:
    client.force_login(alice)

    page = client.post(HERE, given_form(carol, **changed))

    assert page.status_code == 200
    assert said in page.text
    assert not Delegation.objects.exists()


def test_a_chain_is_refused_on_the_page(
    client: Client, alice: User, carol: User, dora: User
) -> None:
    delegate(alice, carol)
    client.force_login(carol)

    page = client.post(HERE, given_form(dora)).text

    assert "a delegation cannot be passed on" in page
    assert Delegation.objects.count() == 1


def test_others_have_no_hand_in_it(
    client: Client, alice: User, carol: User, dora: User, olga: User
) -> None:
    made = delegate(alice, carol)
    end = reverse("approvals:end_delegation", args=[made.pk])
    client.force_login(olga)
    assert client.get(HERE).status_code == 403
    # Who may not decide is no choice, nor is oneself.
    client.force_login(alice)
    for nobody in (olga, alice):
        assert "Select a valid choice." in client.post(HERE, given_form(nobody)).text
    client.force_login(dora)
    assert client.post(end).status_code == 404
    assert client.get(end).status_code == 405
    with pytest.raises(DelegationRefused):
        delegations.end(made, by=dora)
    assert Delegation.objects.current().exists()


def test_whoever_lost_the_right_is_voted_for_by_nobody(
    scout: Agent, send_mail: Tool, alice: User, carol: User
) -> None:
    held: UUID = hold(scout, send_mail, TWO)
    delegate(alice, carol)
    alice.groups.clear()

    say(held, carol)

    assert Vote.objects.get().for_people == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM approvals_delegations(%s)", [held])
        assert cursor.fetchone() == (0,)
