"""Who may do what to a held call: every role, in every relation to it, through the pages' doors and
past them, as the application's own role in the database."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes, services
from approvals.models import Approval, Comment, Vote
from calls.claiming import claim
from calls.models import Call, Freeze
from calls.states import State
from calls.transitions import Amending, amend_now
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db

ROLES: list[Role | None] = [*Role, None]
RELATIONS = (
    "none",
    "owner",
    "requester",
    "editor",
    # In the group that the rule asks, and no longer; in the role, and no longer; switched off.
    "left the group",
    "lost the role",
    "switched off",
)
TWO = Threshold(approve=2, source="group:payments")


@dataclass(frozen=True)
class Scene:
    client: Client
    person: User
    other: User
    held: UUID
    frozen: Freeze


# -- What is expected, in the words of the documents -----------------------------------------------

DECIDE = {Role.APPROVER}
SEE_QUEUE = {Role.APPROVER, Role.AUDITOR}
SEE_PAYLOAD = {Role.APPROVER, Role.AUDITOR}
FREEZE = {Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER}
RECOVER = {Role.ADMINISTRATOR, Role.OPERATOR}
WITHDRAW = {Role.ADMINISTRATOR, Role.OPERATOR}


def expected(role: Role | None, relation: str) -> set[str]:
    """The actions that succeed."""
    if relation in ("lost the role", "switched off"):
        role = None
    may: set[str] = set()
    if role in SEE_QUEUE:
        may |= {"see the queue", "see the card", "see the talk"}
    if role in DECIDE and relation == "none":
        may |= {"approve", "refuse", "vote by SQL", "take back"}
    if role in DECIDE and relation == "left the group":
        # Given while it was right to: it no longer counts, and may still be taken back.
        may |= {"take back"}
    if role in DECIDE:
        may |= {"ask"}
    concerned = relation in ("owner", "requester", "editor")
    readable = role in SEE_PAYLOAD or (relation == "requester" and role is not None)
    if readable and (role in DECIDE or concerned):
        may |= {"comment"}
    if readable:
        may |= {"see the talk"}
    if role in FREEZE:
        may |= {"freeze"}
    if role in RECOVER:
        may |= {"recover"}
    if role in WITHDRAW or (relation == "requester" and role is not None):
        may |= {"withdraw"}
    if concerned or role is None or role not in DECIDE:
        return may
    if relation == "none":
        may |= {"be counted at the claim"}
    return may


# -- What is tried --------------------------------------------------------------------------------


def post(scene: Scene, verb: str, *args: Any, **fields: str) -> None:
    digest = Call.objects.get(pk=scene.held).call_digest
    scene.client.post(reverse(verb, args=args), {"seen": digest, **fields})


def sees(scene: Scene, verb: str, *args: Any) -> bool:
    return scene.client.get(reverse(verb, args=args)).status_code == 200


def votes(scene: Scene) -> int:
    return Vote.objects.standing().filter(person=scene.person).count()


def approve(scene: Scene) -> bool:
    """Is a further vote taken?"""
    before = votes(scene)
    post(scene, "approvals:approve", scene.held)
    return votes(scene) == before + 1


def refuse(scene: Scene) -> bool:
    post(scene, "approvals:refuse", scene.held)
    return Call.objects.get(pk=scene.held).state == State.DENIED


def vote_by_sql(scene: Scene) -> bool:
    return vote_past_the_code(scene.held, scene.person)


def take_back(scene: Scene) -> bool:
    """What the person said while nothing stood in the way."""
    if votes(scene) == 0 and not approve(scene):
        return False
    post(scene, "approvals:take_back", scene.held)
    return votes(scene) == 0


def comment(scene: Scene) -> bool:
    post(scene, "approvals:say", scene.held, text="Hm.")
    return Comment.objects.filter(person=scene.person, kind="comment").exists()


def ask(scene: Scene) -> bool:
    post(scene, "approvals:say", scene.held, text="Why?", to="agent")
    return Comment.objects.filter(person=scene.person, kind="question").exists()


def freeze(scene: Scene) -> bool:
    post(scene, "approvals:freeze", what="everything", reason="Stop.")
    return Freeze.objects.holding().filter(by=scene.person).exists()


def recover(scene: Scene) -> bool:
    post(scene, "approvals:end_freeze", scene.frozen.pk, why="Fine.")
    return not Freeze.objects.holding().exists()


def withdraw(scene: Scene) -> bool:
    post(scene, "approvals:cancel", scene.held)
    return Call.objects.get(pk=scene.held).state == State.WITHDRAWN


def be_counted_at_the_claim(scene: Scene) -> bool:
    """Is the call sent on this person's word and another's?"""
    if votes(scene) == 0:
        approve(scene)
    say(scene.held, scene.other)
    if Call.objects.get(pk=scene.held).state != State.QUEUED:
        return False
    return claim(scene.held, owner="here") is not None


ACTIONS: dict[str, Callable[[Scene], bool]] = {
    "see the queue": lambda scene: sees(scene, "approvals:queue"),
    "see the card": lambda scene: sees(scene, "approvals:detail", scene.held),
    "see the talk": lambda scene: sees(scene, "approvals:talk", scene.held),
    "approve": approve,
    "refuse": refuse,
    "vote by SQL": vote_by_sql,
    "take back": take_back,
    "comment": comment,
    "ask": ask,
    "freeze": freeze,
    "recover": recover,
    "withdraw": withdraw,
    "be counted at the claim": be_counted_at_the_claim,
}
# While something is frozen nothing is approved, which is another test's matter.
UNDER_A_FREEZE = {"recover"}


def say(held: UUID, person: User) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    digest = approval.call.call_digest
    services.vote(approval, by=person, approve=True, seen_digest=digest)


def sql(text: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(text, values)


def vote_past_the_code(held: UUID, person: User, **changes: Any) -> bool:
    digest = Call.objects.get(pk=held).call_digest
    row = {"approve": True, "digest": digest, "fallen": None, "voter": person.pk, **changes}
    try:
        sql(
            "INSERT INTO approvals_vote (approval_id, person_id, approve, reason, seen_digest, at,"
            " fallen_at) VALUES (%s, %s, %s, '', %s, now(), %s)",
            *(held, row["voter"], row["approve"], row["digest"], row["fallen"]),
        )
    except DatabaseError:
        return False
    return True


# -- The scene ------------------------------------------------------------------------------------


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.get()


@pytest.fixture
def payments(db: None) -> Group:
    return Group.objects.create(name="payments")


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=(TWO,))


def colleague(name: str, payments: Group, *roles: Role) -> User:
    made = scenery.person(name, *roles)
    made.groups.add(payments)
    return made


def relate(person: User, relation: str, scout: Agent, send_mail: Tool, held: UUID) -> UUID:
    match relation:
        case "owner":
            Agent.objects.filter(pk=scout.pk).update(owner=person)
        case "requester":
            # The agent was theirs when it asked.
            own = {"person_id": person.pk, "person": person.username, "thresholds": (TWO,)}
            mail = {**scenery.MAIL, "body": "Mine."}
            return scenery.call(scout, send_mail, mail, State.HELD, **own)
        case "editor":
            call = Call.objects.get(pk=held)
            new = b'{"to":["x@example.org"],"subject":"s","body":"b"}'
            assert amend_now(
                Amending(held, call.call_digest, call.statement, new, person=person.actor)
            )
    return held


def remove(person: User, relation: str) -> None:
    match relation:
        case "left the group":
            person.groups.remove(Group.objects.get(name="payments"))
        case "lost the role":
            person.groups.set(Group.objects.filter(name="payments"))
        case "switched off":
            User.objects.filter(pk=person.pk).update(is_active=False)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("role", ROLES, ids=[str(role) for role in ROLES])
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
    other = colleague("carol", payments, Role.APPROVER)
    held = relate(person, relation, scout, send_mail, held)
    client.force_login(person)
    if role in DECIDE and relation in ("left the group", "lost the role", "switched off"):
        say(held, person)
    remove(person, relation)
    scene = Scene(client, User.objects.get(pk=person.pk), other, held, Freeze())

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
    assert len(cells) == 6 * 7 * 13
    told = {action for role in ROLES for what in RELATIONS for action in expected(role, what)}
    assert told == set(ACTIONS)


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
