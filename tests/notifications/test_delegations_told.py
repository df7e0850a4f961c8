"""Delegates are told of delegations, and of their early end."""

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from accounts.models import User
from accounts.roles import Role
from approvals import delegations
from approvals.models import Delegation
from notifications.cursor import read_entries
from notifications.mail_body import MailText
from notifications.mail_texts import compose
from notifications.models import Delivery, Webhook
from notifications.outcomes import NotNeeded
from tests.console import scenery
from tests.notifications.conftest import reader

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol(db: None) -> User:
    return reader(scenery.person("carol", Role.APPROVER), "test")


def delegate(by: User, to: User) -> Delegation:
    now = timezone.now()
    made = Delegation(delegator=by, delegate=to, begins_at=now, ends_at=now + timedelta(days=7))
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
    assert text.subject == "alice made you their delegate"
    assert dict(text.facts)["For"] == "alice"
    assert text.link.endswith("/profile/delegations/")
    with translation.override("zh-hans"):
        assert said("delegation.made").subject == "alice 将您设为受托人"


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
