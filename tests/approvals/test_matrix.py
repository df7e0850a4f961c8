"""Who may do what to a held call: every role, in every relation to it, through the pages' doors and
past them, as the application's own role in the database."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes, services, standing_approvals
from approvals.models import Approval
from approvals.services import DecisionRefused
from approvals.standing_approvals import Terms
from calls.models import Call, Freeze
from calls.record.states import State
from calls.record.transitions import Amending, amend_now
from registry.models import Tool
from tests.approvals.matrix import (
    ACTIONS,
    CONCERNED,
    NEVER,
    RELATIONS,
    ROLES,
    TWO,
    UNDER_A_FREEZE,
    Scene,
    colleague,
    expected,
    say,
    sql,
    vote_past_the_code,
)
from tests.console import scenery

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)
TWICE: dict[str, Any] = {"thresholds": (TWO,)}


# -- The scene ------------------------------------------------------------------------------------


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def payments(db: None) -> Group:
    return Group.objects.create(name="payments")


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=(TWO,))


def relate(person: User, relation: str, scout: Agent, send_mail: Tool, held: UUID) -> UUID:
    match relation:
        case "owner":
            Agent.objects.filter(pk=scout.pk).update(owner=person)
        case "requester":
            # The agent was theirs when it asked.
            own = {"person_id": person.pk, "person": person.username, "thresholds": (TWO,)}
            mail = {**scenery.MAIL, "body": "Mine."}
            return scenery.call(scout, send_mail, mail, State.HELD, **own)
        case "creator":
            return scenery.call(
                made_by(person, scout), send_mail, scenery.MAIL, State.HELD, **TWICE
            )
        case "issuer":
            mail = {**scenery.MAIL, "body": "Issued."}
            token = {"token_id": issued_by(person, scout)}
            return scenery.call(scout, send_mail, mail, State.HELD, **token, **TWICE)
        case "owner's guest":
            guest = {"invited_by": scout.owner, "unconfirmed_until": timezone.now() + WEEK}
            User.objects.filter(pk=person.pk).update(**guest)
        case "editor":
            call = Call.objects.get(pk=held)
            new = b'{"to":["x@example.org"],"subject":"s","body":"b"}'
            assert amend_now(
                Amending(held, call.call_digest, call.statement, new, person=person.actor)
            )
    return held


def made_by(person: User, scout: Agent) -> Agent:
    values = {"owner": scout.owner, "created_by": person}
    return Agent.objects.get_or_create(name="courier", defaults=values)[0]


def issued_by(person: User, agent: Agent) -> int:
    accounts.issue_token(agent, by=person)
    return agent.tokens.latest("pk").pk


def remove(person: User, relation: str) -> None:
    match relation:
        case "left the group":
            person.groups.remove(Group.objects.get(name="payments"))
        case "lost the role":
            person.groups.set(Group.objects.filter(name="payments"))
        case "switched off":
            User.objects.filter(pk=person.pk).update(is_active=False)


def approved_alone(scout: Agent, send_mail: Tool, person: User, relation: str) -> UUID:
    """In whatever relation the person has to the call now; by nobody if they may not."""
    agent, changes = scout, {}
    match relation:
        case "requester":
            changes = {"person_id": person.pk, "person": person.username}
        case "creator":
            agent = made_by(person, scout)
        case "issuer":
            changes = {"token_id": issued_by(person, scout)}
    mail = {**scenery.MAIL, "body": "Alone."}
    made = scenery.call(agent, send_mail, mail, State.HELD, **changes)
    if relation in ("editor", "owner's guest"):
        relate(person, relation, scout, send_mail, made)
    try:
        say(made, person)
    except DecisionRefused:
        assert person.groups.filter(name=Role.APPROVER).count() == 0 or relation in CONCERNED
    return made


def granted_by(person: User, scout: Agent, send_mail: Tool) -> int:
    made = scenery.call(scout, send_mail, {**scenery.MAIL, "body": "Granted."}, State.HELD)
    say(made, person)
    return standing_approvals.make(Call.objects.for_page().get(pk=made), Terms(), by=person).pk


# Approvers are who decides; what the others may not is walked by the long tests.
EACH_ROLE = [
    pytest.param(role, id=str(role), marks=() if role == Role.APPROVER else pytest.mark.long)
    for role in ROLES
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("role", EACH_ROLE)
def test_every_cell(
    client: Client,
    scout: Agent,
    send_mail: Tool,
    held: UUID,
    payments: Group,
    role: Role | None,
    relation: str,
) -> None:
    person = colleague("pat", payments, *([role] if role else []))
    carol = colleague("carol", payments, Role.APPROVER)
    # A third of the group: no edit is taken that two others cannot approve.
    colleague("dora", payments, Role.APPROVER)
    granted = granted_by(carol, scout, send_mail)
    alone = approved_alone(scout, send_mail, person, relation)
    held = relate(person, relation, scout, send_mail, held)
    client.force_login(person)
    if role == Role.APPROVER and relation in ("left the group", "lost the role", "switched off"):
        say(held, person)
    remove(person, relation)
    person = User.objects.get(pk=person.pk)
    scene = Scene(client, person, carol, held, alone, granted, Freeze())

    done = {action for action in ACTIONS if _tried(scene, action)}

    assert done == expected(role, relation)


def _tried(scene: Scene, action: str) -> bool:
    """In the scene as it was, and undone."""
    before = transaction.savepoint()
    try:
        if action in UNDER_A_FREEZE:
            olga = User.objects.get(username="olga")
            scene = replace(scene, frozen=freezes.begin(by=olga, reason="Stop."))
        return ACTIONS[action](scene)
    finally:
        transaction.savepoint_rollback(before)


def test_the_matrix_is_whole() -> None:
    cells = set(product(ROLES, RELATIONS, ACTIONS))
    assert len(cells) == 6 * 10 * 23
    told = {action for role in ROLES for what in RELATIONS for action in expected(role, what)}
    assert told | NEVER == set(ACTIONS)
    assert not told & NEVER


# -- Past the code --------------------------------------------------------------------------------


@pytest.fixture
def pair(payments: Group) -> tuple[User, User]:
    return colleague("pat", payments, Role.APPROVER), colleague("carol", payments, Role.APPROVER)


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": ""},
        {"digest": "0" * 64},
        {"fallen": "2026-01-01"},
        {"voter": 0},
    ],
)
def test_a_vote_on_something_else_is_not_written(
    held: UUID, pair: tuple[User, User], changes: dict[str, Any]
) -> None:
    assert not vote_past_the_code(held, pair[0], **changes)
    assert vote_past_the_code(held, pair[0])
    assert not vote_past_the_code(held, pair[0])


def test_votes_on_what_is_decided_are_not_written(held: UUID, pair: tuple[User, User]) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    digest = approval.call.call_digest
    services.vote(approval, by=pair[0], approve=False, seen_digest=digest)

    assert not vote_past_the_code(held, pair[1])


FORGED = [
    "UPDATE approvals_approval SET state = 'approved', decided_by_id = {pat}",
    "UPDATE approvals_approval SET state = 'denied', decided_by_id = {pat}",
    "UPDATE approvals_approval SET state = 'expired'",
    "UPDATE approvals_approval SET asked_at = now()",
    "DELETE FROM approvals_approval",
    "TRUNCATE approvals_approval CASCADE",
    "UPDATE approvals_vote SET person_id = {carol}",
    "UPDATE approvals_vote SET seen_digest = 'x'",
    "UPDATE approvals_vote SET fallen_at = now(), fallen_why = ''",
    "UPDATE approvals_vote SET fallen_at = now(), fallen_why = 'taken_back', approve = false",
    "DELETE FROM approvals_vote",
    "TRUNCATE approvals_vote",
    "ALTER TABLE approvals_vote DISABLE TRIGGER ALL",
    "DROP TRIGGER approvals_released ON calls_call",
    "CREATE OR REPLACE FUNCTION approvals_may_decide(person bigint) RETURNS boolean"
    " LANGUAGE sql AS 'SELECT true'",
    # The thresholds, under a vote that stands.
    'UPDATE approvals_approval SET thresholds = \'[{{"approve": 1, "deny": 1, "from": "",'
    ' "distinct": "person", "step_up": ""}}]\'',
]


@pytest.mark.parametrize("statement", FORGED)
def test_no_decision_is_forged(held: UUID, pair: tuple[User, User], statement: str) -> None:
    say(held, pair[0])

    with pytest.raises(DatabaseError):
        sql(statement.format(pat=pair[0].pk, carol=pair[1].pk))

    assert Approval.objects.get(pk=held).state == Approval.State.WAITING


def test_what_was_decided_stays(held: UUID, pair: tuple[User, User]) -> None:
    for person in pair:
        say(held, person)

    for statement in (
        "UPDATE approvals_approval SET state = 'waiting'",
        "UPDATE approvals_approval SET state = 'denied'",
        "UPDATE approvals_vote SET fallen_at = now(), fallen_why = 'taken_back'",
    ):
        with pytest.raises(DatabaseError):
            sql(statement)


def test_a_call_does_not_leave_peoples_hands_unapproved(
    held: UUID, pair: tuple[User, User]
) -> None:
    say(held, pair[0])

    sql(
        "INSERT INTO audit_entry (action, actor_kind, actor, call_id, seq, from_state, to_state)"
        " VALUES ('call.approved', 'system', 'forger', %s, 2, 'held', 'approved')",
        held,
    )
    with pytest.raises(DatabaseError, match="nobody approved this call"):
        sql("UPDATE calls_call SET state = 'approved', seq = 2 WHERE id = %s", held)
