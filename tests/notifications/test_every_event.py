"""Each event reaches mail, a device, a program and every chat with what it is about, and each of
that is an entry."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import role_changes
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations, freezes
from approvals.models import Approval, Delegation
from approvals.services import cancel, expire
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import State
from calls.record.transitions import Move, move_now
from notifications import (
    deliveries,
    devices,
    expiring_tokens,
    push_keys,
    subscriptions,
    workload_mails,
)
from notifications.deliveries import create_reminders
from notifications.events import ANSWERS, CHOICES, Event
from notifications.models import Delivery, Webhook
from registry.models import Tool
from tests.approvals.test_stepping import passkey
from tests.console import scenery
from tests.notifications import test_break_glass
from tests.notifications.chats import CHATS, Chat, chat_server
from tests.notifications.conftest import reader
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Hook, Mailbox, links_to, text_of
from tests.notifications.slack_server import SlackServer
from tests.notifications.test_chats import decide, form, read
from tests.notifications.test_mail import due_now, notify, signed_in
from tests.notifications.test_operating import expiring
from tests.notifications.test_push import FIREFOX, HERE, service
from tests.notifications.test_slack_app import FORM, slack, texts

__all__ = ["service", "slack"]

pytestmark = pytest.mark.django_db


class Scene(NamedTuple):
    scout: Agent
    tool: Tool
    # Decides, operates and administers, and reads the audit log.
    ada: User
    alice: User

    def hold(self, **more: Any) -> Approval:
        pk = scenery.call(self.scout, self.tool, scenery.MAIL, State.HELD, **more)
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
    decide(approval.pk, scene.alice, approve=False, reason="Not today.")


def _withdrawn(scene: Scene) -> None:
    approval = scene.hold()
    notify()
    assert cancel(approval.pk, by=scene.scout.actor)


def _unknown(scene: Scene) -> None:
    running = scenery.call(scene.scout, scene.tool, scenery.MAIL, State.QUEUED)
    scenery.run(running)
    move_now(Move(running, State.RUNNING, State.UNKNOWN, SYSTEM, reason="Its worker ended."))


def _reached_again(scene: Scene) -> None:
    scene.of_server("server.lost")
    scene.of_server("server.reached")


def _of_calendar(action: str) -> Callable[[Scene], object]:
    return lambda _scene: record(
        action, actor=SYSTEM, reason="It is no valid calendar.", schedule="Night shift"
    )


def _token(scene: Scene) -> None:
    expiring(scene.scout, days=5)
    expiring_tokens.tell()


def _unusual(scene: Scene) -> None:
    reason = "Its last 5 calls were blocked or denied."
    record("agent.unusual", actor=SYSTEM, agent=(scene.scout.pk, "scout"), reason=reason)


def _workload(scene: Scene) -> None:
    _decided(scene)
    record("workload.weekly", actor=SYSTEM)


def _stop(scene: Scene) -> None:
    freezes.begin(by=scene.alice, reason="Look at scout first.", agent=scene.scout)


def _stop_ended(scene: Scene) -> None:
    begun = freezes.begin(by=scene.alice, reason="Look.", agent=scene.scout)
    freezes.end(begun, by=scene.ada, why="Looked at.")


def _break_glass(scene: Scene) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    carol.user_permissions.add(Permission.objects.get(codename="break_glass"))
    held = scene.hold(thresholds=test_break_glass.CFO).pk
    said = test_break_glass.press(signed_in(carol), held, passkey(carol), scene.ada)
    assert "The call is sent." in said


def _of_account(action: str, **details: Any) -> Callable[[Scene], object]:
    return lambda scene: record(
        action, actor=scene.ada.actor, person="ada", person_id=scene.ada.pk, **details
    )


def _delegation(scene: Scene) -> Delegation:
    begins = timezone.now()
    ends = begins + timedelta(days=7)
    made = Delegation(delegator=scene.alice, delegate=scene.ada, begins_at=begins, ends_at=ends)
    delegations.make(made)
    return made


class Case(NamedTuple):
    """What causes the event; what its mail and messages say; and where their links lead, in which
    CALL stands for the call."""

    cause: Callable[[Scene], object]
    subject: str
    words: tuple[str, ...]
    there: str
    # Of the webhook's `data`.
    data: dict[str, str] = {}


CALL = "CALL"
REACHED = "Limit “Mail” is reached: 60 calls per minute."
CARD = f"/queue/{CALL}/"
ASKS = "Approval needed: mailer.send_mail for scout"
OF_CALL = {"agent": "scout", "tool": "mailer.send_mail"}
# To people by mail, on devices, in every chat, and to programs.
TO_ALL = {
    Event.APPROVAL_NEEDED: Case(
        Scene.hold, ASKS, ("mailer.send_mail", "scout", "Decide by"), CARD, OF_CALL
    ),
    Event.APPROVAL_REMINDER: Case(
        _reminder, f"Re: {ASKS}", ("about to expire", "mailer.send_mail"), CARD, OF_CALL
    ),
    Event.APPROVAL_DECIDED: Case(
        _decided, f"Re: {ASKS}", ("alice denied mailer.send_mail for scout.", "Not today."), CARD,
        {**OF_CALL, "state": "denied"},
    ),
    Event.APPROVAL_EXPIRED: Case(
        _expired, f"Re: {ASKS}", ("mailer.send_mail",), CARD, {**OF_CALL, "state": "expired"}
    ),
    Event.APPROVAL_WITHDRAWN: Case(
        _withdrawn, f"Re: {ASKS}", ("Withdrawn by scout.",), CARD, {"state": "withdrawn"}
    ),
    Event.OUTCOME_UNKNOWN: Case(
        _unknown, "Outcome unknown: mailer.send_mail for scout", ("Its worker ended.",),
        f"/calls/{CALL}/", {**OF_CALL, "state": "unknown"},
    ),
    Event.DEFINITION_REVIEW: Case(
        lambda scene: scenery.see(scene.tool.server, scenery.ADD),
        "Definitions to review: mailer", ("mailer",), "/servers/mailer/review/",
        {"server": "mailer"},
    ),
    Event.SERVER_UNREACHABLE: Case(
        lambda scene: scene.of_server("server.lost"),
        "Server unreachable: mailer", ("mailer", "As a test."), "/servers/mailer/",
        {"server": "mailer", "reason": "As a test."},
    ),
    Event.SERVER_REACHABLE: Case(
        _reached_again,
        "Server reachable: mailer", ("mailer", "It answers again."), "/servers/mailer/",
        {"server": "mailer"},
    ),
    Event.CALENDAR_FAILED: Case(
        _of_calendar("on_call_calendar.failed"),
        "On-call calendar cannot be read: Night shift",
        ("Night shift", "It is no valid calendar."), "/on-call/", {"schedule": "Night shift"},
    ),
    Event.CALENDAR_RECOVERED: Case(
        _of_calendar("on_call_calendar.recovered"),
        "On-call calendar can be read again: Night shift", ("Night shift",), "/on-call/",
        {"schedule": "Night shift"},
    ),
    Event.STOP_BEGAN: Case(
        _stop, "Emergency stop began",
        ("alice began an emergency stop: until it ends, no call of scout", "Look at scout first."),
        "/emergency-stops/", {"agent": "scout", "reason": "Look at scout first."},
    ),
    Event.STOP_ENDED: Case(
        _stop_ended, "Emergency stop ended",
        ("ada ended the emergency stop of the agent scout.", "Looked at."), "/emergency-stops/",
        {"reason": "Looked at."},
    ),
    Event.ROLE_CHANGED: Case(
        lambda scene: role_changes.note_granted(scene.alice, Role.APPROVER, by=scene.ada),
        "ada gave alice the role Approver", ("ada", "alice", "Approver"), "/people/",
        {"person": "alice", "role": "Approver"},
    ),
    Event.TOKEN_EXPIRING: Case(
        _token, "A token of scout is about to expire", ("scout", "Expires"), "/agents/scout/",
        {"agent": "scout"},
    ),
    Event.LIMIT_REACHED: Case(
        lambda _scene: record(
            "limit.reached", actor=SYSTEM, reason=REACHED, limit="Mail", counted="scout"
        ),
        "Limit reached: Mail", ("Mail", REACHED, "scout"), "/limits/",
        {"limit": "Mail", "reason": REACHED},
    ),
    Event.AGENT_UNUSUAL: Case(
        _unusual, "Unusual use: scout", ("Its last 5 calls were blocked or denied.",),
        "/agents/scout/", {"agent": "scout"},
    ),
    Event.VERIFICATION_FAILED: Case(
        lambda _scene: record(
            "audit.verification_failed", actor=SYSTEM, reason="Entry 7 was changed.", findings=3
        ),
        "The verification of the audit log failed", ("Entry 7 was changed.", "3"), "/audit/",
        {"reason": "Entry 7 was changed."},
    ),
    Event.BACKUP_FAILED: Case(
        lambda _scene: record(
            "backup.failed", actor=SYSTEM, reason="The disk is full.", path="/backup"
        ),
        "A backup failed", ("The disk is full.", "/backup"), "/audit/",
        {"reason": "The disk is full."},
    ),
    Event.BREAK_GLASS_USED: Case(
        _break_glass, "Break-glass: carol let mailer.send_mail run for scout",
        ("carol", "scout", test_break_glass.REASON), CARD,
        {**OF_CALL, "reason": test_break_glass.REASON},
    ),
}  # fmt: skip
# Each reader's own: by mail and on devices alone.
TO_PEOPLE = {
    Event.WORKLOAD: Case(_workload, "Approval workload: ", ("alice", "1 decision"), "/workload/"),
    Event.RECOVERY_CODE_USED: Case(
        _of_account("recovery_code.used", address="192.0.2.7", left=7),
        "A recovery code of yours was used", ("192.0.2.7", "7"), "/profile/",
    ),
    Event.NEW_DEVICE: Case(
        _of_account("person.new_device", device="Firefox, Linux", address="192.0.2.7"),
        "Your account was signed in to on a new device", ("Firefox, Linux", "192.0.2.7"),
        "/profile/sessions/",
    ),
    Event.FACTORS_RESET: Case(
        _of_account("person.factors_reset", asked_by="olga"),
        "Your second factors were removed", ("olga",), "/profile/",
    ),
    Event.DELEGATION_MADE: Case(
        _delegation, "alice chose you as their delegate", ("alice",), "/profile/delegations/"
    ),
    Event.DELEGATION_ENDED: Case(
        lambda scene: delegations.end(_delegation(scene), by=scene.alice),
        "alice ended a delegation early", ("alice",), "/profile/delegations/",
    ),
}  # fmt: skip
# Reasons that these tests give, as people and servers do.
FOREIGN = (
    "Not today.",
    "Its worker ended.",
    "As a test.",
    "It is no valid calendar.",
    "Look at scout first.",
    "Entry 7 was changed.",
    "The disk is full.",
    test_break_glass.REASON,
)
# tests/notifications/test_password_reset.py: to one mailbox, and nowhere else.
ELSEWHERE = {Event.PASSWORD_RESET, Event.TEST}


@pytest.fixture
def chats() -> Iterator[dict[str, Chat]]:
    with ExitStack() as servers:
        yield {kind: servers.enter_context(chat_server(kind)) for kind in CHATS}


@pytest.fixture
def scene(
    scout: Agent,
    send_mail: Tool,
    alice: User,
    cursor: None,
    as_olga: Client,
    webhook: Webhook,
    chats: dict[str, Chat],
    slack: SlackServer,
    service: PushService,
    mailbox: Mailbox,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    """ada is told of all by mail and on a device, a program and a room of each chat as well."""
    settings.BREAK_GLASS = True
    # Of a call that was asked for just now all of its time is left.
    monkeypatch.setattr(deliveries, "REMIND_SHARE", 1.1)
    # What was decided just now is of this week.
    monkeypatch.setattr(
        workload_mails, "_monday", lambda _entry: timezone.now() - timedelta(days=1)
    )
    # And its Monday has begun, also while this one has not.
    monkeypatch.setattr(workload_mails, "_morning", lambda _entry, _zone: timezone.now())
    roles = (Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER, Role.AUDITOR)
    ada = reader(scenery.person("ada", *roles))
    service.key = push_keys.public_key()
    devices.add(ada, subscriptions.read(service.subscription()), user_agent=FIREFOX)
    devices.set_events(ada, [event for event, _label in CHOICES])
    for kind, chat in chats.items():
        as_olga.post(reverse("notifications:add_webhook"), form(kind, chat, name=kind))
    as_olga.post(reverse("notifications:add_slack_app"), FORM)
    notify()
    assert not Delivery.objects.filter(state="pending").exists()
    Delivery.objects.all().delete()
    return Scene(scout, send_mail, ada, alice)


@pytest.fixture
def mei(scene: Scene) -> User:
    """Is told of all by mail, in Chinese."""
    roles = (Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER, Role.AUDITOR)
    mei = reader(scenery.person("mei", *roles))
    User.objects.filter(pk=mei.pk).update(language="zh-hans")
    return mei


def told(event: Event) -> list[tuple[str, str]]:
    notify()
    due_now()
    notify()
    found = Delivery.objects.filter(event=event).select_related("webhook")
    named = [(one.webhook.name if one.webhook else one.channel, one.state) for one in found]
    recorded = Entry.objects.filter(action="notification.sent", details__event=event)
    assert recorded.count() == len(named)
    return sorted(named)


def address(case: Case) -> str:
    call = Delivery.objects.exclude(call_id=None).values_list("call_id", flat=True).first()
    return case.there.replace(CALL, str(call))


def check_mail(case: Case, mailbox: Mailbox) -> None:
    named = [(str(one["Subject"]), one) for one in mailbox.messages]
    (mail,) = [one for subject, one in named if subject.startswith(case.subject)]
    assert mail["To"] == "ada@example.org"
    for kind in ("plain", "html"):
        said = text_of(mail, kind)
        assert [word for word in case.words if word not in said] == []
        assert links_to(address(case), said) or "/workload/?week=" in said
        assert "ana@example.org" not in said


def check_chinese(mailbox: Mailbox) -> None:
    """Nothing of ours is left in English: three words in a row are somebody's own."""
    *_before, mail = [one for one in mailbox.messages if one["To"] == "mei@example.org"]
    assert re.search("[\u4e00-\u9fff]", str(mail["Subject"]))
    words = re.sub(r"https?://\S+", "", text_of(mail))
    for foreign in FOREIGN:
        words = words.replace(foreign, "")
    assert re.findall(r"[A-Za-z]+(?:[ ,]+[A-Za-z]+){2,}", words) == []


def check_push(event: Event, case: Case, service: PushService, ada: User) -> None:
    (message,) = [one for one in service.messages if one["kind"] == event]
    assert message["title"] == str(event.label)
    assert set(message) == {"kind", "title", "id", "about", "pending"}
    led = signed_in(ada).get(f"{HERE}open/{message['id']}/")
    assert led["Location"] == address(case)


def check_webhook(event: Event, case: Case, hook: Hook, settings: Any) -> None:
    (body,) = [body for _id, body in hook.requests if body["type"] == event]
    assert body["data"]["url"] == settings.PUBLIC_URL + address(case)
    assert {name: body["data"].get(name) for name in case.data} == case.data
    assert UUID(Delivery.objects.get(webhook__name="ledger", event=event).pk.hex)


def check_chat(case: Case, body: dict[str, Any]) -> None:
    said = read(body).replace("`", "").replace("&amp;", "&")
    assert [word for word in case.words if word not in said] == []
    assert links_to(address(case), said)
    assert "ana@example.org" not in said


def check_slack(event: Event, case: Case, slack: SlackServer) -> None:
    method, message = slack.calls[-1]
    assert method == ("chat.update" if event in ANSWERS else "chat.postMessage")
    said = texts(message).replace("`", "")
    assert [word for word in case.words if word not in said] == []
    assert links_to(address(case), slack.buttons(message)["open"]["url"])


@pytest.mark.long
@pytest.mark.parametrize("event", TO_ALL, ids=str)
def test_it_reaches_every_channel_with_what_it_is_about(
    event: Event, scene: Scene, mei: User, mailbox: Mailbox, hook: Hook, chats: dict[str, Chat],
    slack: SlackServer, service: PushService, settings: Any,
) -> None:  # fmt: skip
    case = TO_ALL[event]
    case.cause(scene)
    mailbox.messages.clear()

    assert told(event) == sorted(
        (name, "sent") for name in ("email", "email", "push", "ledger", "approvals", *CHATS)
    )

    check_mail(case, mailbox)
    check_chinese(mailbox)
    check_push(event, case, service, scene.ada)
    check_webhook(event, case, hook, settings)
    check_slack(event, case, slack)
    for chat in chats.values():
        assert chat.faults == []
        check_chat(case, chat.bodies[-1])


@pytest.mark.long
@pytest.mark.parametrize("event", TO_PEOPLE, ids=str)
def test_it_reaches_its_reader_and_no_room(
    event: Event, scene: Scene, mailbox: Mailbox, hook: Hook, chats: dict[str, Chat],
    service: PushService,
) -> None:  # fmt: skip
    case = TO_PEOPLE[event]
    case.cause(scene)

    assert told(event) == [("email", "sent"), ("push", "sent")]

    check_mail(case, mailbox)
    check_push(event, case, service, scene.ada)
    assert [body for _id, body in hook.requests if body["type"] == event] == []


def test_no_event_is_left_out() -> None:
    assert {*TO_ALL, *TO_PEOPLE} | ELSEWHERE == set(Event)
    assert not re.search("(?i)workload", str([*TO_ALL]))
