"""An edit puts a pending call to a vote anew: whoever may decide it then is told, everywhere."""

from uuid import UUID

import pytest
from django.contrib.auth.models import Group

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from calls.record.states import State
from notifications import escalation_policies
from notifications.cursor import read_entries
from notifications.models import Delivery, EscalationPolicy, EscalationStep, Webhook
from notifications.sending import send_due
from policies.models import Effect
from policies.thresholds import Threshold
from registry.models import Tool
from tests.approvals.test_editing import edit, rule
from tests.approvals.test_quorum import approver, say
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Hook, Mailbox, text_of
from tests.notifications.slack_server import SlackServer
from tests.notifications.test_slack_app import app, asked, link, slack, texts, window

__all__ = ["app", "asked", "slack"]

pytestmark = pytest.mark.django_db

DESK = (Threshold(source="group:desk", approve=2, deny=1),)


def notify() -> None:
    read_entries()
    send_due()


@pytest.fixture
def desk(alice: User, cursor: None) -> list[User]:
    """bill and carla, who are told by mail; alice of the same group edits."""
    people = [reader(approver(name, "desk")) for name in ("bill", "carla")]
    alice.groups.add(Group.objects.get(name="desk"))
    return people


def told() -> list[str]:
    """Who was told of the call after its edit."""
    edited = Delivery.objects.filter(event="approval.needed").order_by("person__username")
    last = edited.order_by("-entry_id").values_list("entry_id", flat=True)[0]
    names = edited.filter(entry_id=last).values_list("person__username", flat=True)
    return [name for name in names if name]


def test_whom_the_edited_call_asks_and_whose_vote_fell_are_told(
    scout: Agent, send_mail: Tool, alice: User, desk: list[User], mailbox: Mailbox
) -> None:
    reader(approver("mallory", "cfo"))
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=DESK)
    notify()
    assert mailbox.recipients == ["bill@example.org", "carla@example.org"]
    say(held, desk[0])
    when = 'args.subject.endsWith("Wednesday")'
    rule("cfo", Effect.ASK, when, thresholds=[{"from": "group:cfo"}])

    edit(held, alice)
    notify()

    assert told() == ["bill", "carla", "mallory"]
    message = mailbox.messages[-1]
    mark = Approval.objects.for_queue().get(pk=held).call.fingerprint
    assert f"({mark})" in message["Subject"]
    assert "alice edited the arguments: earlier votes do not count." in text_of(message)


def test_steps_begin_again(
    scout: Agent, send_mail: Tool, alice: User, desk: list[User], olga: User
) -> None:
    """One in turn, also where all were told of the call as it was."""
    turn = EscalationStep(after_min=0, target=EscalationStep.Target.ROUND_ROBIN, people=1)
    group = EscalationPolicy(group=Group.objects.get(name="desk"))
    escalation_policies.save(group, [turn], by=olga)
    one = (Threshold(source="group:desk"),)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=one)
    read_entries()
    assert told() == ["bill"]

    edit(held, alice)
    read_entries()
    assert told() == ["carla"]

    edit(held, alice, {**scenery.MAIL, "subject": "Once more"})
    read_entries()
    assert told() == ["bill"]


@pytest.mark.parametrize("private", [False, True])
def test_programs_read_the_new_fingerprint_and_no_note_that_is_kept_from_the_agent(
    webhook: Webhook, hook: Hook, held: UUID, alice: User, private: bool
) -> None:
    edit(held, alice, note="Ben is away.", private=private)

    notify()

    call = Approval.objects.for_queue().get(pk=held).call
    said = [body["data"] for _id, body in hook.requests if body["type"] == "approval.needed"][-1]
    assert (said["fingerprint"], said["actor"]["name"]) == (call.fingerprint, "alice")
    assert said.get("reason") == (None if private else "Ben is away.")


@pytest.mark.long
def test_slacks_buttons_are_of_the_edited_call(
    asked: tuple[str, str], slack: SlackServer, held: UUID, alice: User
) -> None:
    link(slack, alice, "U0ALICE")
    edit(held, scenery.person("carol", Role.APPROVER))
    notify()

    (updated, first), (posted, second) = slack.calls[-2:]
    assert (updated, first["ts"]) == ("chat.update", asked[1])
    assert {"open", "deny"} <= set(slack.buttons(first))
    assert (posted, second["thread_ts"]) == ("chat.postMessage", asked[1])
    assert set(slack.buttons(second)) == {"open"}
    assert "carol edited" in texts(second)
    view = window(slack, slack.press(asked, "deny", "U0ALICE"))
    assert view["callback_id"] == "deny", view
