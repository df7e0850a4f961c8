"""Links of messages: who followed them is on the record, and nobody acts by one."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from approvals.models import Vote
from audit.models import Entry
from audit.services import SYSTEM, record
from notifications.delivery_entries import FOLLOWERS_MAX
from notifications.models import Delivery, MailRecipient, PushDevice, Webhook
from notifications.payloads import link_to
from tests.console import scenery
from tests.notifications.chats import chat_server
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Hook, Mailbox, text_of
from tests.notifications.test_chats import EVERY, form, read
from tests.notifications.test_mail import decide, link_in, notify, signed_in
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


@pytest.mark.long
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


@pytest.mark.long
@EVERY
def test_who_followed_the_link_of_a_chat_is_noted_once_a_person(
    kind: str, held: UUID, alice: User, as_olga: Client, settings: Any
) -> None:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with chat_server(kind) as chat:
        as_olga.post(reverse("notifications:add_webhook"), form(kind, chat))
        notify()
    there = path_in(read(chat.bodies[0]))
    card = reverse("approvals:detail", args=[held])
    carol = scenery.person("carol", Role.APPROVER)
    preview, as_alice, as_carol = Client(), signed_in(alice), signed_in(carol)

    for _time in range(2):
        assert preview.get(there)["Location"].endswith(f"?next={there}")
        assert as_alice.get(there)["Location"] == as_carol.get(there)["Location"] == card

    entries = Entry.objects.filter(action="notification.opened").order_by("pk")
    said = [(one.actor, one.call_id, (one.details or {})["webhook"]) for one in entries]
    assert said == [("alice", held, "team"), ("carol", held, "team")]
    assert noted("unsigned") == [("countersign", "")]
    assert noted("forwarded") == []


def path_in(text: str) -> str:
    """The path of its one link."""
    return "/" + text.partition("://")[2].partition("/")[2].split("|")[0].split(")")[0].strip("<>")


def test_of_every_mail_it_is_noted_who_followed_its_link(
    olga: User, cursor: None, mailbox: Mailbox
) -> None:
    reader(olga)
    record("server.lost", actor=SYSTEM, server="mailer", reason="It is gone.")
    record("workload.weekly", actor=SYSTEM)
    notify()
    there = link_in(mailbox.messages[0])

    assert Client().get(there).status_code == 302
    assert signed_in(olga).get(there)["Location"] == reverse("registry:server", args=["mailer"])

    assert noted("unsigned") == [("countersign", "olga")]
    assert noted("opened") == [("olga", "olga")]
    assert signed_in(scenery.person("mallory")).get(there, follow=True).status_code == 403
    assert noted("forwarded") == [("mallory", "olga")]


def test_a_link_keeps_the_query_of_its_page(olga: User, cursor: None, mailbox: Mailbox) -> None:
    entry = record("server.lost", actor=SYSTEM, server="mailer")
    delivery = Delivery.objects.create(
        entry_id=entry.pk, event="test", channel="email", person=olga
    )

    there = urlsplit(link_to(delivery, "/workload/?week=2026-11-16"))

    answer = signed_in(olga).get(f"{there.path}?{there.query}")
    assert answer["Location"] == "/workload/?week=2026-11-16"


def test_an_owner_who_sees_no_cards_is_led_to_the_call(
    held: UUID, bob: User, alice: User, mailbox: Mailbox
) -> None:
    bob.groups.set(Group.objects.filter(name=Role.VIEWER))
    reader(bob)
    notify()
    decide(held, alice, approve=False)
    notify()

    (mail,) = mailbox.messages
    answer = signed_in(bob).get(link_in(mail), follow=True)

    assert answer.status_code == 200
    assert answer.request["PATH_INFO"] == reverse("calls:detail", args=[held])


def test_a_scanner_of_a_link_to_confirm_is_noted_once(
    alice: User, cursor: None, mailbox: Mailbox
) -> None:
    signed_in(alice).post("/profile/notifications/", {"address": "alice@example.org"})
    (mail,) = mailbox.messages
    there = f"/profile/{text_of(mail).partition('/profile/')[2].split()[0]}"

    for _time in range(3):
        assert Client().get(there).status_code == 302
        assert Client().get(f"{there[:-3]}x/").status_code == 302

    assert noted("unsigned") == [("countersign", "alice")]
    assert MailRecipient.objects.get().confirmed_at is None


def test_invented_links_are_no_entries(alice: User, held: UUID, webhook: Webhook) -> None:
    notify()
    of_webhook = Delivery.objects.get(webhook=webhook)
    before = Entry.objects.count()

    for client in (Client(), signed_in(alice)):
        for pk in (held, of_webhook.pk):
            client.get(reverse("notifications:follow_message", args=[pk, "queue/"]))
            client.get(reverse("notifications:follow", args=[pk]))

    assert Entry.objects.count() == before


def test_a_crowd_of_strangers_is_bounded(alice: User, held: UUID, mailbox: Mailbox) -> None:
    reader(alice)
    notify()
    Delivery.objects.update(strangers=list(range(10**6, 10**6 + FOLLOWERS_MAX)))

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
