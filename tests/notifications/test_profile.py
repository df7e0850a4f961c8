"""A person's own notifications: an address that its owner confirmed, and a switch per event."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from audit.models import Entry
from notifications.models import MailRecipient
from tests.notifications.receivers import Mailbox, text_of

pytestmark = pytest.mark.django_db

HERE = "/profile/notifications/"
GIVEN = {"address": "alice@example.org", "events": ["approval.needed", "server.unreachable"]}


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def link_in(mailbox: Mailbox) -> str:
    found = re.search(r"http://[^/]+(/profile/\S+)", text_of(mailbox.messages[-1]))
    assert found
    return found[1]


def test_an_address_counts_once_its_owner_followed_the_link(
    as_alice: Client, alice: User, mailbox: Mailbox
) -> None:
    page = as_alice.post(HERE, GIVEN, follow=True).text
    assert "A link was sent to alice@example.org." in page
    assert "The address is not confirmed" in page
    assert not MailRecipient.objects.reachable().exists()
    assert mailbox.recipients == ["alice@example.org"]

    link = link_in(mailbox)
    # Whatever looks into mail may follow links.
    assert as_alice.get(link).status_code == 200
    assert not MailRecipient.objects.reachable().exists()
    assert "Your address is confirmed" in as_alice.post(link, follow=True).text

    assert MailRecipient.objects.reachable().get().events == GIVEN["events"]
    assert "alice@" not in str(Entry.objects.get(action="person.address_confirmed").details)
    # Switches alone need no new confirmation.
    as_alice.post(HERE, {**GIVEN, "events": []})
    assert MailRecipient.objects.reachable().get().events == []
    # Another address does.
    as_alice.post(HERE, {**GIVEN, "address": "a@example.net"})
    assert not MailRecipient.objects.reachable().exists()
    assert "another address" in as_alice.post(link, follow=True).text
    assert not MailRecipient.objects.reachable().exists()


def test_a_link_is_for_whom_it_was_sent_to(as_alice: Client, bob: User, mailbox: Mailbox) -> None:
    as_alice.post(HERE, GIVEN)
    link = link_in(mailbox)

    as_bob = Client()
    assert as_bob.post(link).status_code == 302
    as_bob.force_login(bob)
    as_bob.post(HERE, {**GIVEN, "address": "bob@example.org"})
    # A look at it alone is nobody's mistake.
    assert as_bob.get(link).status_code == 200
    assert not Entry.objects.filter(action="person.address_mistaken").exists()
    assert "another account" in as_bob.post(link, follow=True).text
    (recorded,) = Entry.objects.filter(action="person.address_mistaken")
    assert (recorded.actor, recorded.reason) == (
        "bob",
        "The link was sent to another user, and confirmed nothing.",
    )
    assert (recorded.details or {})["person"] == "alice"
    assert "@" not in str(recorded.details)
    forged = as_alice.post(link[:-3] + "xx/", follow=True).text

    assert "not valid any more" in forged
    assert Entry.objects.filter(action="person.address_mistaken").count() == 1
    assert not MailRecipient.objects.reachable().exists()


@pytest.mark.parametrize("way", ["replaced", "removed"])
def test_a_confirmed_address_does_not_go_in_silence(
    as_alice: Client, alice: User, mailbox: Mailbox, way: str
) -> None:
    as_alice.post(HERE, GIVEN)
    as_alice.post(link_in(mailbox))
    mailbox.messages.clear()
    mailbox.recipients.clear()
    # Events alone change nothing of it, nor does its owner hear of them.
    as_alice.post(HERE, {**GIVEN, "events": []})
    assert mailbox.messages == []

    for _time in range(2):
        if way == "removed":
            as_alice.post(reverse("notifications:remove_mail"))
        else:
            as_alice.post(HERE, {**GIVEN, "address": "mallory@example.net"})

    told = [one for one in mailbox.messages if one["To"] == "alice@example.org"]
    assert [str(one["Subject"]) for one in told] == [
        "Your e-mail address was removed from your account"
    ]
    assert "/profile/sessions/" in text_of(told[0])
    assert "mallory@" not in str(told[0])
    (entry,) = Entry.objects.filter(action="person.address_removed")
    assert entry.actor == "alice"
    assert "@" not in str(entry.details)


def test_it_is_removed_where_the_mail_server_is_away(
    as_alice: Client, mailbox: Mailbox, settings: Any
) -> None:
    as_alice.post(HERE, GIVEN)
    as_alice.post(link_in(mailbox))
    settings.EMAIL_PORT = 1

    page = as_alice.post(reverse("notifications:remove_mail"), follow=True)

    assert "you get no mail" in page.text
    assert MailRecipient.objects.get().address == ""


def test_it_is_removed_by_its_owner(as_alice: Client, mailbox: Mailbox) -> None:
    as_alice.post(HERE, GIVEN)

    page = as_alice.post(reverse("notifications:remove_mail"), follow=True)

    assert "you get no mail" in page.text
    assert MailRecipient.objects.get().address == ""
    assert "Remove your address" not in as_alice.get(HERE).text


@pytest.mark.long
def test_links_are_sent_once_a_minute_to_whatever_address(
    as_alice: Client, mailbox: Mailbox
) -> None:
    as_alice.post(HERE, GIVEN)
    as_alice.post(reverse("notifications:remove_mail"))

    page = as_alice.post(HERE, {**GIVEN, "address": "victim@example.net"}, follow=True).text

    assert "A link was sent a moment ago" in page
    assert mailbox.recipients == ["alice@example.org"]
    MailRecipient.objects.update(link_sent_at=timezone.now() - timedelta(seconds=61))
    as_alice.post(HERE, {**GIVEN, "address": "alice@example.net"})
    assert mailbox.recipients[1:] == ["alice@example.net"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"address": "nobody"}, "Enter a valid email address."),
        ({"address": ""}, "required"),
        ({"address": "a@example.org\nBcc: b@example.org"}, "Enter a valid email address."),
        ({**GIVEN, "events": ["moon"]}, "moon is not one of the available choices."),
    ],
)
def test_what_is_wrong_is_said(as_alice: Client, given: dict[str, Any], said: str) -> None:
    page = as_alice.post(HERE, given)

    assert page.status_code == 200
    assert said in page.text
    assert not MailRecipient.objects.exists()


def test_a_mail_server_that_is_away_is_said(
    as_alice: Client, mailbox: Mailbox, settings: Any
) -> None:
    settings.EMAIL_PORT = 9

    assert "could not be used" in as_alice.post(HERE, GIVEN, follow=True).text


def test_the_page_says_where_mail_goes_without_a_server(as_alice: Client, settings: Any) -> None:
    settings.EMAIL_URL = ""

    assert "No mail server is set" in as_alice.get(HERE).text
    assert HERE in as_alice.get("/profile/").text


def test_whoever_is_not_signed_in_signs_in_first(client: Client, db: None) -> None:
    assert client.get(HERE)["Location"] == f"{reverse('accounts:sign_in')}?next={HERE}"
