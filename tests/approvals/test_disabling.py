"""What a user had ends when they are disabled, and does not come back with the account."""

from uuid import UUID

import pytest
from django.test import Client

from accounts import services as accounts
from accounts.models import Agent, RoleChange, User
from accounts.roles import Role
from accounts.tokens import look_up
from approvals import disabling
from approvals.models import Approval, Vote
from approvals.record_checks import unrecorded
from approvals.services import DecisionRefused
from approvals.standing_approvals import Terms, make
from audit.models import Entry
from audit.services import Actor
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Threshold
from registry.models import Tool
from tests.approvals.test_quorum import TWO, approver, hold, say
from tests.approvals.test_quorum import send_mail as send_mail
from tests.console import scenery

pytestmark = pytest.mark.django_db

COMPANY = Actor("system", None, "Example Ltd")


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def states(*ids: UUID) -> list[str]:
    return [Call.objects.get(pk=one).state for one in ids]


@pytest.mark.long
def test_their_vote_no_longer_counts_and_others_decide(
    scout: Agent, send_mail: Tool, alice: User, ada: User
) -> None:
    held = hold(scout, send_mail, TWO)
    say(held, alice)

    disabling.set_active(alice, False, by=ada)

    voided = Entry.objects.get(action="approval.voided")
    assert (voided.actor, voided.details["person"], voided.call_id) == ("ada", "alice", held)
    assert Vote.objects.get().fallen_why == Vote.Fallen.DISABLED
    assert say(held, approver("carol")) == State.HELD
    assert say(held, approver("dora")) == State.QUEUED
    assert unrecorded() == []


def test_their_vote_does_not_come_back_with_the_account(
    scout: Agent, send_mail: Tool, alice: User, ada: User
) -> None:
    held = hold(scout, send_mail, TWO)
    say(held, alice)
    # As it was done before, and as a vote at the same moment is left.
    accounts.set_active(alice, False, by=ada)
    assert Vote.objects.get().fallen_at is None

    disabling.set_active(alice, True, by=ada)

    assert say(held, approver("carol")) == State.HELD
    assert say(held, User.objects.get(pk=alice.pk)) == State.QUEUED


def test_a_denial_of_theirs_that_is_not_told_yet_is_none(
    scout: Agent, send_mail: Tool, alice: User, ada: User, settings: object
) -> None:
    settings.TAKE_BACK_S = 10  # type: ignore[attr-defined]
    held = hold(scout, send_mail, Threshold())
    say(held, alice, approve=False)
    assert Approval.objects.get().denies_at is not None

    disabling.set_active(alice, False, by=ada)

    assert Approval.objects.get().denies_at is None
    assert say(held, approver("carol")) == State.QUEUED


def test_open_calls_of_their_agents_end(
    scout: Agent, send_mail: Tool, bob: User, ada: User, alice: User
) -> None:
    pending = hold(scout, send_mail, TWO)
    queued = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.QUEUED)
    running = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "3"}, State.QUEUED)
    scenery.run(running)

    disabling.set_active(bob, False, by=COMPANY)

    assert states(pending, queued, running) == ["superseded", "cancelled", "running"]
    assert Call.objects.get(pk=running).cancel_asked_by == "Example Ltd"
    assert Entry.objects.get(action="call.cancel_asked").actor == "Example Ltd"
    disabling.set_active(bob, True, by=COMPANY)
    assert states(pending, queued) == ["superseded", "cancelled"]
    with pytest.raises(DecisionRefused):
        say(pending, alice)


def test_tokens_and_standing_approvals_are_revoked_for_good(
    scout: Agent, send_mail: Tool, alice: User, bob: User, ada: User
) -> None:
    token = accounts.issue_token(scout, by=bob)
    approved = hold(scout, send_mail, Threshold())
    say(approved, alice)
    grant = make(Call.objects.for_page().get(pk=approved), Terms(), by=alice)

    disabling.set_active(alice, False, by=COMPANY)
    disabling.set_active(bob, False, by=COMPANY)
    disabling.set_active(alice, True, by=COMPANY)
    disabling.set_active(bob, True, by=COMPANY)

    grant.refresh_from_db()
    assert grant.revoked_at is not None
    assert grant.revoked_by is None
    assert look_up(token) is None
    revoked = Entry.objects.filter(action__in=["token.revoked", "grant.revoked"])
    assert {entry.actor for entry in revoked} == {"Example Ltd"}
    assert RoleChange.objects.filter(person=alice).first().source == "Example Ltd"  # type: ignore[union-attr]


def test_sessions_stay_ended(alice: User, ada: User) -> None:
    browser = Client()
    browser.force_login(alice)

    disabling.set_active(alice, False, by=COMPANY)
    disabling.set_active(alice, True, by=COMPANY)

    assert browser.get("/profile/").status_code == 302


def test_what_is_so_already_changes_nothing(scout: Agent, bob: User, ada: User) -> None:
    token = accounts.issue_token(scout, by=bob)

    disabling.set_active(bob, True, by=COMPANY)

    assert look_up(token) is not None
    assert not Entry.objects.filter(action="person.enabled").exists()


def test_the_last_administrator_stays(ada: User) -> None:
    with pytest.raises(accounts.AccountRefused, match="last administrator"):
        disabling.set_active(ada, False, by=COMPANY)

    assert User.objects.get(pk=ada.pk).is_active
