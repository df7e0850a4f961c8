"""Who decides a held call, and how many: thresholds, of which the first that is met decides."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import services
from approvals.models import Approval, Vote
from approvals.services import AlreadyDecided, DecisionRefused
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import Distinct, StepUp, Threshold
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
TWO = Threshold(approve=2)


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


def approver(name: str, *groups: str) -> User:
    made = scenery.person(name, Role.APPROVER)
    made.groups.add(*(Group.objects.get_or_create(name=group)[0] for group in groups))
    return made


def hold(scout: Agent, tool: Tool, *thresholds: Threshold, **changes: Any) -> UUID:
    return scenery.call(scout, tool, scenery.MAIL, State.HELD, thresholds=thresholds, **changes)


def say(call_id: UUID, by: User, *, approve: bool = True, **given: Any) -> str:
    approval = Approval.objects.for_queue().get(pk=call_id)
    digest = approval.call.call_digest
    services.vote(approval, by=by, approve=approve, seen_digest=digest, **given)
    return Call.objects.get(pk=call_id).state


def back(call_id: UUID, by: User) -> None:
    services.take_back(Approval.objects.for_queue().get(pk=call_id), by=by)


def test_it_waits_until_enough_said_yes(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail, TWO)
    carol = approver("carol")

    assert say(held, alice, reason="Looks right.") == State.HELD
    assert say(held, carol, reason="Agreed.") == State.QUEUED

    approval = Approval.objects.get(pk=held)
    assert approval.decided_by == carol
    moved = Entry.objects.get(action="call.approved")
    assert moved.reason == "Approved by alice and carol. Looks right. Agreed."
    assert Entry.objects.filter(action="approval.voted").count() == 2


def test_one_no_is_a_veto(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail, TWO)
    say(held, alice)

    assert say(held, approver("carol"), approve=False, reason="No.") == State.DENIED

    assert Call.objects.get(pk=held).outcome == "Denied by carol. No."


def test_so_many_noes_as_the_rule_says(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail, Threshold(approve=1, deny=2))

    assert say(held, alice, approve=False) == State.HELD
    assert say(held, approver("carol"), approve=False) == State.DENIED


def test_the_first_that_is_met_decides(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail, TWO, Threshold(source="group:cfo"))
    chief = approver("carol", "cfo")

    assert say(held, chief) == State.QUEUED


def test_only_those_whom_the_rule_asks_may_vote(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail, Threshold(source="group:cfo"), Threshold(source="person:dora"))

    with pytest.raises(DecisionRefused, match="other people: cfo, dora"):
        say(held, alice)

    assert say(held, approver("dora")) == State.QUEUED


def test_votes_of_one_group_do_not_count_for_another(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    payments = Threshold(approve=2, source="group:payments")
    held = hold(scout, send_mail, payments, Threshold(approve=2, source="group:cfo"))

    assert say(held, approver("carol", "payments")) == State.HELD
    assert say(held, approver("dora", "cfo")) == State.HELD
    assert say(held, approver("erik", "cfo", "payments")) == State.QUEUED


def test_people_of_one_team_count_once(scout: Agent, send_mail: Tool) -> None:
    teams = Threshold(approve=2, source="group:payments", distinct=Distinct.TEAM)
    held = hold(scout, send_mail, teams)

    assert say(held, approver("carol", "payments", "north")) == State.HELD
    assert say(held, approver("dora", "payments", "north")) == State.HELD
    assert say(held, approver("erik", "payments", "south")) == State.QUEUED


def test_an_unconfirmed_yes_does_not_count_where_the_rule_wants_a_passkey(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = hold(scout, send_mail, Threshold(step_up=StepUp.PASSKEY))

    assert say(held, alice) == State.HELD
    assert say(held, approver("carol"), approve=False) == State.DENIED


def test_a_vote_may_be_taken_back_and_given_again(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = hold(scout, send_mail, TWO)
    say(held, alice)
    with pytest.raises(DecisionRefused, match="approved it already"):
        say(held, alice)

    back(held, alice)

    assert say(held, approver("carol")) == State.HELD
    assert say(held, alice) == State.QUEUED
    fallen = Vote.objects.exclude(fallen_at=None).get()
    assert (fallen.person, fallen.fallen_why) == (alice, "taken_back")
    assert Entry.objects.get(action="approval.taken_back").actor == "alice"


def test_what_is_decided_is_not_taken_back(scout: Agent, send_mail: Tool, alice: User) -> None:
    held = hold(scout, send_mail)
    say(held, alice)

    with pytest.raises(AlreadyDecided, match="alice answered first: Approved"):
        back(held, alice)


def test_who_did_not_vote_takes_nothing_back(scout: Agent, send_mail: Tool, alice: User) -> None:
    with pytest.raises(DecisionRefused, match="no vote"):
        back(hold(scout, send_mail, TWO), alice)


def leave_group(voter: User) -> None:
    voter.groups.remove(Group.objects.get(name="payments"))


def lose_role(voter: User) -> None:
    voter.groups.remove(Group.objects.get(name=Role.APPROVER))


def be_switched_off(voter: User) -> None:
    User.objects.filter(pk=voter.pk).update(is_active=False)


def own_the_agent(voter: User) -> None:
    Agent.objects.update(owner=voter)


@pytest.mark.parametrize("change", [leave_group, lose_role, be_switched_off, own_the_agent])
def test_who_may_no_longer_decide_does_not_let_it_be_sent(
    scout: Agent, send_mail: Tool, change: Any
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, source="group:payments"))
    carol = approver("carol", "payments")
    say(held, carol)
    assert say(held, approver("dora", "payments")) == State.QUEUED

    change(carol)

    assert claim(held, owner="here") is None
    call = Call.objects.get(pk=held)
    assert call.state == State.SUPERSEDED
    assert call.executed == "no"
    if change is not own_the_agent:
        assert "carol may no longer decide" in call.outcome


@pytest.mark.parametrize("change", [leave_group, lose_role, be_switched_off])
def test_who_may_no_longer_decide_is_not_counted_by_the_next_vote(
    scout: Agent, send_mail: Tool, change: Any
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, source="group:payments"))
    carol = approver("carol", "payments")
    say(held, carol)

    change(carol)

    assert say(held, approver("dora", "payments")) == State.HELD
    assert say(held, approver("erik", "payments")) == State.QUEUED
    assert claim(held, owner="here") is not None


def test_a_rule_that_asks_for_more_by_now_is_heard_at_the_claim(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = hold(scout, send_mail)
    approver("carol")
    say(held, alice)
    save_rule(Rule(name="Two", effect="ask", thresholds=[{"approve": 2}]), by=SYSTEM)

    assert claim(held, owner="here") is None

    assert (
        "asks for more than the votes that there are: 2 approvals"
        in Call.objects.get(pk=held).outcome
    )


def test_a_call_that_nobody_approved_is_not_sent(scout: Agent, send_mail: Tool) -> None:
    queued = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED, effect="ask")

    assert claim(queued, owner="here") is None

    assert Call.objects.get(pk=queued).outcome == "Nobody approved the call."
