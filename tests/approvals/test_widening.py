"""Thresholds that count late: a rule lets others decide a call that has been pending for long."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations, editing, freezes, services, standing_approvals
from approvals.editing import Edit
from approvals.models import Approval, BreakGlass, Delegation, Vote
from approvals.services import DecisionRefused
from approvals.widening import widen
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
FIRST = Threshold(source="group:payments")
LATER = Threshold(source="group:leads", after_min=15)
TOO_EARLY = "only once it has been pending for 15 minutes"


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


def approver(name: str, group: str, role: Role = Role.APPROVER) -> User:
    made = scenery.person(name, role)
    made.groups.add(Group.objects.get_or_create(name=group)[0])
    return made


@pytest.fixture
def gina(db: None) -> User:
    return approver("gina", "payments")


@pytest.fixture
def lena(db: None) -> User:
    return approver("lena", "leads")


Hold = Callable[..., UUID]


@pytest.fixture
def hold(scout: Agent, send_mail: Tool, gina: User, lena: User) -> Hold:
    def held(minutes: int, *thresholds: Threshold) -> UUID:
        asked = thresholds or (FIRST, LATER)
        return scenery.call(
            scout,
            send_mail,
            {**scenery.MAIL, "subject": f"No. {Approval.objects.count()}"},
            State.HELD,
            thresholds=asked,
            pending_min=minutes,
        )

    return held


def say(call_id: UUID, by: User, *, approve: bool = True) -> str:
    approval = Approval.objects.for_queue().get(pk=call_id)
    digest = approval.call.call_digest
    services.vote(approval, by=by, approve=approve, seen_digest=digest)
    return Call.objects.get(pk=call_id).state


def widened(call_id: UUID) -> list[int]:
    made = Entry.objects.filter(call_id=call_id, action="approval.widened").order_by("pk")
    return [one.details["after_min"] for one in made]


def test_before_its_time_nobody_else_decides(hold: Hold, lena: User) -> None:
    held = hold(14)

    widen()

    assert widened(held) == []
    for approve in (True, False):
        with pytest.raises(DecisionRefused, match=TOO_EARLY):
            say(held, lena, approve=approve)


def test_after_its_time_others_decide_too_and_the_record_says_so(hold: Hold, lena: User) -> None:
    held = hold(15)

    widen()
    widen()

    assert widened(held) == [15]
    entry = Entry.objects.get(action="approval.widened")
    assert (entry.actor, entry.reason) == (
        "countersign",
        "Pending for 15 minutes, so its rule lets others decide too: "
        "1 approval of leads; 1 denial decides.",
    )
    assert say(held, lena) == State.QUEUED
    said = "Approved by lena. Pending for 15 minutes: its rule let others decide too."
    assert Entry.objects.get(action="call.approved").reason == said


def test_those_who_were_asked_at_first_still_decide(hold: Hold, gina: User) -> None:
    held = hold(15)
    widen()

    assert say(held, gina) == State.QUEUED


def test_time_alone_widens_nothing(hold: Hold, lena: User) -> None:
    """As long as no entry says it, nobody else decides: also where the sweep is late."""
    held = hold(40)

    with pytest.raises(DecisionRefused, match=TOO_EARLY):
        say(held, lena)


def test_a_rule_that_names_no_such_threshold_is_never_widened(hold: Hold, lena: User) -> None:
    held = hold(50, FIRST)

    widen()

    assert widened(held) == []
    with pytest.raises(DecisionRefused, match="The rule asks other people: payments"):
        say(held, lena)


def test_further_thresholds_follow_one_by_one(hold: Hold, lena: User) -> None:
    last = Threshold(after_min=45)
    held = hold(30, FIRST, LATER, last)

    widen()
    widen()
    assert widened(held) == [15]
    at = Approval.objects.get(pk=held).widens_at
    assert at is not None
    assert timedelta(minutes=14) < at - timezone.now() < timedelta(minutes=16)
    other = hold(46, FIRST, LATER, last)
    widen()
    widen()

    assert widened(other) == [15, 45]


def test_a_vote_that_stands_decides_where_fewer_suffice_later(hold: Hold, gina: User) -> None:
    two = Threshold(approve=2, source="group:payments")
    held = hold(20, two, Threshold(source="group:payments", after_min=15))
    assert say(held, gina) == State.HELD

    widen()

    assert Call.objects.get(pk=held).state == State.QUEUED
    moved = Entry.objects.get(action="call.approved")
    assert moved.actor == "countersign"
    assert "Counted again" in moved.reason


def test_a_quorum_may_be_of_both(hold: Hold, gina: User, lena: User) -> None:
    """Two of payments, later two of whoever may decide."""
    two = Threshold(approve=2, source="group:payments")
    held = hold(20, two, Threshold(approve=2, after_min=15))
    assert say(held, gina) == State.HELD
    widen()

    assert say(held, lena) == State.QUEUED


def test_the_database_counts_nobody_before(hold: Hold, lena: User) -> None:
    held = hold(14)
    digest = Call.objects.get(pk=held).call_digest

    for change in (
        lambda: Vote.objects.create(
            approval_id=held, person=lena, approve=True, seen_digest=digest
        ),
        lambda: Approval.objects.filter(pk=held).update(widened_min=15),
        # Not even with another time before.
        lambda: _reset(held),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


def _reset(call_id: UUID) -> None:
    Approval.objects.filter(pk=call_id).update(widens_at=timezone.now() - timedelta(minutes=1))
    Approval.objects.filter(pk=call_id).update(widened_min=15)


def test_nobody_is_shut_out_again(hold: Hold) -> None:
    held = hold(15)
    widen()

    with pytest.raises(DatabaseError), transaction.atomic():
        Approval.objects.filter(pk=held).update(widened_min=0)


@pytest.mark.parametrize("is_all", [True, False])
def test_an_emergency_stop_stops_this_clock_too(
    hold: Hold, scout: Agent, olga: User, is_all: bool
) -> None:
    held = hold(14)
    stop = freezes.begin(by=olga, reason="Look.", agent=None if is_all else scout)
    Call.objects.filter(pk=held).update(clock_stopped_at=timezone.now() - timedelta(minutes=20))
    before = Approval.objects.get(pk=held).widens_at
    Approval.objects.filter(pk=held).update(widens_at=timezone.now() - timedelta(seconds=1))
    widen()
    assert widened(held) == []
    Approval.objects.filter(pk=held).update(widens_at=before)

    freezes.end(stop, by=scenery.person("ada", Role.ADMINISTRATOR), why="Fine.")
    widen()

    after = Approval.objects.get(pk=held).widens_at
    assert before is not None
    assert after is not None
    assert timedelta(minutes=20) <= after - before < timedelta(minutes=21)
    assert widened(held) == []


def test_a_denial_that_can_be_taken_back_is_widened_by_nothing(
    hold: Hold, gina: User, settings: Any
) -> None:
    settings.TAKE_BACK_S = 10
    held = hold(15)
    say(held, gina, approve=False)

    widen()
    assert widened(held) == []

    services.take_back(Approval.objects.get(pk=held), by=gina)
    widen()
    assert widened(held) == [15]


def test_an_expired_one_is_widened_by_nothing(hold: Hold) -> None:
    held = hold(15)
    Approval.objects.filter(pk=held).update(decide_by=timezone.now())

    widen()

    assert widened(held) == []


def test_nobody_decides_on_their_own_call_by_it(hold: Hold, bob: User) -> None:
    bob.groups.add(Group.objects.get(name="leads"), Group.objects.get(name=Role.APPROVER))
    held = hold(15)
    widen()

    with pytest.raises(DecisionRefused, match="The agent is yours"):
        say(held, User.objects.get(pk=bob.pk))


@pytest.mark.long
def test_no_standing_approval_is_made_by_it(hold: Hold, gina: User, lena: User) -> None:
    """Who decides only since it waited so long decides on no calls that did not."""
    late, early = hold(15), hold(15)
    widen()
    say(late, lena)
    say(early, gina)

    said = "not approved by the approvers that the rule asks first"
    assert said in standing_approvals.why_not(Call.objects.get(pk=late), lena)
    assert standing_approvals.why_not(Call.objects.get(pk=early), gina) == ""


def test_break_glass_is_what_it_was(hold: Hold, lena: User) -> None:
    """Whoever may decide by now needs none, and nobody gets the right by it."""
    held = hold(15)
    widen()

    assert not lena.has_perm("approvals.break_glass")
    with pytest.raises(DatabaseError, match="may not break the glass"), transaction.atomic():
        BreakGlass.objects.create(
            approval_id=held,
            person=lena,
            second=User.objects.get(username="gina"),
            reason="Now.",
            seen_digest=Call.objects.get(pk=held).call_digest,
        )


def test_a_delegate_of_theirs_votes_once_they_may(hold: Hold, lena: User) -> None:
    dora = approver("dora", "leads")
    now = timezone.now()
    delegations.make(
        Delegation(
            delegator=lena,
            delegate=dora,
            group=Group.objects.get(name="leads"),
            begins_at=now - timedelta(days=1),
            ends_at=now + timedelta(days=1),
        )
    )
    held = hold(15)
    widen()

    say(held, dora)

    assert Vote.objects.get().for_people == [lena.pk]


def test_an_edit_leaves_what_was_widened(hold: Hold, gina: User, lena: User) -> None:
    held = hold(15)
    widen()
    approval = Approval.objects.for_queue().get(pk=held)

    changed = Edit(approval.call.call_digest, orjson.dumps({**scenery.MAIL, "subject": "Hi"}))
    editing.edit(approval, changed, by=gina)

    assert Approval.objects.get(pk=held).widened_min == 15
    assert say(held, lena) == State.QUEUED


def test_a_rule_that_no_longer_says_it_supersedes_the_call(
    hold: Hold, scout: Agent, lena: User
) -> None:
    held = hold(15)
    widen()
    save_rule(Rule(name="Strict", effect="ask", thresholds=[FIRST.plain()]), by=SYSTEM)

    with pytest.raises(DecisionRefused, match="superseded"):
        say(held, lena)

    assert Call.objects.get(pk=held).state == State.SUPERSEDED


def test_a_rule_that_says_it_later_lets_nothing_run(hold: Hold, lena: User) -> None:
    """Asked again at the claim, by the rules of then."""
    rule = Rule(name="Late", effect="ask", thresholds=[FIRST.plain(), LATER.plain()])
    save_rule(rule, by=SYSTEM)
    held = hold(15)
    widen()
    say(held, lena)
    rule.thresholds = [FIRST.plain(), {**LATER.plain(), "after_min": 30}]
    save_rule(rule, by=SYSTEM)

    assert claim(held, owner="here") is None

    assert Call.objects.get(pk=held).state == State.SUPERSEDED


@pytest.mark.long
def test_the_card_says_it_before_and_after(
    client: Client, hold: Hold, gina: User, lena: User
) -> None:
    held = hold(15)
    page = reverse("approvals:detail", args=[held])
    client.force_login(gina)
    before = client.get(page).text
    assert "1 approval of leads; 1 denial decides; only after 15 minutes" in before
    assert "does not count yet" in before
    client.force_login(lena)
    asks_later = client.get(page).text
    assert TOO_EARLY in asks_later
    assert "Approve</button>" not in asks_later

    widen()

    assert "counts by now" in client.get(page).text
    timeline = reverse("calls:detail", args=[held])
    assert "its rule lets others decide too: 1 approval of leads" in client.get(timeline).text
    assert "等待审批已 15 分钟，因此其规则允许其他人一同审批" in _chinese(client, timeline)


def _chinese(client: Client, page: str) -> str:
    return client.get(page, headers={"Accept-Language": "zh-hans"}).text


def test_a_late_vote_from_the_page_is_turned_away(client: Client, hold: Hold, lena: User) -> None:
    held = hold(14)
    client.force_login(lena)
    digest = Call.objects.get(pk=held).call_digest

    client.post(reverse("approvals:approve", args=[held]), {"seen": digest})

    assert not Vote.objects.exists()
    assert Call.objects.get(pk=held).state == State.HELD
