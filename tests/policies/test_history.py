"""What was before: read only where a rule asks for it, and never a reason to allow when unread."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from accounts.models import Agent, User
from approvals import services
from approvals.models import Approval
from calls.record.states import State
from policies import decide, history
from policies.decide import Subject
from policies.history import NEVER, History
from policies.models import Effect, Rule
from policies.simulate import suppose
from registry.models import Tool
from registry.services import set_tags
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


def rule(effect: Effect, when: str, **values: Any) -> Rule:
    return Rule.objects.create(name=when[:90], effect=effect, when=when, **values)


def read(agent_id: int, tool: str, **about: Any) -> History:
    """What the record says."""
    with connection.cursor() as cursor:
        cursor.execute(history.SQL, history.arguments(agent_id, tool, **about))
        return history.of_rows(cursor.fetchall())


def call(scout: Agent, send: Tool, state: State, n: int = 0) -> Any:
    return scenery.call(scout, send, {**scenery.MAIL, "subject": str(n)}, state)


def test_the_record_says_what_was(scout: Agent, send: Tool, bob: User) -> None:
    other = Agent.objects.create(name="other", owner=bob)
    for n in range(3):
        call(scout, send, State.QUEUED, n)
    call(scout, send, State.REFUSED)
    call(other, send, State.QUEUED)

    found = read(scout.pk, "mailer.send_mail")

    assert found == History(calls_1h=4, refused_24h=1, last_approved=NEVER)
    assert read(scout.pk, "mailer.other") == History()
    assert read(0, "mailer.send_mail") == History()


def test_an_approval_is_remembered(scout: Agent, send: Tool, alice: User) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    held = Approval.objects.get(pk=call(scout, send, State.HELD))
    services.vote(held, by=alice, approve=True, seen_digest=held.call.call_digest)

    found = read(scout.pk, "mailer.send_mail")

    assert before < found.last_approved < datetime.now(UTC) + timedelta(seconds=1)


def test_a_call_sees_what_was_before_it(scout: Agent, send: Tool) -> None:
    first = call(scout, send, State.QUEUED, 1)
    at = datetime.now(UTC)
    call(scout, send, State.QUEUED, 2)

    assert read(scout.pk, "mailer.send_mail", but=first, at=at) == History()


def test_time_passes(scout: Agent, send: Tool) -> None:
    call(scout, send, State.REFUSED)

    def after(**ago: float) -> History:
        at = datetime.now(UTC) + timedelta(**ago)
        return read(scout.pk, "mailer.send_mail", at=at)

    assert after(minutes=61) == History(calls_1h=0, refused_24h=1)
    assert after(hours=25) == History()


def test_conditions_use_it(scout: Agent, send: Tool) -> None:
    rule(Effect.ALLOW, "history.calls_1h < 2")
    rule(Effect.DENY, "history.refused_24h > 0")

    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.ALLOW
    for n in range(2):
        call(scout, send, State.QUEUED, n)
    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.ASK
    call(scout, send, State.REFUSED)
    explained = suppose("scout", "mailer.send_mail")
    assert explained.decision.effect == Effect.DENY
    assert explained.heard[-1].values == [("history.refused_24h", 1)]


def subject(scout: Agent, send: Tool, **more: Any) -> Subject:
    assert send.latest_id
    return Subject(
        scout.pk, "scout", frozenset(), send.latest_id, "mailer", "send_mail", {}, "bob",
        exposed="mailer.send_mail", **more,
    )  # fmt: skip


def test_unread_it_asks(scout: Agent, send: Tool) -> None:
    rule(Effect.ALLOW, "history.calls_1h < 2")

    decision = decide.load().decide(subject(scout, send))

    assert decision.effect == Effect.ASK
    assert "what happened before could not be read" in decision.reason


def test_it_is_read_for_nobody_else(scout: Agent, send: Tool, bob: User) -> None:
    one = rule(Effect.DENY, "history.calls_1h > 100", server="mailer")
    one.agents.add(Agent.objects.create(name="other", owner=bob))
    rule(Effect.ALLOW, "args.to.size() < 3")

    assert "history" not in decide.load().lookbacks(subject(scout, send))
    one.agents.add(scout)
    assert "history" in decide.load().lookbacks(subject(scout, send))
    one.mode = Rule.Mode.OFF
    one.save()
    assert "history" not in decide.load().lookbacks(subject(scout, send))


def test_it_never_looks_far_back(scout: Agent) -> None:
    with connection.cursor() as cursor:
        # A table this small is read whole and sorted, whatever indexes there are.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute("EXPLAIN " + history.SQL, history.arguments(scout.pk, "mailer.send_mail"))
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "Limit" in plan
    # In the order of an index, one block of ids after the other: whoever sorted everything would
    # read everything first.
    assert "Incremental Sort" in plan
    assert "Index Scan Backward using audit_entry_agent" in plan


def test_tags_are_ours_and_risk_is_the_servers_word(scout: Agent, send: Tool, olga: User) -> None:
    set_tags(send, ["mail", "outside"], by=olga)
    rule(Effect.ALLOW, "'mail' in tool.tags")
    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.ALLOW
    rule(Effect.DENY, "tool.risk == 'destroys'")
    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.DENY
