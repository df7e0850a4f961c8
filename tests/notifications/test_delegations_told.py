"""Delegates are told of delegations, and of their early end."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone, translation
from pytest_django import DjangoAssertNumQueries

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations
from approvals.models import Delegation
from calls.record.states import State
from notifications import deliveries
from notifications.cursor import read_entries
from notifications.mail_body import MailText
from notifications.mail_texts import compose
from notifications.models import Delivery, Webhook
from notifications.outcomes import NotNeeded
from registry.models import Tool
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.test_mail import decide

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol(db: None) -> User:
    return reader(scenery.person("carol", Role.APPROVER), "test")


def delegate(by: User, to: User, after: timedelta = timedelta(0)) -> Delegation:
    begins = timezone.now() + after
    ends = begins + timedelta(days=7)
    made = Delegation(delegator=by, delegate=to, begins_at=begins, ends_at=ends)
    delegations.make(made)
    return made


def told() -> list[tuple[str, str]]:
    read_entries()
    found = Delivery.objects.order_by("id").select_related("person")
    return [(one.event, one.person.username) for one in found if one.person]


def said(event: str) -> MailText:
    delivery = Delivery.objects.get(event=event)
    assert delivery.person is not None
    return compose(delivery, delivery.person)


def test_a_delegate_is_told_whatever_they_chose(
    alice: User, carol: User, cursor: None, webhook: Webhook
) -> None:
    reader(alice)

    delegate(alice, carol)

    assert told() == [("delegation.made", "carol")]
    assert not Delivery.objects.filter(webhook=webhook).exists()
    text = said("delegation.made")
    assert text.subject == "alice chose you as their delegate"
    assert dict(text.facts)["For"] == "alice"
    assert text.link.endswith("/profile/delegations/")
    with translation.override("zh-hans"):
        assert said("delegation.made").subject == "alice 将您设为受托人"


def test_a_delegate_is_notified_once_of_what_is_pending_already(
    alice: User,
    scout: Agent,
    send_mail: Tool,
    held: UUID,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    reader(alice)
    other = {**scenery.MAIL, "to": "else@example.org"}
    decided = scenery.call(scout, send_mail, other, State.HELD)
    read_entries()
    carol = reader(scenery.person("carol", Role.APPROVER))
    decide(decided, alice, approve=False)
    asked = Delivery.objects.filter(event="approval.needed", person=carol)

    # Each second: one statement and its savepoint, where none began.
    with django_assert_num_queries(3):
        assert deliveries.create_for_delegates() == 0
    delegate(alice, carol, -timedelta(hours=1))
    assert deliveries.create_for_delegates() == 1
    assert deliveries.create_for_delegates() == 0

    assert [one.call_id for one in asked] == [held]


def test_a_delegation_for_later_notifies_nobody_yet(alice: User, held: UUID) -> None:
    reader(alice)
    read_entries()
    carol = reader(scenery.person("carol", Role.APPROVER))

    delegate(alice, carol, timedelta(hours=1))

    assert deliveries.create_for_delegates() == 0


def test_the_other_one_is_told_of_an_early_end(alice: User, carol: User, cursor: None) -> None:
    reader(alice)
    first = delegate(alice, carol)
    delegations.end(first, by=alice)
    second = delegate(alice, carol)
    delegations.end(second, by=carol)
    # It has ended: nothing more to say.
    delegations.end(second, by=carol)

    assert sorted(told()) == [
        ("delegation.ended", "alice"),
        ("delegation.ended", "carol"),
        ("delegation.made", "carol"),
        ("delegation.made", "carol"),
    ]
    ended = Delivery.objects.get(event="delegation.ended", person=carol)
    assert compose(ended, carol).subject == "alice ended a delegation early"


def test_of_what_ended_meanwhile_no_delegate_is_told(
    alice: User, carol: User, cursor: None
) -> None:
    made = delegate(alice, carol)
    delegations.end(made, by=alice)
    read_entries()

    with pytest.raises(NotNeeded, match="ended meanwhile"):
        said("delegation.made")
