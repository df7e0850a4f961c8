"""Links of messages: who followed them is on the record, and nobody acts by one."""

from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from approvals.models import Vote
from audit.models import Entry
from notifications.delivery_entries import STRANGERS_MAX
from notifications.models import Delivery, PushDevice, Webhook
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Hook, Mailbox
from tests.notifications.test_mail import link_in, notify, signed_in
from tests.notifications.test_push import service, telephone

__all__ = ["service", "telephone"]

pytestmark = pytest.mark.django_db


def noted(kind: str) -> list[tuple[str, str]]:
    """The actors of these entries, and the readers that they name."""
    found = Entry.objects.filter(action=f"notification.{kind}").order_by("pk")
    return [(one.actor, (one.details or {}).get("person", "")) for one in found]


def test_what_was_delivered_is_an_entry_that_outlives_its_row(
    alice: User, held: UUID, mailbox: Mailbox, webhook: Webhook, hook: Hook
) -> None:
    reader(alice)

    notify()

    entries = Entry.objects.filter(action="notification.sent").order_by("pk")
    said = [one.details or {} for one in entries]
    assert {one.call_id for one in entries} == {held}
    assert {(one["channel"], one.get("person") or one["webhook"]) for one in said} == {
        ("email", "alice"),
        ("webhook", "ledger"),
    }
    assert {one["event"] for one in said} == {"approval.needed"}


def test_its_reader_follows_it_and_that_is_noted_once(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    there = link_in(mailbox.messages[0])
    as_alice = signed_in(alice)

    as_alice.get(there)
    as_alice.get(there)

    assert noted("opened") == [("alice", "alice")]
    assert noted("forwarded") == noted("unsigned") == []


def test_a_forwarded_mail_acts_for_nobody_and_is_noted_once_a_person(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    there = link_in(mailbox.messages[0])
    carol = scenery.person("carol", Role.APPROVER)
    as_carol, as_mallory = signed_in(carol), signed_in(scenery.person("mallory"))

    for _time in range(3):
        assert as_carol.get(there)["Location"] == reverse("approvals:detail", args=[held])
        assert as_mallory.get(there, follow=True).status_code == 403

    assert noted("forwarded") == [("carol", "alice"), ("mallory", "alice")]
    assert noted("opened") == []
    assert Delivery.objects.get().opened_at is None
    assert not Vote.objects.exists()
    people = as_carol.get(reverse("notifications:notified", args=[held])).text
    assert "link followed by 2 other users" in people


def test_a_scanner_decides_nothing_and_cannot_flood_the_record(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    there = link_in(mailbox.messages[0])
    scanner = Client()
    before = Entry.objects.count()

    for _time in range(20):
        assert scanner.get(there).status_code == scanner.head(there).status_code == 302
    assert scanner.post(there).status_code == 405

    assert Entry.objects.count() == before + 1
    assert noted("unsigned") == [("countersign", "alice")]
    assert not Vote.objects.exists()
    # The reader of the mail is not kept out by that.
    signed_in(alice).get(there)
    assert noted("opened") == [("alice", "alice")]


def test_invented_links_are_no_entries(alice: User, held: UUID, webhook: Webhook) -> None:
    notify()
    of_webhook = Delivery.objects.get(webhook=webhook)
    before = Entry.objects.count()

    for client in (Client(), signed_in(alice)):
        for pk in (held, of_webhook.pk):
            client.get(reverse("notifications:follow_mail", args=[held, pk]))
            client.get(reverse("notifications:follow", args=[pk]))

    assert Entry.objects.count() == before


def test_a_crowd_of_strangers_is_bounded(alice: User, held: UUID, mailbox: Mailbox) -> None:
    reader(alice)
    notify()
    Delivery.objects.update(strangers=list(range(10**6, 10**6 + STRANGERS_MAX)))

    signed_in(scenery.person("mallory")).get(link_in(mailbox.messages[0]))

    assert noted("forwarded") == []


def test_a_push_that_somebody_else_opens_leads_nowhere_and_is_noted(
    telephone: PushDevice, service: PushService, held: UUID, alice: User
) -> None:
    notify()
    there = reverse("notifications:follow", args=[service.messages[0]["id"]])

    Client().get(there)
    carol = scenery.person("carol", Role.APPROVER)
    assert signed_in(carol).get(there)["Location"] == reverse("home")

    assert noted("unsigned") == [("countersign", "alice")]
    assert noted("forwarded") == [("carol", "alice")]
    assert signed_in(alice).get(there)["Location"] == reverse("approvals:detail", args=[held])
    assert noted("opened") == [("alice", "alice")]
