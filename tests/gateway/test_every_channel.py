"""One call on its whole way, with an agent, the console and a worker as they run: in every channel
people are asked, reminded and told who decided, each by the real far end of its protocol."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp
import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from approvals.models import Approval
from audit.models import Entry
from calls.record.states import State
from config.embedded.service import wait_until
from notifications import devices, push_keys, subscriptions
from notifications.models import Delivery, Webhook
from notifications.services import add_webhook
from policies.models import Effect
from registry.models import Toolset
from tests.conftest import person
from tests.database import Databases
from tests.gateway.agent import TASKS, Agent
from tests.gateway.conftest import Play, add_rule
from tests.gateway.test_hung import Person
from tests.notifications.chats import CHATS, Chat, chat_server
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService, push_service
from tests.notifications.receivers import Hook, Mailbox, mail_server, text_of, webhook_receiver
from tests.notifications.slack_server import SlackServer, slack_server
from tests.notifications.test_chats import form, read
from tests.notifications.test_push import FIREFOX
from tests.notifications.test_slack_app import FORM, texts
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

CHANNELS = ("email", "push", "ledger", "approvals", *CHATS)
STAGES = ("approval.needed", "approval.reminder", "approval.decided")
# Longer than a machine that is busy takes for ten messages.
SOON_S = 60


@dataclass
class FarEnds:
    """The servers that messages end at, in the order of CHANNELS."""

    mailbox: Mailbox
    mail_port: int
    push: PushService
    hook: Hook
    slack: SlackServer
    chats: dict[str, Chat]


@pytest.fixture
def ends(settings: Any) -> Iterator[FarEnds]:
    settings.UPSTREAM_NETWORKS, settings.PUSH_HOSTS = ["127.0.0.0/8"], ["127.0.0.1"]
    with ExitStack() as stack:
        made = FarEnds(
            *stack.enter_context(mail_server()),
            stack.enter_context(push_service()),
            stack.enter_context(webhook_receiver()),
            stack.enter_context(slack_server()),
            {kind: stack.enter_context(chat_server(kind)) for kind in CHATS},
        )
        settings.SLACK_API_URL = made.slack.url
        yield made
        assert made.slack.faults == []
        assert [fault for chat in made.chats.values() for fault in chat.faults] == []


@pytest.fixture
def house(own_stack: Stack, stack: Stack, ends: FarEnds) -> Stack:
    # It would send from elsewhere.
    stack.end_worker()
    own_stack.env |= {
        "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
        "COUNTERSIGN_PUSH_HOSTS": "127.0.0.1",
        "COUNTERSIGN_SLACK_API_URL": ends.slack.url,
        "EMAIL_URL": f"smtp://127.0.0.1:{ends.mail_port}",
    }
    return own_stack


@pytest.fixture
def carol(toolset: Toolset, ends: FarEnds) -> User:
    """May decide, has an address and a device, and leaves the decision to alice."""
    carol = reader(person("carol", Role.APPROVER))
    ends.push.key = push_keys.public_key()
    given = subscriptions.read(ends.push.subscription())
    devices.add(carol, given, user_agent=FIREFOX)
    devices.set_events(carol, list(STAGES))
    return carol


@pytest.fixture
def rooms(toolset: Toolset, ends: FarEnds) -> None:
    """A program, and every chat."""
    olga = person("olga", Role.ADMINISTRATOR)
    ledger = Webhook(name="ledger", url=ends.hook.url, events=list(STAGES))
    ends.hook.secrets = [add_webhook(ledger, by=olga)]
    client = Client()
    client.force_login(olga)
    for kind, chat in ends.chats.items():
        given = {**form(kind, chat, name=kind), "events": STAGES}
        client.post(reverse("notifications:add_webhook"), given)
    client.post(reverse("notifications:add_slack_app"), {**FORM, "events": STAGES})
    assert Webhook.objects.count() == len(CHANNELS) - 2


@pytest.fixture
def agent(play: Play, house: Stack, carol: User, rooms: None) -> Agent:
    add_rule(Effect.ASK, "erase", reason="It erases.")
    assert house.agents
    assert house.worker
    return play(at_stack=house, capabilities=TASKS)


@pytest.fixture
def clock(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    """Moves what the application's own role may not."""
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


def delivered(stage: str) -> list[str]:
    """The channels that got the message, and nothing else of that stage."""
    found = Delivery.objects.filter(event=stage).select_related("webhook")
    assert {one.state for one in found} <= {"pending", "sent"}, [one.error for one in found]
    sent = [one for one in found if one.state == "sent"]
    return sorted(one.webhook.name if one.webhook else one.channel for one in sent)


def arrives(stage: str) -> bool:
    return wait_until(lambda: delivered(stage) == sorted(CHANNELS), seconds=SOON_S)


async def test_a_call_is_asked_for_reminded_of_and_decided_in_every_channel(
    agent: Agent,
    house: Stack,
    ends: FarEnds,
    clock: psycopg.Connection[Any],
    http: aiohttp.ClientSession,
    alice: User,
    upstream: Recorder,
) -> None:
    reply = await agent.call("rec.erase", {"path": "/tmp/old"})
    call = UUID(reply.result["_meta"]["countersign/call"])
    assert await sync_to_async(arrives)("approval.needed")

    clock.execute(
        "UPDATE approvals_approval SET asked_at = asked_at - interval '50 min',"
        " decide_by = decide_by - interval '50 min'"
    )
    assert await sync_to_async(arrives)("approval.reminder")

    assert await pressed(house, http, alice, call) < 400
    assert await sync_to_async(arrives)("approval.decided")
    assert await sync_to_async(wait_until)(
        lambda: Approval.objects.filter(pk=call, call__state=State.SUCCEEDED).exists(),
        seconds=SOON_S,
    )
    assert len(upstream.calls) == 1
    await sync_to_async(check)(ends, call)


async def pressed(house: Stack, http: aiohttp.ClientSession, alice: User, call: UUID) -> int:
    """alice approves on the page."""
    assert await sync_to_async(lambda: house.web)()
    client = Client()
    await sync_to_async(client.force_login)(alice)
    window = Person(http, house.web_url, client.cookies["sessionid"].value)
    approval = await Approval.objects.select_related("call").aget(pk=call)
    path = reverse("approvals:approve", args=[call])
    status, _page = await window.press(path, seen=approval.call.call_digest)
    return status


def check(ends: FarEnds, call: UUID) -> None:
    """What each far end has in the end, and that each message is an entry."""
    check_mail(ends.mailbox)
    assert [one["kind"] for one in ends.push.messages] == list(STAGES)
    assert {one["about"] for one in ends.push.messages} == {call.hex}
    assert [body["type"] for _id, body in ends.hook.requests] == list(STAGES)
    assert {body["data"]["call"] for _id, body in ends.hook.requests} == {str(call)}
    check_slack_app(ends.slack)
    for chat in ends.chats.values():
        check_chat([re.sub(r"[`*]", "", read(body)) for body in chat.bodies])
    (first, *later) = ends.chats["telegram"].bodies
    assert "reply_parameters" not in first
    assert [one["reply_parameters"]["message_id"] for one in later] == [1, 1]
    sent = Entry.objects.filter(action="notification.sent", call_id=call)
    counted = Counter(sent.values_list("details__event", flat=True))
    assert counted == dict.fromkeys(STAGES, len(CHANNELS))


def check_mail(mailbox: Mailbox) -> None:
    assert mailbox.recipients == ["carol@example.org"] * 3
    words = ["It erases.", "about to expire", "Approved by alice."]
    for word, message in zip(words, mailbox.messages, strict=True):
        assert word in text_of(message)
        assert word in text_of(message, "html")
    assert len({one["In-Reply-To"] for one in mailbox.messages}) == 1


def check_slack_app(slack: SlackServer) -> None:
    """One message, updated; the reminder answers to it."""
    methods = [name for name, _body in slack.calls]
    assert methods[-3:] == ["chat.postMessage", "chat.postMessage", "chat.update"]
    (at, message), (_later, reminder) = slack.messages.items()
    assert reminder["thread_ts"] == at[1]
    assert "`alice` approved `rec.erase` for `scout`." in texts(message)
    assert set(slack.buttons(message)) == {"open"}


def check_chat(messages: list[str]) -> None:
    words = ["scout asks for approval of rec.erase.", "about to expire", "alice approved rec.erase"]
    for word, message in zip(words, messages, strict=True):
        assert word in message
