"""Standing grants: made from one's own approval, within bounds, counted exactly, ended at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import grants
from approvals.bounds import Bound
from approvals.grants import Window
from approvals.models import Grant, GrantUse
from approvals.standing_approvals import GrantRefused, Terms, considered, make, obstacle, revoke
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies import decide
from policies.decide import Decision, Subject
from policies.models import Effect, Rule
from policies.services import save_rule
from policies.thresholds import Threshold
from registry.models import Tool
from tests.approvals.test_quorum import approver, say
from tests.console import scenery

pytestmark = pytest.mark.django_db

TO = Bound(("to",), "set", values=("ana@example.org", "ben@example.org"))


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


@pytest.fixture
def approved(scout: Agent, send_mail: Tool, alice: User) -> Call:
    return approve(scout, send_mail, alice)


def approve(scout: Agent, tool: Tool, by: User, *, yes: bool = True, **changes: Any) -> Call:
    held = scenery.call(scout, tool, {**scenery.MAIL, **changes}, State.HELD)
    say(held, by, approve=yes)
    return call_of(held)


def call_of(call_id: UUID) -> Call:
    return Call.objects.for_page().get(pk=call_id)


def subject(call: Call, **changes: Any) -> Subject:
    assert call.definition_id is not None
    values: dict[str, Any] = {
        "agent_id": call.agent_id,
        "agent": call.agent.name,
        "groups": frozenset(),
        "definition_id": call.definition_id,
        "server": "mailer",
        "tool": "send_mail",
        "hints": {},
    }
    return Subject(**{**values, **changes})


ASKED = Decision(Effect.ASK, None, "", "No rule covers this call.")


def matching(call: Call, decision: Decision = ASKED, **changes: Any) -> int | None:
    found = grants.load().matching(
        subject(call), decision, orjson.dumps({**scenery.MAIL, **changes}), frozenset(), frozenset()
    )
    return found.id if found else None


def test_it_covers_what_was_approved_and_what_may_vary(approved: Call, alice: User) -> None:
    grant = make(approved, Terms(bounds=(TO,)), by=alice)

    assert matching(approved) == grant.pk
    assert matching(approved, to=["ben@example.org"]) == grant.pk
    assert matching(approved, to=["mallory@example.org"]) is None
    assert matching(approved, subject="Other") is None
    entry = Entry.objects.get(action="grant.made")
    assert (entry.actor, entry.details["grant"]) == ("alice", grant.pk)


def test_it_is_for_that_agent_and_definition(approved: Call, alice: User) -> None:
    make(approved, Terms(), by=alice)
    book, document = grants.load(), orjson.dumps(scenery.MAIL)

    def found(**changes: Any) -> object:
        about = subject(approved, **changes)
        return book.matching(about, ASKED, document, frozenset(), frozenset())

    assert found()
    assert not found(agent_id=99)
    assert not found(definition_id=99)


def test_however_many_there_are_two_questions_read_them(
    approved: Call, alice: User, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        make(approved, Terms(), by=alice)

    with django_assert_num_queries(2):
        book = grants.load()

    assert sum(map(len, book.grants.values())) == 3


def test_a_changed_definition_suspends_it(
    approved: Call, alice: User, send_mail: Tool, olga: User
) -> None:
    make(approved, Terms(), by=alice)

    scenery.see(send_mail.server, {**scenery.SEND, "description": "Otherwise."})

    assert matching(approved) is None
    assert not Grant.objects.in_force().exists()


@pytest.mark.parametrize(
    "asked",
    [
        (Threshold(approve=2),),
        (Threshold(source="group:cfo"),),
        (Threshold(step_up="passkey"),),  # type: ignore[arg-type]
    ],
)
def test_it_answers_only_what_its_maker_was_asked(
    approved: Call, alice: User, asked: tuple[Threshold, ...]
) -> None:
    make(approved, Terms(), by=alice)

    assert matching(approved, Decision(Effect.ASK, 1, "r", "", thresholds=asked)) is None


def test_a_rule_may_want_grants_confirmed(approved: Call, alice: User) -> None:
    make(approved, Terms(), by=alice)

    assert matching(approved, Decision(Effect.ASK, 1, "r", "", confirm_grants=True)) is None


def test_such_a_rule_lets_nobody_make_one_unconfirmed(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    rule = Rule(name="careful", effect=Effect.ASK, confirm_grants=True)
    save_rule(rule, by=alice.actor)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, rule_id=rule.pk)
    say(held, alice)

    with pytest.raises(GrantRefused, match="passkey or a code"):
        make(call_of(held), Terms(), by=alice)


def test_only_who_approved_alone_makes_one(
    scout: Agent, send_mail: Tool, alice: User, approved: Call
) -> None:
    carol = approver("carol")
    two = scenery.call(
        scout,
        send_mail,
        {**scenery.MAIL, "subject": "x"},
        State.HELD,
        thresholds=(Threshold(approve=2),),
    )
    say(two, alice)
    say(two, carol)

    for call, person in [(approved, carol), (call_of(two), alice), (call_of(two), carol)]:
        with pytest.raises(GrantRefused, match="approved the call alone"):
            make(call, Terms(), by=person)


def test_held_and_refused_calls_make_none(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = call_of(scenery.call(scout, send_mail, scenery.MAIL, State.HELD))
    refused = approve(scout, send_mail, alice, yes=False, subject="y")

    for call in (held, refused):
        with pytest.raises(GrantRefused, match="that was approved"):
            make(call, Terms(), by=alice)


def test_who_came_to_own_the_agent_makes_none(approved: Call, alice: User, scout: Agent) -> None:
    Agent.objects.filter(pk=scout.pk).update(owner=alice)

    with pytest.raises(GrantRefused, match="The agent is yours"):
        make(call_of(approved.pk), Terms(), by=alice)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (Terms(max_uses=0), "1 to 1000 uses"),
        (Terms(max_uses=1001), "1 to 1000 uses"),
        (Terms(days_valid=31), "1 to 30 days"),
        (Terms(start=600, end=540), "begins before it ends"),
        (Terms(bounds=(Bound(("subject",), "prefix", prefix="No"),)), "would not be covered"),
        (Terms(max_sum=Decimal(5)), "both an argument"),
        (Terms(sum_path=("subject",), max_sum=Decimal(5)), "no number"),
    ],
)
def test_terms_that_make_no_grant_say_why(
    approved: Call, alice: User, terms: Terms, said: str
) -> None:
    with pytest.raises(GrantRefused, match=said):
        considered(approved, terms, by=alice)
    with pytest.raises(GrantRefused, match=said):
        make(approved, terms, by=alice)


def test_what_would_have_been_is_counted(
    scout: Agent, send_mail: Tool, alice: User, approved: Call
) -> None:
    approve(scout, send_mail, alice, to=["ben@example.org"])
    approve(scout, send_mail, alice, subject="Other")
    approve(scout, send_mail, alice, yes=False, to=["mallory@example.org"])

    proposal = considered(approved, Terms(bounds=(TO,)), by=alice)

    assert str(proposal.past) == (
        "It would have matched 2 of your last 3 approvals of this tool for this agent, "
        "and none that you denied."
    )


def test_a_refusal_that_it_would_have_allowed_is_said(
    scout: Agent, send_mail: Tool, alice: User, approved: Call
) -> None:
    approve(scout, send_mail, alice, yes=False, to=["ben@example.org"])

    proposal = considered(approved, Terms(bounds=(TO,)), by=alice)

    assert str(proposal.past).endswith("and 1 of the 1 call that you denied.")


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        ("2026-11-20T09:00", True),
        ("2026-11-20T08:59", False),
        ("2026-11-20T17:00", False),
        ("2026-11-21T09:00", False),
    ],
)
def test_the_window_is_in_the_makers_time_zone(at: str, holds: bool) -> None:
    window = Window(frozenset({4}), 10 * 60, 18 * 60, "Europe/Berlin")

    assert window.holds(datetime.fromisoformat(at).replace(tzinfo=UTC)) is holds


def test_a_revoked_one_covers_nothing(approved: Call, alice: User) -> None:
    grant = make(approved, Terms(), by=alice)

    assert revoke(grant, by=alice)
    assert not revoke(grant, by=alice)

    assert matching(approved) is None
    assert Entry.objects.filter(action="grant.revoked").count() == 1


def lose_the_role(alice: User) -> None:
    alice.groups.clear()


def leave(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)


def come_to_own(alice: User) -> None:
    Agent.objects.update(owner=alice)


@pytest.mark.parametrize("change", [lose_the_role, leave, come_to_own])
def test_who_may_no_longer_decide_grants_nothing(
    approved: Call, alice: User, change: Callable[[User], None]
) -> None:
    grant = make(approved, Terms(), by=alice)
    queued = Call(pk=UUID(int=9), effect="ask")
    use(grant, queued.pk)

    change(alice)

    assert matching(approved) is None
    assert obstacle(queued, ASKED) == "Who granted it may no longer decide."


@pytest.mark.parametrize("column", ["uses", "revoked_at"])
def test_a_use_is_no_change_of_configuration_and_a_revocation_is(
    approved: Call, alice: User, column: str
) -> None:
    grant = make(approved, Terms(), by=alice)
    before = generation()

    Grant.objects.filter(pk=grant.pk).update(
        **({"uses": 1} if column == "uses" else {"revoked_at": timezone.now()})
    )

    assert (generation() > before) is (column == "revoked_at")


def generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT n FROM core_generation")
        (n,) = cursor.fetchone()
    return int(n)


def use(grant: Grant, call_id: UUID, amount: str = "0") -> bool:
    line = {"id": grant.pk, "call_id": str(call_id), "amount": amount}
    with connection.cursor() as cursor:
        cursor.execute(grants.USE.sql, [orjson.dumps([line]).decode()])
        return bool(cursor.fetchone()[1])


def test_it_is_used_so_often_and_each_call_once(approved: Call, alice: User) -> None:
    grant = make(approved, Terms(max_uses=2), by=alice)
    one, two, three = UUID(int=1), UUID(int=2), UUID(int=3)

    assert use(grant, one)
    # The same line again, after a commit whose fate was unknown.
    assert not use(grant, one)
    assert use(grant, two)
    assert not use(grant, three)

    grant.refresh_from_db()
    assert (grant.uses, GrantUse.objects.count()) == (2, 2)


def test_its_sum_is_never_more_than_granted(approved: Call, alice: User) -> None:
    path, copies = ("options", "copies"), {"copies": 3}
    scout, tool = approved.agent, approved.tool
    assert tool is not None
    call = approve(scout, tool, alice, options=copies)
    grant = make(call, Terms(sum_path=path, max_sum=Decimal("5")), by=alice)

    assert use(grant, UUID(int=1), "3.5")
    assert not use(grant, UUID(int=2), "1.500000000000000001")
    assert use(grant, UUID(int=3), "1.5")

    grant.refresh_from_db()
    assert grant.summed == 5


@pytest.mark.parametrize(
    "change",
    [
        "max_uses = 999",
        "expires_at = expires_at + interval '1 day'",
        "bounds = '[]'",
        "arguments = 'x'",
        "owner_id = owner_id + 1",
        "uses = 5",
        "uses = -1",
        "summed = -1",
        "days = '[1]'",
    ],
)
def test_the_database_lets_nobody_widen_it(approved: Call, alice: User, change: str) -> None:
    make(approved, Terms(bounds=(TO,)), by=alice)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE approvals_grant SET {change}")


@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": timezone.now() + timedelta(days=31)},
        {"owner": "carol"},
        {"agent_id": 999},
        {"definition_id": 999},
        {"uses": 1},
        {"max_sum": 1},
    ],
)
def test_the_database_takes_no_grant_that_nobody_could_make(
    approved: Call, alice: User, changes: dict[str, Any]
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    if changes.get("owner") == "carol":
        changes = {"owner": carol}
    values: dict[str, Any] = {
        "call": approved,
        "agent_id": approved.agent_id,
        "tool_id": approved.tool_id,
        "definition_id": approved.definition_id,
        "owner": alice,
        "arguments": b"{}",
        "thresholds": [],
        "max_uses": 5,
        "expires_at": timezone.now() + timedelta(days=1),
    }

    with pytest.raises(DatabaseError), transaction.atomic():
        Grant.objects.create(**{**values, **changes})


def test_a_call_that_nobody_approved_is_not_claimed(approved: Call, alice: User) -> None:
    grant = make(approved, Terms(), by=alice)
    queued = Call(pk=UUID(int=9), effect="ask")

    assert obstacle(queued, ASKED) == "Nobody approved the call."
    use(grant, queued.pk)
    assert obstacle(queued, ASKED) == ""
    assert "Policy now requires others" in obstacle(
        queued, Decision(Effect.ASK, 1, "r", "", thresholds=(Threshold(approve=2),))
    )
    revoke(grant, by=alice)
    assert obstacle(queued, ASKED) == "The standing approval that let it run was revoked."


def test_deny_always_wins(approved: Call, alice: User) -> None:
    make(approved, Terms(), by=alice)
    save_rule(Rule(name="never", effect=Effect.DENY), by=alice.actor)

    assert decide.load().decide(subject(approved)).effect == Effect.DENY
