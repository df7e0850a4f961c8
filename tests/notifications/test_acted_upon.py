"""What a person did after a message had led them there is joined to that message."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import comments
from approvals.models import Approval
from approvals.services import vote
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from calls.services import resolve
from notifications.cursor import read_entries
from notifications.deliveries import DIGEST_ABOVE
from notifications.models import Delivery, PushDevice
from notifications.sending import send_due
from registry.models import Tool
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Mailbox
from tests.notifications.test_mail import decide, due_now, link_in, notify, signed_in
from tests.notifications.test_push import service, telephone

__all__ = ["service", "telephone"]

pytestmark = pytest.mark.django_db


def acted() -> list[tuple[str, str, str]]:
    """Actor, act and delivery of each entry that joins the two."""
    found = Entry.objects.filter(action="notification.acted").order_by("pk")
    return [(one.actor, said(one)["act"], said(one)["delivery"]) for one in found]


def said(entry: Entry) -> dict[str, Any]:
    return entry.details or {}


def of(call_id: UUID) -> Approval:
    return Approval.objects.for_queue().get(pk=call_id)


@pytest.mark.long
def test_a_decision_after_the_link_of_a_mail_is_joined_to_the_mail(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    as_alice = signed_in(alice)
    as_alice.get(link_in(mailbox.messages[0]))

    decide(held, alice)
    read_entries()
    read_entries()

    (mail,) = Delivery.objects.filter(event="approval.needed")
    assert acted() == [("alice", "approval.voted", str(mail.pk))]
    joined = Entry.objects.get(action="notification.acted")
    voted = Entry.objects.get(action="approval.voted")
    assert joined.call_id == held
    assert (said(joined)["channel"], said(joined)["person"]) == ("email", "alice")
    assert said(joined)["entry"] == voted.pk
    assert mail.acted_at == voted.at
    assert "acted upon" in as_alice.get(reverse("notifications:notified", args=[held])).text


@pytest.mark.long
def test_a_decision_without_the_link_or_before_it_is_joined_to_nothing(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    as_alice = signed_in(alice)

    decide(held, alice)
    as_alice.get(link_in(mailbox.messages[0]))
    read_entries()

    assert acted() == []
    assert Delivery.objects.filter(acted_at=None).exists()
    assert "acted upon" not in as_alice.get(reverse("notifications:notified", args=[held])).text


def test_an_act_after_a_link_whose_details_were_forgotten_stops_no_messages(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    commitment = {"commitment": "00" * 32}
    record("notification.opened", actor=alice.actor, call_id=held, **commitment)

    decide(held, alice)
    read_entries()

    assert acted() == []


@pytest.mark.long
def test_of_several_messages_it_is_the_one_that_was_followed_last(
    alice: User, held: UUID, mailbox: Mailbox, telephone: PushDevice, service: PushService
) -> None:
    reader(alice)
    notify()
    as_alice = signed_in(alice)
    pushed = service.messages[0]["id"]
    as_alice.get(link_in(mailbox.messages[0]))
    as_alice.get(reverse("notifications:follow", args=[pushed]))

    comments.say(of(held), by=alice, text="Who is Ana?")
    decide(held, alice, approve=False)
    read_entries()

    acts = ["approval.comment", "approval.voted"]
    assert acted() == [("alice", act, pushed) for act in acts]


@pytest.mark.long
def test_who_acts_by_a_forwarded_mail_is_named_beside_its_recipient(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    carol = scenery.person("carol", Role.APPROVER)
    signed_in(carol).get(link_in(mailbox.messages[0]))

    decide(held, carol)
    read_entries()

    joined = Entry.objects.get(action="notification.acted")
    assert (joined.actor, said(joined)["person"]) == ("carol", "alice")


@pytest.mark.long
def test_a_mail_on_many_calls_is_joined_to_each_that_is_decided(
    alice: User, scout: Agent, send_mail: Tool, mailbox: Mailbox, cursor: None
) -> None:
    reader(alice)
    calls = [
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": str(n)}, State.HELD)
        for n in range(DIGEST_ABOVE + 3)
    ]
    notify()
    due_now()
    send_due()
    together = mailbox.messages[-1]
    signed_in(alice).get(link_in(together))

    for call_id in calls:
        decide(call_id, alice)
    read_entries()

    led = Delivery.objects.exclude(opened_at=None)
    assert led.count() > 1
    assert {delivery for _actor, _act, delivery in acted()} == {str(one.pk) for one in led}
    assert set(led.values_list("acted_at", flat=True)) & {None} == set()


def test_a_recorded_outcome_is_joined_to_the_mail_on_it(
    olga: User, scout: Agent, send_mail: Tool, mailbox: Mailbox, cursor: None
) -> None:
    reader(olga)
    unknown = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(unknown)
    move_now(Move(unknown, State.RUNNING, State.UNKNOWN, SYSTEM, reason="Its worker ended."))
    notify()
    signed_in(olga).get(link_in(mailbox.messages[0]))

    resolve(unknown, by=olga, executed=Executed.YES, note="It arrived.")
    read_entries()

    assert [(actor, act) for actor, act, _delivery in acted()] == [("olga", "call.resolved")]


def test_definitions_published_after_a_mail_are_joined_to_it_once(
    olga: User, send_mail: Tool, mailbox: Mailbox, cursor: None
) -> None:
    reader(olga)
    scenery.see(send_mail.server, scenery.ADD)
    read_entries()
    due_now()
    send_due()
    signed_in(olga).get(link_in(mailbox.messages[0]))

    for tool in ("one", "two"):
        record("definition.published", actor=olga.actor, server="mailer", tool=tool)
    record("definition.published", actor=olga.actor, server="another", tool="three")
    read_entries()

    (mail,) = Delivery.objects.all()
    assert acted() == [("olga", "definition.published", str(mail.pk))]


@pytest.mark.parametrize(
    "via", ["slack T1 U1", "slack T1 U1 x", "slack", f"slack T1 U1 {UUID(int=7)}"]
)
def test_an_act_by_a_message_that_is_not_here_is_joined_to_nothing(
    alice: User, held: UUID, mailbox: Mailbox, client: Client, via: str
) -> None:
    approval = of(held)
    vote(
        approval,
        by=alice,
        approve=False,
        seen_digest=approval.call.call_digest,
        via=via,
    )

    read_entries()

    assert acted() == []
