"""What becomes of calls that were open in a restored backup: none is sent, and each says what is
known of it."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.test import Client

from accounts.models import Agent, User
from approvals.models import Approval
from approvals.restoring import close_pending
from audit.models import Entry
from audit.services import Actor
from calls.models import Call
from calls.queue.claiming import claim, claim_next
from calls.record.states import LIVE, Executed, State
from calls.restoring import Fate, close_open
from policies.models import Rule
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
HOST = Actor("system", None, "root on db1")
SAID = "Restored from the backup of 2026-11-22 18:00:00 UTC."
UNSENT = Fate(State.EXPIRED, is_unsent=True)
SENT = Fate(State.SUCCEEDED, is_unsent=False)


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    Rule.objects.create(name="All", effect="allow")
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


def restore(known: dict[UUID, Fate]) -> None:
    close_pending(known, said=SAID, by=HOST)
    close_open(known, said=SAID, by=HOST)


@pytest.mark.parametrize("state", [State.HELD, State.QUEUED, State.RUNNING])
@pytest.mark.parametrize(
    ("fate", "target", "executed", "said"),
    [
        (None, State.UNKNOWN, Executed.UNKNOWN, "Whether it was sent since is not known."),
        (SENT, State.UNKNOWN, Executed.UNKNOWN, "that was replaced said of it: Succeeded."),
        (UNSENT, State.SUPERSEDED, Executed.NO, "It was not sent. Ask again"),
    ],
)
def test_nothing_that_was_open_is_sent_and_each_says_what_is_known(
    scout: Agent,
    send_mail: Tool,
    client: Client,
    alice: User,
    state: State,
    fate: Fate | None,
    target: State,
    executed: Executed,
    said: str,
) -> None:
    call_id = scenery.call(scout, send_mail, scenery.MAIL, state)
    if state == State.RUNNING:
        # It was sent when the backup was made.
        target, executed = State.UNKNOWN, Executed.UNKNOWN

    assert state in LIVE
    restore({call_id: fate} if fate else {})

    call = Call.objects.get(pk=call_id)
    assert (call.state, call.executed) == (target, executed)
    assert call.outcome.startswith(SAID)
    if state != State.RUNNING:
        assert said in call.outcome
    assert call.state not in LIVE
    assert claim(call_id, owner="here") is None
    assert claim_next(owner="here") is None
    entry = Entry.objects.filter(call_id=call_id).latest("pk")
    assert (entry.action, entry.actor) == (f"call.{target}", "root on db1")
    if state == State.HELD:
        assert Approval.objects.get(pk=call_id).state == Approval.State.SUPERSEDED
    client.force_login(alice)
    page = client.get(f"/calls/{call_id}/").text
    assert SAID in page
    if executed == Executed.UNKNOWN and state != State.RUNNING:
        assert "It was sent" not in page
        assert "Arguments, never sent" not in page


@pytest.mark.parametrize(
    ("state", "fence", "executed", "is_unsent"),
    [
        (State.HELD, 0, "", True),
        (State.QUEUED, 0, "", True),
        # Between two attempts.
        (State.QUEUED, 1, Executed.NO, False),
        (State.RUNNING, 1, "", False),
        (State.DENIED, 0, Executed.NO, True),
        (State.EXPIRED, 0, Executed.NO, True),
        (State.CANCELLED, 0, Executed.NO, True),
        (State.CANCELLED, 1, Executed.UNKNOWN, False),
        (State.SUCCEEDED, 1, Executed.YES, False),
        (State.FAILED, 1, Executed.NO, False),
        (State.UNKNOWN, 1, Executed.UNKNOWN, False),
    ],
)
def test_what_the_replaced_record_knows_of_a_call(
    state: State, fence: int, executed: str, is_unsent: bool
) -> None:
    assert Fate.of(Call(state=state, fence=fence, executed=executed)).is_unsent is is_unsent
