"""A Slack app: one message for each call, updated with what became of it; denying and commenting
by people who linked their account, and every way in which nobody else can."""

import json
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from textwrap import indent
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.core import serializers
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import editing, freezes
from approvals.editing import Edit
from approvals.models import Approval, Comment, Vote
from approvals.services import cancel, expire, vote
from approvals.widening import widen
from audit.models import Entry
from calls.record.states import State
from notifications import slack_signatures
from notifications.cursor import read_entries
from notifications.deliveries import create_reminders
from notifications.models import ChatAccount, Delivery, SlackApp, SlackRequest, Webhook
from notifications.sending import send_due
from notifications.slack_manifest import manifest
from policies.thresholds import StepUp, Threshold
from registry.models import Tool
from tests.console import scenery
from tests.notifications.receivers import links_to
from tests.notifications.slack_server import (
    CHANNEL,
    SECRET,
    TEAM,
    TOKEN,
    SlackServer,
    signed,
    slack_server,
)
from tests.notifications.test_chats import HOSTILE

pytestmark = pytest.mark.django_db
URL = "/slack/"
FORM = {
    "name": "approvals",
    "language": "en",
    "token": TOKEN,
    "signing_secret": SECRET,
    "channel": CHANNEL,
}


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackServer]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with slack_server() as slack:
        settings.SLACK_API_URL = slack.url
        yield slack
        assert slack.faults == []


@pytest.fixture
def app(slack: SlackServer, as_olga: Client, send_mail: Tool) -> SlackApp:
    """Added as people add it, with both buttons."""
    given = {**FORM, "takes_denials": "on", "takes_comments": "on"}
    page = as_olga.post(reverse("notifications:add_slack_app"), given, follow=True)
    assert "“approvals” is saved." in page.text
    return SlackApp.objects.get()


@pytest.fixture
def asked(app: SlackApp, slack: SlackServer, held: UUID) -> tuple[str, str]:
    """The message that asks, by channel and time."""
    notify()
    ((at, _message),) = slack.messages.items()
    return at


def notify() -> None:
    read_entries()
    send_due()


def due_now() -> None:
    Delivery.objects.pending().update(next_at=timezone.now() - timedelta(seconds=1))


def sent(body: bytes, **more: Any) -> Any:
    """What Slack sends, signed unless headers are given."""
    headers = more.pop("headers", None) or signed(body, **more)
    kind = "application/json" if body.startswith(b"{") else "application/x-www-form-urlencoded"
    return Client().post(URL, body, content_type=kind, headers=headers)


def link(slack: SlackServer, person: User, user: str) -> ChatAccount:
    """As a person links an account: a code, the command in Slack, and the link in its answer."""
    client = Client()
    client.force_login(person)
    said = sent(slack.command(user, f"link {code_for(client)}")).json()
    assert said["response_type"] == "ephemeral"
    there = said["text"].partition("<")[2].partition("|")[0].partition("/profile/")
    path = "".join(there[1:])
    assert user.lower() in client.get(path).text
    assert f"{user.lower()} in Acme is linked." in client.post(path, follow=True).text
    return ChatAccount.objects.linked().get(user_id=user)


def code_for(client: Client) -> str:
    page = client.post(reverse("notifications:link_chat")).text
    return page.partition("/countersign link ")[2].partition("<")[0]


def window(slack: SlackServer, body: bytes, **more: Any) -> dict[str, Any]:
    """The window that opens after a press."""
    answer = sent(body, **more)
    assert (answer.status_code, answer.content) == (200, b"")
    assert slack.window_opened.wait(10)
    return slack.windows[-1]


def read(view: dict[str, Any]) -> str:
    return "\n".join(one["text"]["text"] for one in view["blocks"] if one["type"] == "section")


def refusal(slack: SlackServer, body: bytes, why: str, **more: Any) -> Entry:
    """A press that does nothing, says why and is recorded."""
    said = read(window(slack, body, **more))
    assert why in said
    assert "<http" in said
    nothing_happened()
    entry = Entry.objects.filter(action="slack.refused").latest("pk")
    assert why in entry.reason
    return entry


def nothing_happened() -> None:
    assert not Vote.objects.filter(approve=False, person__username="alice").exists()
    assert not Comment.objects.exists()


def decide(held: UUID, by: User, *, approve: bool, reason: str = "") -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    vote(approval, by=by, approve=approve, seen_digest=approval.call.call_digest, reason=reason)


def state(held: UUID) -> str:
    return Approval.objects.get(pk=held).call.state


def texts(message: dict[str, Any]) -> str:
    """All mark-up of a message's sections, and its fallback."""
    sections = [one for one in message["blocks"] if one["type"] == "section"]
    found = [text for one in sections for text in one.get("fields", [one.get("text")])]
    return "\n".join([message["text"], *(one["text"] for one in found)])


def test_the_message_asks_with_a_link_and_with_the_buttons_that_are_switched_on(
    asked: tuple[str, str], slack: SlackServer, held: UUID
) -> None:
    message = slack.messages[asked]

    buttons = slack.buttons(message)
    assert [one["text"]["text"] for one in buttons.values()] == [
        "Open and approve",
        "Deny",
        "Comment",
    ]
    assert links_to(f"/queue/{held}/", buttons["open"]["url"])
    assert "`scout` asks for approval of `mailer.send_mail`." in texts(message)
    sent_all = json.dumps(slack.calls)
    for value in ("ana@example.org", "Minutes", "attached", '"Approve"'):
        assert value not in sent_all
    assert Delivery.objects.get().receipt == " ".join(asked)


def test_without_switches_there_is_nothing_to_press_but_the_link(
    app: SlackApp, slack: SlackServer, held: UUID
) -> None:
    SlackApp.objects.update(takes_denials=False, takes_comments=False)
    notify()

    (message,) = slack.messages.values()
    assert set(slack.buttons(message)) == {"open"}


@pytest.mark.long
@pytest.mark.parametrize("act", ["deny", "comment"])
def test_a_nul_in_a_text_or_a_name_is_a_bad_request(
    asked: tuple[str, str], slack: SlackServer, alice: User, act: str
) -> None:
    link(slack, alice, "U0ALICE")
    window(slack, slack.press(asked, act, "U0ALICE"))

    assert sent(slack.submit("U0ALICE", "a\0b")).status_code == 400
    assert sent(slack.command("U0\0", "link ABC")).status_code == 400
    nothing_happened()
    # Once for its address.
    failed = Entry.objects.get(action="slack.failed")
    assert failed.reason == "A text of the request has a NUL character."


@pytest.mark.long
@pytest.mark.parametrize("end", ["approved", "denied", "expired", "withdrawn"])
def test_the_message_is_updated_in_place_and_its_buttons_are_gone(
    end: str, asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User, scout: Agent
) -> None:
    Webhook.objects.update(events=["approval.needed"])
    match end:
        case "approved" | "denied":
            decide(held, alice, approve=end == "approved", reason="Not today.")
        case "expired":
            Approval.objects.update(decide_by=timezone.now())
            expire()
        case "withdrawn":
            assert cancel(held, by=scout.actor)
    notify()

    assert list(slack.messages) == [asked]
    message = slack.messages[asked]
    assert {
        "approved": "`alice` approved `mailer.send_mail` for `scout`.",
        "denied": "`alice` denied `mailer.send_mail` for `scout`.",
        "expired": "Nobody decided in time: `mailer.send_mail` for `scout` expired.",
        "withdrawn": "`scout` withdrew `mailer.send_mail` for `scout`.",
    }[end] in texts(message)
    assert [one["text"]["text"] for one in slack.buttons(message).values()] == ["Open the call"]
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_a_reminder_answers_in_the_thread_and_in_the_channel(
    asked: tuple[str, str], slack: SlackServer, held: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifications.deliveries.REMIND_SHARE", 1)
    Approval.objects.update(decide_by=timezone.now() + timedelta(minutes=5))
    assert create_reminders() == 1
    send_due()

    reminder = slack.calls[-1][1]
    assert reminder["thread_ts"] == asked[1]
    assert reminder["reply_broadcast"] is True
    assert set(slack.buttons(reminder)) == {"open"}


def test_others_who_may_decide_later_are_named_in_the_thread(
    app: SlackApp, slack: SlackServer, scout: Agent, send_mail: Tool, alice: User, cursor: None
) -> None:
    scenery.person("lena", Role.APPROVER).groups.add(Group.objects.create(name="leads"))
    asked = (Threshold(source="person:alice"), Threshold(source="group:leads", after_min=15))
    late = scenery.call(
        scout, send_mail, scenery.MAIL, State.HELD, thresholds=asked, pending_min=15
    )
    notify()
    first = slack.calls[-1][1]
    assert {"open", "deny"} <= set(slack.buttons(first))

    widen()
    notify()

    second = slack.calls[-1][1]
    assert "Others may decide" in texts(second)
    assert "so its rule lets others decide too: 1 approval of leads" in texts(second)
    assert second["reply_broadcast"] is True
    # A decision locks the first one's alone.
    assert set(slack.buttons(second)) == {"open"}
    decide(late, alice, approve=False)
    notify()
    assert slack.calls[-1][0] == "chat.update"
    assert "deny" not in slack.buttons(slack.calls[-1][1])


def test_what_was_decided_while_the_message_is_being_sent_waits_for_it(
    app: SlackApp, slack: SlackServer, held: UUID, alice: User
) -> None:
    """As after a kill between sending and writing that down."""
    read_entries()
    Delivery.objects.update(attempts=1, next_at=timezone.now() + timedelta(minutes=2))
    decide(held, alice, approve=False)
    notify()

    assert not slack.messages
    later = Delivery.objects.get(event="approval.decided")
    assert (later.state, later.error) == ("pending", "The message that asks is being sent.")
    due_now()
    send_due()
    due_now()
    send_due()

    (message,) = slack.messages.values()
    assert "`alice` denied" in texts(message)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"dropped", "sent"}


@pytest.mark.long
def test_an_answer_to_a_message_that_is_gone_is_another_message(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    slack.messages.clear()
    decide(held, alice, approve=True)
    read_entries()
    Delivery.objects.filter(event="approval.needed").update(receipt=f"{CHANNEL} 1.1")
    # Slack has no thread either: it posts in the channel.
    slack.messages[CHANNEL, "1.1"] = {"blocks": [], "text": ""}
    original = slack.chat_update

    def gone(body: dict[str, Any]) -> dict[str, Any]:
        raise KeyError

    slack.chat_update = gone  # type: ignore[method-assign]
    send_due()
    slack.chat_update = original  # type: ignore[method-assign]

    assert any("`alice` approved" in texts(one) for one in slack.messages.values() if one["blocks"])


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text_and_no_mention_or_link(
    app: SlackApp, slack: SlackServer, bob: User, send_mail: Tool, name: str, cursor: None
) -> None:
    agent = Agent.objects.create(name=name, owner=bob)
    scenery.call(agent, send_mail, scenery.MAIL, State.HELD)
    notify()

    (message,) = slack.messages.values()
    said = texts(message)
    assert "<" not in said
    assert ">" not in said
    assert "``" not in said
    assert "\u202e" not in said


@pytest.mark.long
def test_slacks_error_is_on_the_page_and_too_many_are_waited_out(
    app: SlackApp, slack: SlackServer, held: UUID
) -> None:
    slack.error = "not_in_channel"
    notify()
    assert Delivery.objects.get().error == "Slack answered: not_in_channel."
    slack.refusal = (429, {"Retry-After": "600"})
    due_now()
    send_due()
    assert (Delivery.objects.get().next_at - timezone.now()).total_seconds() > 500
    slack.error, slack.refusal = "", None
    due_now()
    send_due()

    assert Delivery.objects.get().state == "sent"


def test_the_test_message_arrives(app: SlackApp, slack: SlackServer, as_olga: Client) -> None:
    as_olga.post(reverse("notifications:test_webhook", args=[app.pk]))
    send_due()

    (message,) = slack.messages.values()
    assert "This is a test message" in texts(message)


@pytest.mark.long
def test_a_linked_person_denies_with_a_reason(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")

    opened = window(slack, slack.press(asked, "deny", "U0ALICE"))
    assert opened["submit"]["text"] == "Deny"
    answer = sent(slack.submit("U0ALICE", "Not <today>.")).json()

    assert answer["response_action"] == "update"
    assert "Your denial is recorded." in read(answer["view"])
    assert state(held) == State.DENIED
    entry = Entry.objects.get(action="approval.voted")
    assert (entry.actor, entry.reason) == ("alice", "Not <today>.")
    message = Delivery.objects.get(event="approval.needed")
    assert entry.details["via"] == f"slack {TEAM} U0ALICE {message.pk}"
    notify()
    joined = Entry.objects.get(action="notification.acted")
    assert (joined.actor, joined.details["webhook"]) == ("alice", str(message.webhook))
    assert joined.details["delivery"] == str(message.pk)
    assert "`Not &lt;today&gt;.`" in texts(slack.messages[asked]).replace("Denied by alice. ", "")


@pytest.mark.long
def test_a_linked_person_comments(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")

    window(slack, slack.press(asked, "comment", "U0ALICE"))
    answer = sent(slack.submit("U0ALICE", "Who is Ana?")).json()

    assert "Your comment is recorded." in read(answer["view"])
    assert Comment.objects.get().text == "Who is Ana?"
    assert Entry.objects.get(action="approval.comment").details["via"].startswith("slack ")
    assert state(held) == State.HELD


@pytest.mark.long
def test_no_press_approves(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    slack.buttons(slack.messages[asked])["open"]["action_id"] = "approve"

    assert sent(slack.press(asked, "approve", "U0ALICE")).status_code == 200
    window_of = {"callback_id": "approve", "private_metadata": "x", "blocks": []}
    slack.windows.append(window_of)
    assert sent(slack.submit("U0ALICE", "")).content == b""

    assert state(held) == State.HELD
    assert not Vote.objects.exists()
    press, text = Entry.objects.filter(action="slack.refused").order_by("pk")
    assert (press.actor, press.call_id, text.call_id) == ("alice", held, None)
    for entry in (press, text):
        assert "denials and comments, and nothing else" in entry.reason
        assert entry.details["act"] == "approve"


@pytest.mark.long
@pytest.mark.parametrize("change", [{"actions": []}, {"trigger_id": None}, {"type": "shortcut"}])
def test_a_press_that_is_not_whole_does_nothing(
    change: dict[str, Any], asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")

    assert sent(slack.press(asked, "deny", "U0ALICE", **change)).content == b""

    assert state(held) == State.HELD
    nothing_happened()


@pytest.mark.long
def test_a_press_on_the_link_is_not_recorded(asked: tuple[str, str], slack: SlackServer) -> None:
    assert sent(slack.press(asked, "open", "U0ALICE")).content == b""

    assert not Entry.objects.filter(action="slack.refused").exists()


def forged(body: bytes) -> dict[str, str]:
    return signed(body, secret="of somebody else")


def old(body: bytes) -> dict[str, str]:
    return signed(body, age_s=301)


def of_the_future(body: bytes) -> dict[str, str]:
    return signed(body, age_s=-330)


def unsigned(_body: bytes) -> dict[str, str]:
    return {}


def of_another_body(body: bytes) -> dict[str, str]:
    return signed(body + b"&x=1")


def with_another_time(body: bytes) -> dict[str, str]:
    late = signed(body, age_s=3000)
    return late | {"X-Slack-Request-Timestamp": signed(body)["X-Slack-Request-Timestamp"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("headers", "why"),
    [
        (forged, "not by the signing secret"),
        (of_another_body, "not by the signing secret"),
        (with_another_time, "not by the signing secret"),
        (old, "more than five minutes ago"),
        (of_the_future, "more than five minutes ago"),
        (unsigned, "has no signature"),
    ],
)
def test_what_slack_did_not_sign_just_now_is_refused_and_recorded(
    headers: Any, why: str, asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    body = slack.press(asked, "deny", "U0ALICE")

    answer = sent(body, headers=headers(body) or {"X-Nothing": "1"})

    assert answer.status_code == 401
    assert why in Entry.objects.get(action="slack.failed").reason
    assert not slack.windows
    assert state(held) == State.HELD


@pytest.mark.long
def test_a_replay_is_refused_and_recorded(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    window(slack, slack.press(asked, "comment", "U0ALICE"))
    body = slack.submit("U0ALICE", "Once.")
    headers = signed(body)

    assert sent(body, headers=headers).status_code == 200
    assert sent(body, headers=headers).status_code == 401

    assert Comment.objects.count() == 1
    assert "replay" in Entry.objects.get(action="slack.failed").reason


def test_signatures_are_kept_no_longer_than_they_are_accepted(
    asked: tuple[str, str], slack: SlackServer
) -> None:
    SlackRequest.objects.create(signature="v0=old", at=timezone.now() - slack_signatures.KEPT * 2)

    sent(b'{"type": "url_verification", "challenge": "3eZbrw1aB1"}')

    assert SlackRequest.objects.count() == 1


@pytest.mark.long
def test_forged_requests_do_not_flood_the_record(
    asked: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.attempts.OF_ADDRESS", 3)

    said = [sent(b"payload=%7B%7D", headers=forged(b"x")).status_code for _n in range(6)]

    assert said == [401, 401, 401, 429, 429, 429]
    assert Entry.objects.filter(action="slack.failed").count() == 3


def test_a_request_that_is_too_large_is_recorded_like_a_forged_one(asked: tuple[str, str]) -> None:
    body = b"payload=" + b"x" * 3_000_000

    assert sent(body, headers=forged(body)).status_code == 401

    assert "too large" in Entry.objects.get(action="slack.failed").reason


def test_the_address_is_verified_by_its_challenge_if_it_is_signed(app: SlackApp) -> None:
    body = b'{"token": "x", "challenge": "3eZbrw1aB1", "type": "url_verification"}'

    assert sent(body).json() == {"challenge": "3eZbrw1aB1"}
    assert sent(body, headers=forged(body)).status_code == 401


@pytest.mark.long
@pytest.mark.parametrize("method", ["get", "head", "put", "options"])
def test_a_scanner_that_visits_the_address_is_recorded_and_cannot_flood_the_record(
    app: SlackApp, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _time in range(5):
        assert getattr(Client(), method)(URL).status_code == 405

    entry = Entry.objects.get(action="slack.failed")
    assert f"this was {method.upper()}" in entry.reason
    assert entry.details["address"] == "127.0.0.1"
    # Nor can a crowd of them.
    monkeypatch.setattr("accounts.attempts.OF_VISITS", 2)
    for n in range(9):
        Client(REMOTE_ADDR=f"192.0.2.{n}").get(URL)
    assert Entry.objects.filter(action="slack.failed").count() == 2
    # What Slack signs is taken all the same.
    assert sent(b'{"type": "url_verification", "challenge": "3eZb"}').status_code == 200


@pytest.mark.long
def test_a_user_of_another_workspace_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    """Of a shared channel: Slack says whose user it is."""
    link(slack, alice, "U0ALICE")
    foreign = {"id": "U0ALICE", "username": "alice", "name": "alice", "team_id": "T0OTHER"}

    refusal(slack, slack.press(asked, "deny", "U0ALICE", user=foreign), "another Slack workspace")
    elsewhere = {"id": "T0OTHER", "domain": "other"}
    refusal(slack, slack.press(asked, "deny", "U0ALICE", team=elsewhere), "another Slack workspace")


def test_somebody_who_linked_no_account_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    entry = refusal(slack, slack.press(asked, "deny", "U0ALICE"), "linked to no user")

    assert entry.actor_kind == "system"
    assert entry.details["slack_user"] == "U0ALICE"


@pytest.mark.long
def test_an_account_that_is_unlinked_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    account = link(slack, alice, "U0ALICE")
    client = Client()
    client.force_login(alice)
    client.post(reverse("notifications:unlink_chat", args=[account.pk]))

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "linked to no user")
    assert Entry.objects.filter(action="chat_account.unlinked", actor="alice").exists()


@pytest.mark.long
def test_somebody_without_the_right_is_refused(
    asked: tuple[str, str], slack: SlackServer, mallory: User
) -> None:
    link(slack, mallory, "U0MALLORY")

    entry = refusal(slack, slack.press(asked, "deny", "U0MALLORY"), "not among those who decide")

    assert entry.actor == "mallory"
    assert str(entry.call_id)


@pytest.mark.long
def test_a_disabled_person_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    User.objects.filter(pk=alice.pk).update(is_active=False)

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "disabled")


@pytest.mark.long
def test_somebody_who_lacks_a_second_factor_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link(slack, alice, "U0ALICE")
    monkeypatch.setattr(User, "is_factor_required", True)

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "second factor")


@pytest.mark.long
def test_the_owner_of_the_agent_is_refused(
    asked: tuple[str, str], slack: SlackServer, bob: User
) -> None:
    link(slack, bob, "U0BOB")

    refusal(slack, slack.press(asked, "deny", "U0BOB"), "The agent is yours")
    refusal(slack, slack.press(asked, "comment", "U0BOB"), "The agent is yours")
    assert not Vote.objects.exists()


@pytest.mark.long
def test_a_call_that_was_changed_since_the_message_is_refused(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    carol = scenery.person("carol", Role.APPROVER)
    approval = Approval.objects.for_queue().get(pk=held)
    changed = json.dumps({**scenery.MAIL, "subject": "Another"}).encode()
    editing.edit(approval, Edit(approval.call.call_digest, changed, ""), by=carol)

    entry = refusal(slack, slack.press(asked, "deny", "U0ALICE"), "changed since this message")
    assert entry.call_id == held


@pytest.mark.long
def test_what_changes_between_the_press_and_the_text_is_refused_too(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    window(slack, slack.press(asked, "deny", "U0ALICE"))
    assert slack.windows[-1]["callback_id"] == "deny"
    carol = scenery.person("carol", Role.APPROVER)
    approval = Approval.objects.for_queue().get(pk=held)
    changed = json.dumps({**scenery.MAIL, "subject": "Another"}).encode()
    editing.edit(approval, Edit(approval.call.call_digest, changed, ""), by=carol)

    answer = sent(slack.submit("U0ALICE", "No.")).json()

    assert "changed since this message" in read(answer["view"])
    assert Entry.objects.filter(action="slack.refused").exists()
    nothing_happened()


@pytest.mark.long
def test_a_call_that_is_decided_is_refused(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    """Pressed on a message that Slack has not redrawn yet."""
    link(slack, alice, "U0ALICE")
    body = slack.press(asked, "deny", "U0ALICE")
    decide(held, scenery.person("carol", Role.APPROVER), approve=True)

    refusal(slack, body, "carol answered first")
    assert state(held) == State.QUEUED


@pytest.mark.long
@pytest.mark.parametrize("step_up", [StepUp.PASSKEY, StepUp.TOTP])
def test_a_call_that_demands_a_passkey_has_no_buttons_and_a_press_is_refused(
    step_up: StepUp, app: SlackApp, slack: SlackServer, scout: Agent, send_mail: Tool,
    alice: User, cursor: None
) -> None:  # fmt: skip
    thresholds = (Threshold(step_up=step_up),)
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=thresholds)
    notify()
    ((at, message),) = slack.messages.items()
    assert set(slack.buttons(message)) == {"open"}
    link(slack, alice, "U0ALICE")
    # As an old message might have it, from before the rule asked for it.
    digest = Approval.objects.get(pk=call_id).call.call_digest
    button = slack.buttons(message)["open"]
    button |= {"action_id": "deny", "value": f"{Delivery.objects.get().pk} {digest}"}

    refusal(slack, slack.press(at, "deny", "U0ALICE"), "passkey or a code")
    assert state(call_id) == State.HELD


@pytest.mark.long
def test_what_was_switched_off_since_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    SlackApp.objects.update(takes_denials=False)

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "does not take that")


@pytest.mark.long
@pytest.mark.parametrize("value", ["", "x y", f"{UUID(int=7)} {'0' * 64}"])
def test_a_button_that_is_not_ours_is_refused(
    value: str, asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    slack.buttons(slack.messages[asked])["deny"]["value"] = value

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "about no call here")


@pytest.mark.long
def test_a_button_in_another_message_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    slack.messages["C0OTHER", "1.1"] = slack.messages[asked]

    refusal(slack, slack.press(("C0OTHER", "1.1"), "deny", "U0ALICE"), "not the message")


@pytest.mark.long
def test_a_button_of_another_app_is_refused(
    asked: tuple[str, str], slack: SlackServer, alice: User, as_olga: Client
) -> None:
    """Signed by the secret of one app, about a message of the other."""
    other = {**FORM, "name": "other", "signing_secret": "f" * 32, "takes_denials": "on"}
    as_olga.post(reverse("notifications:add_slack_app"), other)
    link(slack, alice, "U0ALICE")

    refusal(slack, slack.press(asked, "deny", "U0ALICE"), "in another app", secret="f" * 32)


def test_an_app_in_several_workspaces_opens_its_window_in_that_of_the_press(
    asked: tuple[str, str], app: SlackApp, slack: SlackServer, alice: User, as_olga: Client
) -> None:
    """One signing secret, and a token for each workspace."""
    slack.team = "T0000ELSE"
    as_olga.post(reverse("notifications:add_slack_app"), {**FORM, "name": "elsewhere"})
    slack.team = TEAM
    elsewhere = SlackApp.objects.exclude(pk=app.pk)
    assert elsewhere.update(sealed_token=b"of no use here") == 1
    # From now on it is the second one.
    SlackApp.objects.filter(pk=app.pk).update(channel=CHANNEL)
    link(slack, alice, "U0ALICE")

    assert "input" in str(window(slack, slack.press(asked, "deny", "U0ALICE")))


@pytest.mark.long
def test_another_apps_secret_speaks_for_nobody_who_linked_here(
    app: SlackApp, slack: SlackServer, alice: User, as_olga: Client, held: UUID
) -> None:
    """Whoever may change webhooks knows the secret that they set."""
    link(slack, alice, "U1")
    own = "0" * 32
    given = {**FORM, "token": "", "signing_secret": own, "takes_denials": "on"}
    as_olga.post(reverse("notifications:edit_slack_app", args=[app.webhook_id]), given)
    notify()
    (at,) = slack.messages

    body = slack.press(at, "deny", "U1")
    entry = refusal(slack, body, "its signing secret was changed", secret=own)

    assert entry.actor != "alice"
    assert state(held) == State.HELD


def test_a_link_that_was_forwarded_links_nobody(
    app: SlackApp, slack: SlackServer, alice: User, mallory: User
) -> None:
    """mallory began it; alice typed the code, or follows the link: neither links her account."""
    client, theirs = Client(), Client()
    client.force_login(alice)
    theirs.force_login(mallory)
    said = sent(slack.command("U0ALICE", f"link {code_for(theirs)}")).json()["text"]
    path = "/profile/" + said.partition("/profile/")[2].partition("|")[0]

    for answer in (client.get(path, follow=True), client.post(path, follow=True)):
        assert "created for another account" in answer.text

    assert not ChatAccount.objects.linked().exists()
    refused = Entry.objects.filter(action="chat_account.refused", actor="alice")
    assert {one.details["person"] for one in refused} == {"mallory"}


def test_hidden_characters_of_a_name_in_slack_are_spelled_out(
    app: SlackApp, slack: SlackServer, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    command = slack.command("U0ALICE", f"link {code_for(client)}", user_name="alice\u202etxt")
    path = "/profile/" + sent(command).json()["text"].partition("/profile/")[2].partition("|")[0]

    for page in (client.get(path), client.post(path), client.get("/profile/notifications/")):
        assert "alice\u202e" not in page.text
    assert "U+202E" in page.text


def test_a_scanner_of_the_link_links_nothing_and_is_noted_once(
    app: SlackApp, slack: SlackServer, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    said = sent(slack.command("U0ALICE", f"link {code_for(client)}")).json()["text"]
    path = "/profile/" + said.partition("/profile/")[2].partition("|")[0]

    for _time in range(3):
        assert Client().get(path).status_code == 302
        assert Client().get(f"{path[:-2]}x/").status_code == 302

    entry = Entry.objects.get(action="notification.unsigned")
    assert entry.details["person"] == "alice"
    assert not ChatAccount.objects.linked().exists()


def test_a_code_works_once_and_for_ten_minutes(
    app: SlackApp, slack: SlackServer, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    code = code_for(client)
    ChatAccount.objects.update(begun_at=timezone.now() - timedelta(minutes=11))
    late = sent(slack.command("U0ALICE", code))
    again = code_for(client)
    first = sent(slack.command("U0ALICE", f"link {again.lower()}")).json()["text"]
    second = sent(slack.command("U0MALLORY", again)).json()["text"]

    assert "not valid" in late.json()["text"]
    assert "One step is left" in first
    assert "not valid" in second
    assert ChatAccount.objects.get().user_id == "U0ALICE"
    assert Entry.objects.filter(action="chat_account.refused").count() == 2


@pytest.mark.long
def test_a_slack_account_is_one_persons_and_a_person_has_one_in_a_workspace(
    app: SlackApp, slack: SlackServer, alice: User, mallory: User
) -> None:
    link(slack, alice, "U0ALICE")
    client, theirs = Client(), Client()
    client.force_login(alice)
    theirs.force_login(mallory)

    assert "linked already" in sent(slack.command("U0ALICE", code_for(theirs))).json()["text"]
    said = sent(slack.command("U0SECOND", code_for(client))).json()["text"]
    path = "/profile/" + said.partition("/profile/")[2].partition("|")[0]
    assert "already" in client.post(path, follow=True).text

    assert ChatAccount.objects.linked().get().user_id == "U0ALICE"


def test_a_command_of_another_workspace_links_nothing(
    app: SlackApp, slack: SlackServer, alice: User
) -> None:
    client = Client()
    client.force_login(alice)

    said = sent(slack.command("U0ALICE", code_for(client), team_id="T0OTHER")).json()

    assert "another Slack workspace" in said["text"]
    assert ChatAccount.objects.get().user_id == ""


def test_nobody_unlinks_another_persons_account(
    app: SlackApp, slack: SlackServer, alice: User, mallory: User
) -> None:
    account = link(slack, alice, "U0ALICE")
    theirs = Client()
    theirs.force_login(mallory)

    answer = theirs.post(reverse("notifications:unlink_chat", args=[account.pk]))

    assert answer.status_code == 404
    assert ChatAccount.objects.linked().exists()


def test_the_secrets_are_on_no_page_in_no_log_entry_or_column(
    app: SlackApp, slack: SlackServer, held: UUID, as_olga: Client,
    caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    slack.error = "invalid_auth"
    notify()
    edit = reverse("notifications:edit_slack_app", args=[app.pk])
    pages = [
        as_olga.get("/notifications/").text,
        as_olga.get(reverse("notifications:webhook", args=[app.pk])).text,
        as_olga.get(edit).text,
        as_olga.post(edit, FORM).text,
    ]
    rows = serializers.serialize("json", [*SlackApp.objects.all(), *Delivery.objects.all()])
    entries = json.dumps(list(Entry.objects.values_list("details", flat=True)))
    for kept in (*pages, rows, entries, caplog.text):
        assert TOKEN not in kept
        assert SECRET not in kept
    assert "Slack answered: invalid_auth." in pages[3]


def test_a_change_keeps_the_secrets_that_are_left_empty(
    app: SlackApp, slack: SlackServer, held: UUID, as_olga: Client
) -> None:
    changed = {**FORM, "token": "", "signing_secret": "", "channel": "C0000NEW"}
    as_olga.post(reverse("notifications:edit_slack_app", args=[app.pk]), changed)
    notify()

    ((channel, _moment),) = slack.messages
    assert channel == "C0000NEW"
    entry = Entry.objects.get(action="webhook.changed")
    assert (entry.details["given"], entry.details["takes_denials"]) == ([], False)


@pytest.mark.parametrize("given", ["#approvals", " Approvals "])
def test_a_channel_is_given_by_its_name_and_kept_by_its_id(
    slack: SlackServer, held: UUID, as_olga: Client, alice: User, given: str
) -> None:
    as_olga.post(reverse("notifications:add_slack_app"), {**FORM, "channel": given})
    named = SlackApp.objects.get()
    assert named.channel == "#approvals"
    # Slack's pages go by IDs: until one is known the link leads to the workspace.
    assert named.webhook.url == f"https://app.slack.com/client/{named.team_id}/"
    notify()
    assert SlackApp.objects.get().channel == CHANNEL

    # Renamed meanwhile: what follows goes to the same channel and message.
    slack.names.clear()
    decide(held, alice, approve=True)
    notify()
    ((channel, _moment),) = slack.messages
    assert channel == CHANNEL
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}


def test_a_token_that_slack_does_not_know_and_what_is_no_channel_are_refused(
    slack: SlackServer, as_olga: Client
) -> None:
    add = reverse("notifications:add_slack_app")

    assert "Slack answered: invalid_auth." in as_olga.post(add, {**FORM, "token": "xoxb-1"}).text
    for wrong in ("two words", "#", "https://acme.slack.com/archives/C0000CHAN"):
        page = as_olga.post(add, {**FORM, "channel": wrong}).text
        assert "Enter a channel’s name or its ID" in page
    assert not Webhook.objects.exists()


def test_only_those_who_may_change_webhooks_add_one(
    slack: SlackServer, client: Client, alice: User
) -> None:
    client.force_login(alice)

    assert client.post(reverse("notifications:add_slack_app"), FORM).status_code == 403


def test_secrets_of_another_installation_open_nothing(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    SlackApp.objects.update(sealed_token=b"0" * 60, sealed_signing_secret=b"0" * 60)
    body = slack.press(asked, "deny", "U0ALICE")
    decide(held, alice, approve=True)
    notify()

    assert sent(body).status_code == 401
    dead = Delivery.objects.get(event="approval.decided")
    assert dead.error == "Its secrets cannot be opened here: enter them again."


def test_a_disabled_app_takes_nothing(
    asked: tuple[str, str], slack: SlackServer, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    Webhook.objects.update(enabled=False)

    assert sent(slack.press(asked, "deny", "U0ALICE")).status_code == 401


def test_the_manifest_of_the_page_is_the_one_of_the_guide(settings: Any) -> None:
    settings.PUBLIC_URL = "https://countersign.example.org"
    for language in ("en", "zh-hans"):
        guide = (settings.BASE_DIR / "docs" / language / "guides" / "notifications.md").read_text()
        assert indent(manifest(), "   ") in guide


def test_a_link_opens_the_form_of_slack_with_the_manifest(
    client: Client, django_user_model: type[User]
) -> None:
    client.force_login(django_user_model.objects.create_superuser("ada"))
    page = client.get("/new/slack-app/").content.decode()
    (link,) = re.findall(r'href="(https://api\.slack\.com/apps[^"]*)"', page)
    given = parse_qs(urlsplit(unescape(link)).query)
    assert "+" not in link
    assert given == {"new_app": ["1"], "manifest_yaml": [manifest()]}


@pytest.mark.long
def test_during_an_emergency_stop_a_message_offers_no_approval(
    app: SlackApp, slack: SlackServer, held: UUID, alice: User
) -> None:
    freezes.begin(by=alice, reason="Something is wrong.")

    notify()

    (said,) = [text for one in slack.messages.values() if "asks for" in (text := json.dumps(one))]
    assert "An emergency stop is in force: nothing can be approved until it ends." in said
    assert "Open the call" in said
    assert "Open and approve" not in said
    assert "Decide by" not in said
