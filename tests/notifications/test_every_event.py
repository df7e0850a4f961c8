"""Each event reaches mail, a device, a program and a chat, and each of that is an entry."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import role_changes
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval
from approvals.services import expire
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import State
from calls.record.transitions import Move, move_now
from notifications import deliveries, devices, expiring_tokens, push_keys, subscriptions
from notifications.deliveries import create_reminders
from notifications.events import CHOICES, Event
from notifications.models import Delivery, Webhook
from registry.models import Tool
from tests.console import scenery
from tests.notifications.chats import Chat, chat_server
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Hook, Mailbox
from tests.notifications.test_chats import form
from tests.notifications.test_mail import decide, due_now, notify
from tests.notifications.test_operating import expiring
from tests.notifications.test_push import FIREFOX, service

__all__ = ["service"]

pytestmark = pytest.mark.django_db


class Scene(NamedTuple):
    scout: Agent
    tool: Tool
    # Decides, operates and administers, and reads the audit log.
    ada: User
    alice: User

    def hold(self) -> Approval:
        pk = scenery.call(self.scout, self.tool, scenery.MAIL, State.HELD)
        return Approval.objects.for_queue().get(pk=pk)

    def of_server(self, action: str) -> None:
        record(action, actor=SYSTEM, server=self.tool.server.slug, reason="As a test.")


def _reminder(scene: Scene) -> None:
    approval = scene.hold()
    notify()
    soon = timezone.now() + timedelta(minutes=14)
    Approval.objects.filter(pk=approval.pk).update(decide_by=soon)
    create_reminders()


def _expired(scene: Scene) -> None:
    approval = scene.hold()
    notify()
    past = timezone.now() - timedelta(seconds=1)
    Approval.objects.filter(pk=approval.pk).update(decide_by=past)
    expire()


def _decided(scene: Scene) -> None:
    approval = scene.hold()
    notify()
    decide(approval.pk, scene.alice, approve=False)


def _unknown(scene: Scene) -> None:
    running = scenery.call(scene.scout, scene.tool, scenery.MAIL, State.QUEUED)
    scenery.run(running)
    move_now(Move(running, State.RUNNING, State.UNKNOWN, SYSTEM, reason="Its worker ended."))


def _token(scene: Scene) -> None:
    expiring(scene.scout, days=5)
    expiring_tokens.tell()


def _stop(scene: Scene) -> None:
    freezes.begin(by=scene.alice, reason="Look at scout first.", agent=scene.scout)


def _stop_ended(scene: Scene) -> None:
    begun = freezes.begin(by=scene.alice, reason="Look.", agent=scene.scout)
    freezes.end(begun, by=scene.ada, why="Looked at.")


CAUSES: dict[Event, Callable[[Scene], object]] = {
    Event.APPROVAL_NEEDED: Scene.hold,
    Event.APPROVAL_REMINDER: _reminder,
    Event.APPROVAL_DECIDED: _decided,
    Event.APPROVAL_EXPIRED: _expired,
    Event.OUTCOME_UNKNOWN: _unknown,
    Event.DEFINITION_REVIEW: lambda scene: scenery.see(scene.tool.server, scenery.ADD),
    Event.SERVER_UNREACHABLE: lambda scene: scene.of_server("server.lost"),
    Event.SERVER_REACHABLE: lambda scene: scene.of_server("server.reached"),
    Event.STOP_BEGAN: _stop,
    Event.STOP_ENDED: _stop_ended,
    Event.ROLE_CHANGED: lambda scene: role_changes.note_granted(
        scene.alice, Role.APPROVER, by=scene.ada
    ),
    Event.TOKEN_EXPIRING: _token,
    Event.LIMIT_REACHED: lambda _scene: record(
        "limit.reached", actor=SYSTEM, reason="60 a minute.", limit="Mail", counted="scout"
    ),
    Event.VERIFICATION_FAILED: lambda _scene: record(
        "audit.verification_failed", actor=SYSTEM, reason="Entry 7 was changed.", findings=3
    ),
    Event.BACKUP_FAILED: lambda _scene: record(
        "backup.failed", actor=SYSTEM, reason="The disk is full.", path="/backup"
    ),
}


@pytest.fixture
def chat() -> Any:
    with chat_server("mattermost") as chat:
        yield chat


@pytest.fixture
def scene(
    scout: Agent,
    send_mail: Tool,
    alice: User,
    cursor: None,
    as_olga: Client,
    webhook: Webhook,
    chat: Chat,
    service: PushService,
    mailbox: Mailbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    """ada is told of all by mail and on a device, a program and a room as well."""
    # Of a call that was asked for just now all of its time is left.
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    roles = (Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER, Role.AUDITOR)
    ada = reader(scenery.person("ada", *roles))
    service.key = push_keys.public_key()
    devices.add(ada, subscriptions.read(service.subscription()), user_agent=FIREFOX)
    devices.set_events(ada, [event for event, _label in CHOICES])
    as_olga.post(reverse("notifications:add_webhook"), form("mattermost", chat))
    notify()
    assert not Delivery.objects.filter(state="pending").exists()
    Delivery.objects.all().delete()
    return Scene(scout, send_mail, ada, alice)


@pytest.mark.parametrize("event", CAUSES, ids=str)
def test_it_is_delivered_everywhere_and_recorded(
    event: Event,
    scene: Scene,
    mailbox: Mailbox,
    hook: Hook,
    chat: Chat,
    service: PushService,
) -> None:
    CAUSES[event](scene)

    notify()
    due_now()
    notify()

    told = Delivery.objects.filter(event=event)
    assert sorted(told.values_list("channel", "state")) == [
        ("email", "sent"),
        ("push", "sent"),
        ("webhook", "sent"),
        ("webhook", "sent"),
    ]
    assert [body["type"] for _id, body in hook.requests].count(event) == 1
    assert [message["kind"] for message in service.messages].count(event) == 1
    assert mailbox.recipients
    assert chat.bodies
    entries = Entry.objects.filter(action="notification.sent")
    assert [(one.details or {})["event"] for one in entries].count(event) == 4
