"""Chats: what they are sent is what their vendors document, agents' names are no mark-up there,
and their addresses are secrets."""

import json
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core import serializers
from django.test import Client
from django.urls import reverse
from django.utils import dateformat, timezone

from accounts import role_changes
from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from approvals.services import expire, vote
from audit.models import Entry
from audit.services import record
from calls.record.states import State
from notifications import chat_formats, deliveries
from notifications.chat_texts import LEAD_MAX, VALUE_MAX, ChatMessage, MessagePart
from notifications.cursor import read_entries
from notifications.deliveries import create_reminders
from notifications.models import Delivery, Webhook
from notifications.sending import send_due
from notifications.services import add_webhook
from registry.models import Tool
from tests.console import scenery
from tests.notifications.chats import CHATS, Chat, Slack, Telegram, chat_server
from tests.notifications.conftest import reader
from tests.notifications.receivers import Hook, Mailbox, links_to, text_of

pytestmark = pytest.mark.django_db
# Teams' own, and that Discord is to say whether it kept the message.
QUERIES = {"teams": {"api-version", "sp", "sv", "sig"}, "discord": {"wait"}}
EVERY = pytest.mark.parametrize("kind", CHATS)
HOSTILE = [
    "<!channel> <@U123> <https://evil.example|Approve>",
    "@everyone @here <@&1> [Approve](https://evil.example)",
    "`@channel` ``x`` *b* _i_ ~s~ ||p|| \\",
    "https://evil.example @someone #tag :tada:",
    "two\nlines\n# and a heading",
    "<at>all</at> {{DATE(2026-11-25T00:00:00Z)}} & “quotes”",
    "hidden\u202etext\u200b",
    "𝒳𝒴 with two units each",
]


@pytest.fixture
def kind() -> str:
    return "slack"


@pytest.fixture
def chat(kind: str, settings: Any) -> Iterator[Chat]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with chat_server(kind) as chat:
        yield chat
        assert chat.faults == []


@pytest.fixture
def webhook(kind: str, chat: Chat, as_olga: Client, send_mail: Tool) -> Webhook:
    """Added as people add it."""
    page = as_olga.post(reverse("notifications:add_webhook"), form(kind, chat), follow=True)
    assert "“team” is saved." in page.text
    return Webhook.objects.get()


def form(kind: str, chat: Chat, **more: str) -> dict[str, str]:
    return {"name": "team", "format": kind, "language": "en", "url": chat.url, **more}


def notify() -> None:
    read_entries()
    send_due()


def due_now() -> None:
    Delivery.objects.pending().update(next_at=timezone.now() - timedelta(seconds=1))


def decide(held: UUID, by: User, *, approve: bool, reason: str = "") -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    seen = approval.call.call_digest
    vote(approval, by=by, approve=approve, seen_digest=seen, reason=reason)


def read(body: dict[str, Any]) -> str:
    """All text of a message in its order, as it is on the wire."""
    match body:
        case {"blocks": blocks}:
            texts = [text for one in blocks for text in one.get("fields", [one.get("text")])]
            return "\n".join(one["text"] for one in texts)
        case {"attachments": [{"content": card}]}:
            lines = ["".join(run["text"] for run in one["inlines"]) for one in card["body"]]
            return "\n".join([*lines, *(f"{one['title']} {one['url']}" for one in card["actions"])])
        case {"content": str(text)} | {"text": str(text)}:
            return text
    raise AssertionError(body)


@pytest.mark.long
@EVERY
def test_a_chat_reads_who_asks_for_what_until_when_and_then_who_decided(
    kind: str, webhook: Webhook, chat: Chat, held: UUID, alice: User
) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    notify()
    decide(held, alice, approve=False, reason="Not today.")
    notify()

    asked, decided = (read(one).replace("`", "") for one in chat.bodies)
    assert asked.startswith("scout asks for approval of mailer.send_mail.")
    for fact in ("For: bob", f"Fingerprint: {approval.call.fingerprint}", "Decide by: ", "UTC"):
        assert fact in asked
    assert "Open and decide" in asked
    assert decided.startswith("alice denied mailer.send_mail for scout.")
    assert "Not today." in decided
    for text in (asked, decided):
        assert links_to(f"/queue/{held}/", text)
    assert all(one.keys() == QUERIES.get(kind, set()) for one in chat.queries)
    # Neither arguments, nor anything to press but the link.
    sent = json.dumps(chat.bodies)
    for value in ("ana@example.org", "Minutes", "attached", "Approve", "Deny", "callback"):
        assert value not in sent
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


@pytest.mark.long
@EVERY
def test_a_reminder_says_until_when_somebody_has_to_decide(
    webhook: Webhook, chat: Chat, held: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify()
    soon = timezone.now() + timedelta(minutes=14)
    Approval.objects.update(decide_by=soon)
    # Of a call that was asked for just now all of its time is left.
    create_reminders()
    assert not Delivery.objects.pending().exists()
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    for _round in range(2):
        create_reminders()
        send_due()

    _asked, reminder = chat.bodies
    said = read(reminder).replace("`", "")
    assert said.startswith("Still pending, and about to expire: mailer.send_mail for scout.")
    assert dateformat.format(soon, "P") in said
    assert links_to(f"/queue/{held}/", said)
    assert "Open and decide" in said
    assert "ana@example.org" not in json.dumps(reminder)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


@pytest.mark.long
@EVERY
def test_one_that_expired_is_told_of(webhook: Webhook, chat: Chat, held: UUID) -> None:
    notify()
    Approval.objects.update(decide_by=timezone.now())
    expire()
    notify()

    said = read(chat.bodies[1]).replace("`", "")
    assert said.startswith("Nobody decided in time: mailer.send_mail for scout expired.")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slack", "telegram"])
def test_roles_that_decide_are_told_of_to_administrators_and_chats(
    webhook: Webhook, chat: Chat, bob: User, alice: User, mailbox: Mailbox, cursor: None
) -> None:
    ada = reader(scenery.person("ada", Role.ADMINISTRATOR), "role.changed")
    reader(alice, "role.changed")
    read_entries()

    role_changes.note_granted(bob, Role.APPROVER, by=ada)
    record("role.requested", actor=ada.actor, person="bob", role="Administrator")
    role_changes.note_removed(bob, Role.APPROVER, by=ada)
    notify()

    said = [
        "ada gave bob the role Approver",
        "ada requested the role Administrator for bob",
        "ada took the role Approver from bob",
    ]
    assert [read(one).replace("`", "").split("\n")[0] for one in chat.bodies] == said
    assert [one["Subject"] for one in mailbox.messages] == said
    assert set(mailbox.recipients) == {"ada@example.org"}
    assert "Another administrator has to confirm it." in text_of(mailbox.messages[1])
    assert all("/people/" in text_of(one) for one in mailbox.messages)


@pytest.mark.long
@EVERY
def test_what_was_decided_before_it_was_sent_is_not_asked_for(
    webhook: Webhook, chat: Chat, held: UUID, alice: User
) -> None:
    read_entries()
    decide(held, alice, approve=True)
    notify()

    assert len(chat.bodies) == 1
    assert read(chat.bodies[0]).replace("`", "").startswith("alice approved")
    assert Delivery.objects.filter(state="dropped").count() == 1


@pytest.mark.long
@EVERY
def test_the_test_message_and_the_language_that_was_chosen(
    webhook: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    as_olga.post(reverse("notifications:test_webhook", args=[webhook.pk]))
    send_due()
    edited = {"name": "team", "language": "zh-hans", "url": ""}
    as_olga.post(reverse("notifications:edit_webhook", args=[webhook.pk]), edited)
    notify()

    test, asked = (read(one) for one in chat.bodies)
    assert test.startswith("This is a test message: notifications arrive here.")
    assert "打开并决定" in asked
    assert "智能体：" in asked
    assert not re.search("[\u4e00-\u9fff]:", asked)


@pytest.mark.parametrize("name", ["add_webhook", "add_slack_app"])
def test_the_language_of_whoever_adds_a_chat_is_chosen_at_first(as_olga: Client, name: str) -> None:
    page = as_olga.get(reverse(f"notifications:{name}"), headers={"Accept-Language": "zh-CN"})

    assert '<option value="zh-hans" selected>' in page.text


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
@EVERY
def test_the_name_of_an_agent_is_text_in_every_chat(
    webhook: Webhook, chat: Chat, bob: User, send_mail: Tool, name: str, cursor: None
) -> None:
    agent = Agent.objects.create(name=name, owner=bob)
    scenery.call(agent, send_mail, scenery.MAIL, State.HELD)

    notify()

    (body,) = chat.bodies
    assert "\n# and" not in read(body)
    assert "\u202e" not in read(body)
    if isinstance(chat, Telegram):
        shown = chat.code(body)
        assert read(body).startswith(shown[0])
        assert shown[1] == "mailer.send_mail"
    elif "attachments" in body:
        assert '"TextBlock"' not in json.dumps(body)
        assert "entities" not in json.dumps(body)
    else:
        # Each of ours begins or ends one code, and none of the name does.
        assert "``" not in read(body)
        outside = re.sub("`[^`\n]+`", "", read(body))
        for markup in ("@", "<!", "<@", "evil", "](https://evil", "*", "#", "~", "||", "{{"):
            assert markup not in outside, outside
    if isinstance(chat, Slack):
        inside = read(body) + body["text"]
        ours = re.sub(r"<http[^<>|]+\|Open and decide>", "", inside)
        assert not re.search("[<>]", ours)


@EVERY
@pytest.mark.parametrize("character", ["&", "𝒳", "`", "字"])
def test_the_longest_message_is_within_the_limits(
    kind: str, character: str, settings: Any, send_mail: Tool
) -> None:
    """Every text as long as it is let through."""
    value = MessagePart(
        (character * VALUE_MAX)[: VALUE_MAX // len(character.encode("utf-16-le")) * 2], True
    )
    lead = MessagePart(
        (character * LEAD_MAX)[: LEAD_MAX // len(character.encode("utf-16-le")) * 2], True
    )
    facts = [[MessagePart("Fingerprint, a label: "), value] for _ in range(5)]
    facts.append([MessagePart("Arguments:")])
    units = len(character.encode("utf-16-le")) // 2
    name, share = (MessagePart(character * (most // units), True) for most in (24, 27))
    facts += [[name, MessagePart(": "), share]] * 6
    facts.append([MessagePart("14 arguments are not shown")])
    link = f"https://countersign.example.org/message/{UUID(int=0)}/queue/{UUID(int=0)}/"
    headline = [value, MessagePart(" did something to "), value, MessagePart(" for "), value]
    message = ChatMessage(headline, link, "Open and decide", [lead], facts)
    far_end = CHATS[kind]()
    address = f"https://chat.example.org{far_end.path}"

    _url, body = chat_formats.request(Webhook(format=kind), address, message, "")

    far_end.check(body)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["telegram"])
def test_telegram_is_answered_in_the_thread_of_the_first_message(
    webhook: Webhook, chat: Chat, held: UUID, alice: User
) -> None:
    notify()
    decide(held, alice, approve=True)
    notify()

    asked, decided = chat.bodies
    assert "reply_parameters" not in asked
    assert decided["reply_parameters"]["message_id"] == 1
    assert decided["reply_parameters"]["allow_sending_without_reply"] is True


@pytest.mark.long
@EVERY
def test_an_address_is_on_no_page_in_no_log_entry_or_column(
    kind: str,
    webhook: Webhook,
    chat: Chat,
    held: UUID,
    as_olga: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = chat.path.rpartition("?")[0] or chat.path
    chat.refusal = (403, {})
    notify()
    as_olga.post(reverse("notifications:test_webhook", args=[webhook.pk]))
    edit = reverse("notifications:edit_webhook", args=[webhook.pk])
    # Of what is wrong with another one, nothing is shown either.
    wrong = f"https://chat.example.org:port{chat.path}"
    pages = [
        as_olga.get("/notifications/").text,
        as_olga.get(reverse("notifications:webhook", args=[webhook.pk])).text,
        as_olga.get(edit).text,
        as_olga.post(edit, {"name": "", "language": "en", "url": chat.url}).text,
        as_olga.post(edit, {"name": "team", "language": "en", "url": wrong}).text,
        as_olga.post(reverse("notifications:add_webhook"), {**form(kind, chat), "url": wrong}).text,
    ]
    for page in pages:
        assert secret not in page
        assert "secretsecret" not in page
    assert f"/…{chat.url[-4:]}" in pages[0]
    assert pages[5].count('class="error"') == 1
    rows = serializers.serialize("json", [*Webhook.objects.all(), *Delivery.objects.all()])
    entries = json.dumps(list(Entry.objects.values_list("details", flat=True)))
    for kept in (rows, entries, caplog.text):
        assert secret not in kept
    assert "status 403" in Delivery.objects.exclude(error="")[0].error


@pytest.mark.long
@EVERY
def test_a_far_end_takes_nothing_from_a_caller_that_it_does_not_know(
    kind: str, chat: Chat, as_olga: Client, held: UUID
) -> None:
    """One character of the secret is another: of the signature, of the path, or of the token."""
    address = chat.url
    # Of Telegram's address the secret is the token, which is followed by the method and the chat.
    at = address.index("AAsecret") if kind == "telegram" else len(address) - 5
    chat.url = address[:at] + ("x" if address[at] != "x" else "y") + address[at + 1 :]
    as_olga.post(reverse("notifications:add_webhook"), form(kind, chat))

    notify()

    assert (chat.bodies, chat.strangers) == ([], 1)
    assert f"status {chat.unknown[0]}" in Delivery.objects.get().error


def test_too_many_requests_are_waited_out(
    webhook: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    as_olga.post(reverse("notifications:test_webhook", args=[webhook.pk]))
    later = (timezone.now() + timedelta(hours=3)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    for said, least in (("600", 590), (later, 10700), ("99999999", 86000), ("0", 4), ("soon", 70)):
        chat.refusal = (429, {"Retry-After": said})
        Delivery.objects.update(attempts=0)
        due_now()
        notify()
        for one in Delivery.objects.pending():
            wait = (one.next_at - timezone.now()).total_seconds()
            assert least - 1 < wait < least * 1.1 + 20, said
    assert not chat.bodies

    chat.refusal = None
    due_now()
    send_due()
    assert len(chat.bodies) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "said",
    [
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 2026 00:00:00 +99999999999999999999",
        "-9223372036854775808",
        "9" * 400,
    ],
)
def test_no_answer_of_a_busy_receiver_holds_up_others(
    webhook: Webhook, chat: Chat, held: UUID, hook: Hook, olga: User, said: str
) -> None:
    chat.refusal, chat.retry_after = (429, {"Retry-After": said}), -(2**63)
    add_webhook(Webhook(name="ledger", url=hook.url), by=olga)

    notify()

    failed = Delivery.objects.get(webhook=webhook)
    assert (failed.state, failed.attempts) == ("pending", 1)
    assert "status 429" in failed.error
    assert Delivery.objects.get(webhook__name="ledger").state == "sent"


@pytest.mark.long
def test_one_given_up_is_sent_again_and_gone_is_given_up_at_once(
    webhook: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    chat.refusal = (410, {})
    notify()
    dead = Delivery.objects.get()
    assert dead.state == "dead"

    chat.refusal = None
    again = reverse("notifications:send_again", args=[dead.pk])
    as_olga.post(again)
    # Pressed twice, and once more when it has arrived.
    assert "cannot be sent again" in as_olga.post(again, follow=True).text
    send_due()
    assert "cannot be sent again" in as_olga.post(again, follow=True).text
    send_due()

    assert Delivery.objects.get().state == "sent"
    assert len(chat.bodies) == 1
    assert Entry.objects.filter(action="notification.sent_again").count() == 1


def test_an_address_of_another_installation_does_not_open(
    webhook: Webhook, chat: Chat, held: UUID
) -> None:
    Webhook.objects.update(sealed_url=b"0" * 60)

    notify()

    assert Delivery.objects.get().error == "Its URL cannot be opened here: change the webhook."


@pytest.mark.long
def test_a_chat_has_no_secret_to_rotate_and_takes_a_new_address(
    webhook: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    page = as_olga.get(reverse("notifications:webhook", args=[webhook.pk])).text
    assert "Rotate the secret" not in page
    assert (
        as_olga.post(reverse("notifications:rotate_secret", args=[webhook.pk])).status_code == 404
    )
    with chat_server("slack") as other:
        given = {"name": "team", "language": "en", "url": other.url, "format": "discord"}
        as_olga.post(reverse("notifications:edit_webhook", args=[webhook.pk]), given)
        notify()

        assert len(other.bodies) == 1
    assert not chat.bodies
    assert Webhook.objects.get().format == "slack"


@pytest.mark.parametrize(
    "path",
    [
        "/bot1:A/sendMessage",
        "/bot1:A/getUpdates?chat_id=1",
        "/sendMessage?chat_id=1",
        "/bot1:A/sendMessage?chat_id=",
    ],
)
def test_a_telegram_address_says_which_bot_and_which_chat(as_olga: Client, path: str) -> None:
    given = {"name": "x", "format": "telegram", "language": "en"}
    url = f"https://api.telegram.org{path}"

    page = as_olga.post(reverse("notifications:add_webhook"), {**given, "url": url})

    assert "/sendMessage?chat_id=&lt;chat&gt;" in page.text
    assert not Webhook.objects.exists()


@pytest.mark.long
@EVERY
def test_private_networks_are_refused_for_chats_too(
    kind: str, as_olga: Client, settings: Any
) -> None:
    settings.UPSTREAM_NETWORKS = []
    given = {"name": "x", "format": kind, "language": "en"}

    for host in ("https://10.0.0.1", "http://chat.example.org", "https://me:pass@example.org"):
        url = f"{host}{CHATS[kind]().path}"
        page = as_olga.post(reverse("notifications:add_webhook"), {**given, "url": url})
        assert page.text.count('class="error"') == 1
    assert not Webhook.objects.exists()
