"""Mail on events: who gets it, in which words, and what becomes of it where the server fails."""

import re
import traceback
from datetime import timedelta
from email import policy
from email.message import EmailMessage
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import factor_resets, recovery_codes
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval, Vote
from approvals.services import expire, vote
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import State
from calls.record.transitions import Move, move_now
from config.mail import BadEmailSender, BadEmailUrl, mail_server, sender
from core.ids import uuid7
from notifications import deliveries, services, sweeping
from notifications.cursor import read_entries
from notifications.deliveries import ATTEMPTS_MAX, DIGEST_ABOVE, create_reminders
from notifications.models import Delivery, MailRecipient, Webhook
from notifications.sending import send_due
from notifications.sweeping import NotificationSweep
from policies.thresholds import Threshold
from registry.models import Tool
from tests.accounts.test_factor_resets import code_of, has_codes
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox, links_to, text_of

pytestmark = pytest.mark.django_db


def notify() -> None:
    """What the sweep does within a second."""
    read_entries()
    create_reminders()
    send_due()


def due_now() -> None:
    """The time until the next attempt passes."""
    Delivery.objects.pending().update(next_at=timezone.now() - timedelta(seconds=1))


def decide(call_id: UUID, by: User, *, approve: bool = True) -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    vote(approval, by=by, approve=approve, seen_digest=approval.call.call_digest)


def test_whoever_may_decide_gets_mail_that_leads_to_the_card(
    alice: User, bob: User, held: UUID, mailbox: Mailbox, client: Client
) -> None:
    reader(alice)
    # scout is his own: his word would not count.
    reader(bob)

    notify()

    assert mailbox.recipients == ["alice@example.org"]
    message = mailbox.messages[0]
    mark = Approval.objects.select_related("call").get(pk=held).call.fingerprint
    assert message["Subject"] == f"Approval needed: mailer.send_mail for scout ({mark})"
    assert message["References"] == f"<{held}@127.0.0.1>"
    card = reverse("approvals:detail", args=[held])
    for kind in ("plain", "html"):
        said = text_of(message, kind)
        assert links_to(card, said)
        assert "No rule covers this call, so a person decides." in said
        # Nothing of the arguments.
        for value in ("ana@example.org", "Minutes of Tuesday", "the minutes are attached"):
            assert value not in str(message) + said
    assert Delivery.objects.get().state == Delivery.State.SENT

    sent_in = client.get(card)
    assert sent_in["Location"].endswith(f"?next={card}")


def link_in(message: EmailMessage) -> str:
    """The path of its link."""
    found = re.search(r"https?://[^/]+(/message/[^\s]+)", text_of(message))
    assert found
    return found[1]


@pytest.mark.long
def test_it_is_noted_who_followed_the_link_and_voted(
    alice: User, bob: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    there, card = link_in(mailbox.messages[0]), reverse("approvals:detail", args=[held])
    carol = scenery.person("carol", Role.APPROVER)
    as_alice, as_carol = signed_in(alice), signed_in(carol)
    notified = reverse("notifications:notified", args=[held])

    # A program that follows links is led to sign in, and a colleague to whom it was forwarded to
    # what they may see themselves: neither is its reader.
    assert Client().get(there)["Location"] == f"{reverse('accounts:sign_in')}?next={there}"
    assert as_carol.get(there)["Location"] == card
    assert signed_in(scenery.person("mallory")).get(there, follow=True).status_code == 403
    assert Delivery.objects.get().opened_at is None
    assert "link opened" not in as_alice.get(notified).text
    assert Vote.objects.count() == 0

    assert as_alice.get(there)["Location"] == card
    opened = Delivery.objects.get().opened_at
    assert opened
    as_alice.get(there)
    assert Delivery.objects.get().opened_at == opened
    page = as_alice.get(notified).text
    assert "link opened" in page
    assert "approved" not in page
    decide(held, alice, approve=True)
    assert "approved" in as_alice.get(notified).text


def test_a_link_whose_message_was_removed_still_leads_to_the_call(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    Delivery.objects.all().delete()

    answer = signed_in(alice).get(link_in(mailbox.messages[0]))

    assert answer["Location"] == reverse("approvals:detail", args=[held])


@pytest.mark.parametrize(
    "there",
    ["/evil.example/", "%5Cevil.example", "/%5Cevil.example", "%2F%2Fevil.example", "a%0ab"],
)
def test_a_link_leads_to_no_other_site(alice: User, there: str) -> None:
    client = signed_in(alice)

    answer = client.get(f"/message/{uuid7()}/{there}")

    assert answer.status_code in (302, 404)
    if answer.status_code == 302:
        assert answer["Location"].startswith("/a%0Ab")


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_each_reads_it_in_their_own_language_and_time(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    User.objects.filter(pk=alice.pk).update(language="zh-hans", time_zone="Asia/Shanghai")
    reader(alice)

    notify()

    assert mailbox.messages[0]["Subject"].startswith("需要审批：")
    said = text_of(mailbox.messages[0])
    assert "智能体：scout" in said
    assert re.search(r"决定期限：.+ CST\r\n", said)
    assert "如此设置。选择接收内容：http" in said


def test_a_long_chinese_subject_begins_on_the_line_of_its_header(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    User.objects.filter(pk=alice.pk).update(language="zh-hans")
    reader(alice)

    notify()

    (message,) = mailbox.messages
    head = message.as_bytes(policy=policy.default.clone(refold_source="none"))
    head = head.split(b"Subject:")[1]
    lines = head.replace(b"\r", b"").split(b"\n")
    assert lines[0].startswith(b" =?utf-8?")
    # So long that it needs a second line.
    assert lines[1].startswith(b" =?utf-8?")
    assert str(message["Subject"]).startswith("需要审批：")


@pytest.mark.parametrize(
    "change",
    [
        {"confirmed_at": None},
        {"events": []},
        {"person__is_active": False},
    ],
)
def test_who_does_not_want_or_may_not_have_it_gets_none(
    alice: User, held: UUID, mailbox: Mailbox, change: dict[str, Any]
) -> None:
    reader(alice)
    read_entries()
    # Also of what is on its way.
    if "person__is_active" in change:
        User.objects.filter(pk=alice.pk).update(is_active=False)
    else:
        MailRecipient.objects.update(**change)

    send_due()

    assert mailbox.messages == []
    assert Delivery.objects.get().state == Delivery.State.DROPPED
    entry = Entry.objects.get(action="notification.dropped")
    assert (entry.call_id, (entry.details or {})["person"]) == (held, "alice")
    assert entry.reason


def test_nobody_is_asked_for_what_was_decided_meanwhile(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice, "approval.needed")
    read_entries()
    decide(held, alice)

    notify()

    assert mailbox.messages == []


def test_a_pending_call_is_reminded_of_once_and_its_expiry_is_told(
    alice: User, held: UUID, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader(alice)
    notify()
    assert len(mailbox.messages) == 1

    # It was asked just now, and the database lets nobody say otherwise: all of its time is left.
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    notify()
    assert len(mailbox.messages) == 1
    Approval.objects.update(decide_by=timezone.now() + timedelta(minutes=14))
    notify()
    notify()
    Approval.objects.update(decide_by=timezone.now() - timedelta(seconds=1))
    expire()
    notify()

    assert [re.sub(r" \(.*", "", one["Subject"]) for one in mailbox.messages] == [
        "Approval needed: mailer.send_mail for scout",
        "Re: Approval needed: mailer.send_mail for scout",
        "Re: Approval needed: mailer.send_mail for scout",
    ]
    assert "about to expire" in text_of(mailbox.messages[1])
    assert "Nobody decided in time." in text_of(mailbox.messages[2])
    assert len({one["Message-ID"] for one in mailbox.messages}) == 3
    assert len({one["In-Reply-To"] for one in mailbox.messages}) == 1


def test_calls_of_which_nobody_is_reminded_hold_up_no_reminder(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    monkeypatch.setattr(deliveries, "REMIND_MOST", 1)
    monkeypatch.setattr(sweeping, "REMIND_EVERY_S", 0)
    reader(alice)
    of_nobody = (Threshold(source="group:nobody"),)
    scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=of_nobody)
    later = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Two"}, State.HELD)
    soon = timezone.now() + timedelta(minutes=5)
    Approval.objects.exclude(pk=later).update(decide_by=soon)
    Approval.objects.filter(pk=later).update(decide_by=soon + timedelta(minutes=1))
    sweep = NotificationSweep()

    for _look in range(2):
        sweep.look()

    reminders = Delivery.objects.filter(event="approval.reminder")
    assert list(reminders.values_list("call_id", flat=True)) == [later]


@pytest.mark.long
def test_who_was_asked_and_whose_agent_it_is_hear_of_the_decision_but_not_who_decided(
    alice: User, bob: User, held: UUID, mailbox: Mailbox
) -> None:
    carol = scenery.person("carol", "Approver")  # type: ignore[arg-type]
    for person in (alice, bob, carol):
        reader(person)
    notify()
    mailbox.recipients.clear()

    decide(held, alice, approve=False)
    notify()

    assert sorted(mailbox.recipients) == ["bob@example.org", "carol@example.org"]
    assert "Denied by alice." in text_of(mailbox.messages[-1])


def test_who_may_decide_nothing_any_more_hears_of_no_decision(
    alice: User, bob: User, held: UUID, mailbox: Mailbox
) -> None:
    carol = scenery.person("carol", "Approver")  # type: ignore[arg-type]
    for person in (bob, carol):
        reader(person)
    notify()
    mailbox.recipients.clear()
    carol.groups.clear()

    decide(held, alice, approve=False)
    notify()

    assert mailbox.recipients == ["bob@example.org"], "the agent's owner alone"


@pytest.mark.long
def test_operators_hear_of_servers_definitions_stops_and_unknown_outcomes(
    alice: User, olga: User, send_mail: Tool, scout: Agent, cursor: None, mailbox: Mailbox
) -> None:
    reader(olga)
    # She reads, and may do nothing of most of it.
    reader(alice)
    server = send_mail.server
    record("server.lost", actor=SYSTEM, server=server.slug, reason="It is \u202egone.")
    record("server.reached", actor=SYSTEM, server=server.slug, reason="")
    scenery.see(server, scenery.ADD)
    scenery.see(server, {**scenery.ADD, "name": "subtract"})
    freezes.begin(by=alice, reason="Look at scout first.", agent=scout)
    running = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(running)
    move_now(Move(running, State.RUNNING, State.UNKNOWN, SYSTEM, reason="Its worker ended."))

    notify()
    due_now()
    notify()

    said = dict(zip(mailbox.recipients, mailbox.messages, strict=True))
    assert said.keys() == {"olga@example.org", "alice@example.org"}
    subjects = [
        str(message["Subject"])
        for to, message in zip(mailbox.recipients, mailbox.messages, strict=True)
        if to.startswith("olga")
    ]
    assert sorted(subjects) == [
        "Definitions to review: mailer",
        "Emergency stop began",
        "Outcome unknown: mailer.send_mail for scout",
        "Server reachable: mailer",
        "Server unreachable: mailer",
    ]
    assert mailbox.recipients.count("alice@example.org") == 1
    # Hidden characters of a server's words are spelled out, as on pages.
    lost = next(one for one in mailbox.messages if "unreachable" in one["Subject"])
    assert "⟦U+202E⟧" in text_of(lost)
    assert "\u202e" not in text_of(lost) + text_of(lost, "html")


def test_a_server_that_is_reached_for_the_first_time_is_not_announced(
    olga: User, cursor: None, mailbox: Mailbox
) -> None:
    reader(olga)
    server = scenery.server("calculator", olga, scenery.ADD)
    record("server.reached", actor=SYSTEM, server=server.slug)

    notify()
    assert not Delivery.objects.filter(event="server.reachable").exists()

    # Of another server nothing is concluded.
    record("server.lost", actor=SYSTEM, server="mailer")
    record("server.reached", actor=SYSTEM, server=server.slug)
    notify()
    assert not Delivery.objects.filter(event="server.reachable").exists()

    record("server.lost", actor=SYSTEM, server=server.slug)
    record("server.reached", actor=SYSTEM, server=server.slug)
    notify()
    assert Delivery.objects.get(event="server.reachable").server == "calculator"
    assert "Server reachable: calculator" in [one["Subject"] for one in mailbox.messages]


def hold_many(scout: Agent, tool: Tool, count: int) -> list[UUID]:
    mails = [{**scenery.MAIL, "subject": f"Number {uuid7()}"} for _ in range(count)]
    return [scenery.call(scout, tool, one, State.HELD) for one in mails]


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 1])
def test_the_last_of_several_calls_to_be_pending_has_its_own_mail(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, mailbox: Mailbox, left: int
) -> None:
    reader(alice)
    calls = hold_many(scout, send_mail, 2)
    read_entries()
    decide(calls[1 - left], scenery.person("carol", Role.APPROVER))
    send_due()

    (message,) = mailbox.messages
    delivery = Delivery.objects.get(call_id=calls[left], event="approval.needed")
    assert message["Subject"].startswith("Approval needed: mailer.send_mail for scout (")
    assert "More calls became pending" not in text_of(message)
    assert str(calls[left]) in message["References"]
    assert str(delivery.pk) in message["Message-ID"]
    assert delivery.state == Delivery.State.SENT


@pytest.mark.long
def test_many_pending_calls_are_one_mail_after_the_first(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice)
    first = hold_many(scout, send_mail, 2)
    notify()
    # What is due at the same time is told at once.
    assert len(mailbox.messages) == 1
    assert mailbox.messages[0]["Subject"] == "Approval needed: 2 pending calls"

    more = hold_many(scout, send_mail, 5)
    notify()
    assert mailbox.messages[1]["Subject"] == "Approval needed: 5 pending calls"
    # Too many in a few minutes: from now on they wait for each other.
    late = hold_many(scout, send_mail, 3)
    notify()
    assert len(mailbox.messages) == 2
    decide(late[0], alice, approve=False)
    due_now()
    notify()

    said = [text_of(one).replace("\r", "") for one in mailbox.messages]
    told = [[call for call in first + more + late if str(call) in text] for text in said]
    assert told == [first, more, late[1:]]
    assert "Number" not in "".join(said)
    assert "/queue/\n" in said[-1]
    assert Delivery.objects.filter(event="approval.needed", state="dropped").count() == 1
    assert Delivery.objects.filter(event="approval.needed", state="sent").count() == 9


@pytest.mark.long
def test_a_mail_on_many_waits_for_a_short_part_of_the_time_to_decide(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice)
    hold_many(scout, send_mail, DIGEST_ABOVE)
    notify()
    urgent = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, decide_within_s=60)
    read_entries()

    waiting = Delivery.objects.get(call_id=urgent)
    asked = Approval.objects.get(pk=urgent)
    assert waiting.state == Delivery.State.PENDING
    assert timezone.now() < waiting.next_at < asked.decide_by - timedelta(seconds=40)


@pytest.mark.long
def test_a_mail_on_many_that_fails_loses_none(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice)
    held = hold_many(scout, send_mail, 4)
    mailbox.refusal = "451 Come back later"
    notify()
    assert {one.attempts for one in Delivery.objects.all()} == {1}

    mailbox.refusal = ""
    due_now()
    send_due()

    said = "".join(text_of(one) for one in mailbox.messages)
    assert all(str(call) in said for call in held)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_a_mail_on_many_keeps_its_id_only_while_it_is_on_the_same_calls(
    alice: User, scout: Agent, send_mail: Tool, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice)
    held = hold_many(scout, send_mail, 3)
    notify()
    # As if the connection had ended before the server's answer came.
    Delivery.objects.update(state="pending")
    due_now()
    send_due()
    Delivery.objects.update(state="pending")
    decide(held[0], alice, approve=False)
    due_now()
    send_due()

    subjects = [str(one["Subject"]) for one in mailbox.messages]
    assert subjects == [f"Approval needed: {n} pending calls" for n in (3, 3, 2)]
    ids = [str(one["Message-ID"]) for one in mailbox.messages]
    assert ids[0] == ids[1] != ids[2]
    # Whoever follows the one link of a mail has read of all its calls.
    signed_in(alice).get(link_in(mailbox.messages[2]))
    opened = Delivery.objects.exclude(opened_at=None)
    assert {one.call_id for one in opened} == {*held[1:]}


def test_one_whose_entry_is_detached_is_dropped_and_holds_up_no_others(
    alice: User, held: UUID, scout: Agent, send_mail: Tool, mailbox: Mailbox
) -> None:
    reader(alice)
    read_entries()
    Delivery.objects.update(entry_id=2**40)
    scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Two"}, State.HELD)
    read_entries()

    send_due()

    assert Delivery.objects.get(entry_id=2**40).state == "dropped"
    assert len(mailbox.messages) == 1


@pytest.mark.long
def test_a_mail_server_that_fails_is_tried_again_and_given_up_in_the_end(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    mailbox.refusal = "451 Come back later"
    notify()

    waiting = Delivery.objects.get()
    assert (waiting.state, waiting.attempts) == (Delivery.State.PENDING, 1)
    assert waiting.next_at > timezone.now()
    assert waiting.error == f"The mail server does not take the address now: {mailbox.refusal}"
    # Not before its time.
    assert send_due() == 0

    mailbox.refusal = ""
    due_now()
    send_due()
    assert Delivery.objects.get().state == Delivery.State.SENT

    mailbox.refusal = "451 Come back later"
    Delivery.objects.update(state="pending", attempts=ATTEMPTS_MAX - 1)
    due_now()
    send_due()
    assert Delivery.objects.get().state == Delivery.State.DEAD


def test_an_address_that_is_refused_for_good_is_given_up_at_once(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    mailbox.refusal = "550 5.1.1 <ALICE@example.org>: No such\u202e user"

    notify()

    given_up = Delivery.objects.get()
    assert given_up.state == Delivery.State.DEAD
    # In the server's words, on pages that are not the owner's too.
    said = "The mail server does not take the address: 550 5.1.1 <…>: No such"
    assert given_up.error.startswith(said)
    assert "\u202e" not in given_up.error


@pytest.mark.long
@pytest.mark.parametrize("status", ["5.7.1", "5.1.8", "5.7.60"])
def test_a_sender_that_is_rejected_loses_no_message(
    alice: User, held: UUID, mailbox: Mailbox, status: str
) -> None:
    reader(alice)
    mailbox.refusal = f"550 {status} countersign@localhost may not send"
    notify()

    waiting = Delivery.objects.get()
    assert waiting.is_pending
    said = f"The mail server does not take mail from this sender: {mailbox.refusal}"
    assert waiting.error == said

    # The settings are corrected.
    mailbox.refusal = ""
    due_now()
    send_due()
    assert mailbox.recipients == ["alice@example.org"]


def test_a_mail_server_that_is_away_loses_nothing(
    alice: User, held: UUID, mailbox: Mailbox, settings: Any
) -> None:
    reader(alice)
    there = settings.EMAIL_PORT
    settings.EMAIL_PORT = 9
    notify()
    assert "could not be used" in Delivery.objects.get().error

    settings.EMAIL_PORT = there
    due_now()
    send_due()

    assert mailbox.recipients == ["alice@example.org"]


def test_a_sender_that_died_leaves_its_message_to_another_under_the_same_id(
    alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    notify()
    # As if the process had ended between the server's word and ours.
    Delivery.objects.update(state="pending", ended_at=None)
    due_now()
    send_due()

    assert len(mailbox.messages) == 2
    assert len({one["Message-ID"] for one in mailbox.messages}) == 1

    # One whose sender ends at each attempt is given up.
    Delivery.objects.update(state="pending", ended_at=None, attempts=F("attempts") + ATTEMPTS_MAX)
    due_now()
    send_due()
    assert len(mailbox.messages) == 2
    assert Delivery.objects.get().state == Delivery.State.DEAD


def test_without_a_server_mail_is_written_to_files(
    alice: User, held: UUID, settings: Any, tmp_path: Any
) -> None:
    settings.EMAIL_BACKEND = mail_server("").backend
    settings.EMAIL_FILE_PATH = tmp_path / "mail"
    # As an earlier version made it.
    settings.EMAIL_FILE_PATH.mkdir(mode=0o755)
    reader(alice)

    notify()

    # Links that reset passwords are in it.
    assert settings.EMAIL_FILE_PATH.stat().st_mode & 0o777 == 0o700
    (written,) = settings.EMAIL_FILE_PATH.iterdir()
    assert "Approval needed: mailer.send_mail for scout" in written.read_text()


def test_the_url_of_a_mail_server_says_how_to_reach_it() -> None:
    server = mail_server("smtp+tls://me%40example.org:p%2Fw@mail.example.org")

    assert server[1:5] == ("mail.example.org", 587, "me@example.org", "p/w")
    assert (server.use_tls, server.use_ssl) == (True, False)
    assert mail_server("smtps://mail.example.org:4650").port == 4650
    assert mail_server("smtps://mail.example.org").use_ssl
    assert mail_server("smtp://mail.example.org/").port == 25


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@mail.example.org",
        "smtp+tls://AKIAX:secret/half@mail.example.org:587",
        "smtp+tls://AKIAX:25/secret@mail.example.org:587",
        "smtp+tls://AKIAX:secret#half@mail.example.org",
        "smtp+tls://AKIAX:25?secret@mail.example.org",
        "smtp://me:secret@mail.example.org:99999",
        "smtp://me:secret@[mail",
    ],
)
def test_the_url_of_a_mail_server_that_cannot_be_used_is_said_without_its_password(
    url: str,
) -> None:
    with pytest.raises(BadEmailUrl, match=r"EMAIL_URL must be .* %2F") as refused:
        mail_server(url)

    assert "secret" not in "".join(traceback.format_exception(refused.value, chain=True))


@pytest.mark.parametrize(
    "given",
    [
        "countersign@example.org",
        "Countersign <countersign@localhost>",
        "Example Inc. <c@example.org>",
        '"Example, Inc." <c@example.org>',
        "例子公司 <c@例子.公司>",
    ],
)
def test_a_sender_that_is_one_address_is_taken_and_sends(
    given: str, alice: User, mailbox: Mailbox, settings: Any
) -> None:
    settings.DEFAULT_FROM_EMAIL = sender(given)

    services.send_confirmation(services.set_mail(alice, "alice@example.org", []))

    assert len(mailbox.messages) == 1


@pytest.mark.parametrize(
    "given",
    [
        "Example, Inc. <c@example.org>",
        "a@b@c",
        "Countersign <>",
        "Countersign",
        "Bob <bob",
        "Countersign countersign@example.org",
        "Countersign\n<c@example.org>",
        "Team: c@example.org;",
    ],
)
def test_a_sender_that_is_no_address_is_said_at_the_start_and_on_pages(
    given: str, alice: User, mailbox: Mailbox, settings: Any, client: Client
) -> None:
    with pytest.raises(BadEmailSender, match="COUNTERSIGN_EMAIL_FROM is not one address"):
        sender(given)

    # Should one get through all the same.
    settings.DEFAULT_FROM_EMAIL = given
    client.force_login(alice)
    there, chosen = reverse("notifications:profile"), {"address": "alice@example.org", "events": []}
    page = client.post(there, chosen, follow=True)
    assert page.status_code == 200
    assert mailbox.messages or "could not be written for this sender" in page.text


def test_a_used_recovery_code_is_mailed_to_its_person_alone(
    alice: User, olga: User, cursor: None, mailbox: Mailbox, webhook: Webhook
) -> None:
    # Nobody chooses it, and nobody leaves it out.
    reader(alice, "server.unreachable")
    reader(olga)
    codes = recovery_codes.make(alice)

    assert recovery_codes.use(alice, codes[0], address="203.0.113.9")
    notify()

    assert mailbox.recipients == ["alice@example.org"]
    message = mailbox.messages[0]
    assert message["Subject"] == "A recovery code of yours was used"
    said = text_of(message)
    assert "203.0.113.9" in said
    assert "Recovery codes left: 9" in said
    assert not any(code in said for code in codes)
    assert not Delivery.objects.filter(webhook=webhook).exists()


def test_a_new_device_is_mailed_to_its_person_alone(
    alice: User, olga: User, cursor: None, mailbox: Mailbox, webhook: Webhook, settings: Any
) -> None:
    reader(alice, "server.unreachable")
    reader(olga)
    device = {"device": "Firefox, Linux", "address": "203.0.113.9"}
    record("person.new_device", actor=alice.actor, person="alice", **device)

    notify()

    assert mailbox.recipients == ["alice@example.org"]
    message = mailbox.messages[0]
    assert message["Subject"] == "Your account was signed in to on a new device"
    said = text_of(message)
    assert links_to("/profile/sessions/", said)
    assert "Firefox, Linux" in said
    assert not Delivery.objects.filter(webhook=webhook).exists()


@pytest.mark.parametrize(
    ("language", "subject", "by"),
    [("", "Your second factors were removed", "By: eve"),
     ("zh-hans", "您的双重验证已被移除", "操作者：eve")],
)  # fmt: skip
def test_removed_second_factors_are_mailed_to_their_person_alone(
    alice: User, olga: User, cursor: None, mailbox: Mailbox, webhook: Webhook, settings: Any,
    language: str, subject: str, by: str,
) -> None:  # fmt: skip
    """By the page, with two administrators; neither of them gets it."""
    User.objects.filter(pk=alice.pk).update(language=language)
    reader(alice, "server.unreachable")
    reader(olga)
    lost = has_codes(alice)
    two = [has_codes(scenery.person(name, Role.ADMINISTRATOR)) for name in ("ada", "eve")]
    for administrator in two:
        reader(administrator)
        remove_factors(lost, administrator)
    notify()

    assert mailbox.recipients == ["alice@example.org"]
    message = mailbox.messages[0]
    assert message["Subject"] == subject
    said = text_of(message)
    assert links_to("/profile/", said)
    assert "ada" in said
    assert by in said
    assert not Delivery.objects.filter(webhook=webhook).exists()


def remove_factors(person: User, by: User) -> None:
    """As one of two administrators."""
    client, there = Client(), reverse("accounts:factor_reset", args=[person.pk])
    client.force_login(by)
    asked = factor_resets.pending(person)
    given = {"reason": "Telephone lost.", "code": code_of(by), "asked": asked.pk if asked else ""}
    assert client.post(there, given).status_code == 302


def test_a_mail_during_an_emergency_stop_says_that_nothing_can_be_approved(
    alice: User, olga: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    stop = freezes.begin(by=olga, reason="Something is wrong.")

    notify()

    asked = mailbox.messages[0]
    for kind in ("plain", "html"):
        said = " ".join(text_of(asked, kind).split())
        assert "An emergency stop is in force: nothing can be approved until it ends." in said
        assert "Decide by" not in said
        assert "Open the call" in said
        assert "Open and decide" not in said
    freezes.end(stop, by=scenery.person("otto", Role.OPERATOR), why="It is well again.")
    Delivery.objects.filter(event="approval.needed").update(
        state="pending", attempts=0, next_at=timezone.now() - timedelta(seconds=1)
    )
    notify()
    (again,) = [one for one in mailbox.messages[1:] if "Approval needed" in str(one["Subject"])]
    assert "Decide by" in text_of(again, "plain")
    assert "emergency stop" not in text_of(again, "plain")
