"""What is tried with a held call, and who succeeds, in the words of the documents.

Each action says whether it was done. Those by SQL go past the code, as the application's own role.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from approvals import services
from approvals.models import Approval, Comment, Grant, Vote
from approvals.services import AlreadyDecided
from calls.models import Amendment, Call, Freeze
from calls.queue.claiming import claim
from calls.record.states import State
from policies.thresholds import Threshold
from tests.approvals.test_editing import change
from tests.console import scenery
from tests.forms import submitted

ROLES: list[Role | None] = [*Role, None]
RELATIONS = (
    "none",
    "owner",
    "requester",
    "creator",
    "issuer",
    "editor",
    # Let in by the agent's owner, and confirmed by nobody else.
    "owner's guest",
    # In the group that the rule asks, and no longer; in the role, and no longer; switched off.
    "left the group",
    "lost the role",
    "switched off",
)
TWO = Threshold(approve=2, source="group:payments")


@dataclass(frozen=True)
class Scene:
    """`held`: the call; `alone`: another, which this person alone approved if they could;
    `granted`: a standing grant of somebody else's."""

    client: Client
    person: User
    other: User
    held: UUID
    alone: UUID
    granted: int
    frozen: Freeze


# -- What is expected, in the words of the documents -----------------------------------------------

SEE_QUEUE = {Role.APPROVER, Role.AUDITOR}
SEE_PAYLOAD = {Role.APPROVER, Role.AUDITOR}
SEE_GRANTS = {Role.ADMINISTRATOR, Role.APPROVER, Role.AUDITOR}
FREEZE = {Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER}
RECOVER = {Role.ADMINISTRATOR, Role.OPERATOR}
WITHDRAW = {Role.ADMINISTRATOR, Role.OPERATOR}
CONCERNED = ("owner", "requester", "creator", "issuer", "editor", "owner's guest")
# Nobody, whatever they are.
NEVER = {"edit and approve alone", "recover from one's own freeze", "decide by SQL"}


def expected(role: Role | None, relation: str) -> set[str]:
    """The actions that succeed."""
    if relation in ("lost the role", "switched off"):
        role = None
    may = _seen(role) | _stopped(role, relation) | _said(role, relation)
    if role == Role.APPROVER:
        may |= _decided(relation)
    if role == Role.ADMINISTRATOR:
        may |= {"revoke a grant"}
    return may


def _seen(role: Role | None) -> set[str]:
    may = {"see the queue", "see the card"} if role in SEE_QUEUE else set()
    return may | ({"see the grants"} if role in SEE_GRANTS else set())


def _stopped(role: Role | None, relation: str) -> set[str]:
    may = {"freeze"} if role in FREEZE else set()
    if role in RECOVER:
        may |= {"recover"}
    if role in WITHDRAW or (relation == "requester" and role is not None):
        may |= {"withdraw"}
    return may


def _said(role: Role | None, relation: str) -> set[str]:
    decides, concerned = role == Role.APPROVER, relation in CONCERNED
    readable = role in SEE_PAYLOAD or (relation == "requester" and role is not None)
    may = {"see the talk"} if readable else set()
    if readable and (decides or concerned):
        may |= {"comment"}
    if decides:
        may |= {"ask", "ask by SQL"}
    # The database knows who is concerned, and not who may read what.
    if decides or concerned:
        may |= {"comment by SQL"}
    return may


def _decided(relation: str) -> set[str]:
    """Of approvers. What they said while they might falls only when they take it back."""
    match relation:
        case "none":
            votes = {"approve", "refuse", "vote by SQL", "take back", "be counted at the claim"}
            return votes | {"edit", "grant", "grant by SQL"}
        case "editor" | "owner's guest":
            # For others to approve.
            return {"edit"}
        case "left the group":
            # Of those who decide still, though not on this.
            return {"take back", "edit", "grant", "grant by SQL"}
        case _:
            return set()


# -- What is tried --------------------------------------------------------------------------------


def post(scene: Scene, verb: str, *args: Any, **fields: str) -> None:
    digest = Call.objects.get(pk=scene.held).call_digest
    scene.client.post(reverse(verb, args=args), {"seen": digest, **fields})


def sees(scene: Scene, verb: str, *args: Any) -> bool:
    return scene.client.get(reverse(verb, args=args)).status_code == 200


def votes(scene: Scene) -> int:
    return Vote.objects.standing().filter(person=scene.person, approval=scene.held).count()


def approve(scene: Scene) -> bool:
    """Is a further vote taken?"""
    before = votes(scene)
    post(scene, "approvals:approve", scene.held)
    return votes(scene) == before + 1


def refuse(scene: Scene) -> bool:
    post(scene, "approvals:refuse", scene.held)
    return Call.objects.get(pk=scene.held).state == State.DENIED


def take_back(scene: Scene) -> bool:
    """What the person said while nothing stood in the way."""
    if votes(scene) == 0 and not approve(scene):
        return False
    post(scene, "approvals:take_back", scene.held)
    return votes(scene) == 0


def edit(scene: Scene) -> bool:
    change(scene.client, scene.held, subject=f"Of {scene.person.username}")
    made = Amendment.objects.filter(call=scene.held).last()
    return made is not None and made.person_id == scene.person.pk and b'"Of pat"' in made.arguments


def edit_and_approve_alone(scene: Scene) -> bool:
    edit(scene)
    return approve(scene) and votes(scene) > 0 and b'"Of pat"' in to_send(scene)


def to_send(scene: Scene) -> bytes:
    return Call.objects.select_related("amendment").get(pk=scene.held).to_send


def comment(scene: Scene) -> bool:
    post(scene, "approvals:say", scene.held, text="Hm.")
    return said(scene, "comment")


def ask(scene: Scene) -> bool:
    post(scene, "approvals:say", scene.held, text="Why?", to="agent")
    return said(scene, "question")


def said(scene: Scene, kind: str) -> bool:
    return Comment.objects.filter(person=scene.person, kind=kind).exists()


def grant(scene: Scene) -> bool:
    address = reverse("approvals:new_grant", args=[scene.alone])
    page = scene.client.get(address).content.decode()
    scene.client.post(address, submitted(page, do="make"))
    return Grant.objects.filter(owner=scene.person).exists()


def revoke(scene: Scene) -> bool:
    post(scene, "approvals:revoke", scene.granted)
    return Grant.objects.get(pk=scene.granted).revoked_at is not None


def freeze(scene: Scene) -> bool:
    post(scene, "approvals:freeze", what="everything", reason="Stop.")
    return Freeze.objects.holding().filter(by=scene.person).exists()


def recover(scene: Scene) -> bool:
    post(scene, "approvals:end_freeze", scene.frozen.pk, why="Fine.")
    return not Freeze.objects.holding().exists()


def recover_alone(scene: Scene) -> bool:
    if not freeze(scene):
        return False
    post(scene, "approvals:end_freeze", Freeze.objects.holding().get().pk, why="Fine.")
    return not Freeze.objects.holding().exists()


def withdraw(scene: Scene) -> bool:
    post(scene, "approvals:cancel", scene.held)
    return Call.objects.get(pk=scene.held).state == State.WITHDRAWN


def be_counted_at_the_claim(scene: Scene) -> bool:
    """Is the call sent on this person's word and another's?"""
    if votes(scene) == 0:
        approve(scene)
    try:
        say(scene.held, scene.other)
    except AlreadyDecided:
        # For who came to own the agent: the call is superseded, and takes no vote.
        return False
    if Call.objects.get(pk=scene.held).state != State.QUEUED:
        return False
    return claim(scene.held, owner="here") is not None


def decide_by_sql(scene: Scene) -> bool:
    """Their word for all who are asked, without a vote or with one."""
    vote_past_the_code(scene.held, scene.person)
    return written(
        "UPDATE approvals_approval SET state = 'approved', decided_by_id = %s WHERE call_id = %s",
        *(scene.person.pk, scene.held),
    )


def say_by_sql(scene: Scene, kind: str) -> bool:
    return written(
        "INSERT INTO approvals_comment (approval_id, kind, person_id, text, at)"
        " VALUES (%s, %s, %s, 'Hm.', now())",
        *(scene.held, kind, scene.person.pk),
    )


def grant_by_sql(scene: Scene) -> bool:
    return written(
        "INSERT INTO approvals_grant (call_id, agent_id, tool_id, definition_id, owner_id,"
        " arguments, bounds, thresholds, step_up, max_uses, uses, summed, days, start_minute,"
        " end_minute, time_zone, note, created_at, expires_at)"
        " SELECT id, agent_id, tool_id, definition_id, %s, arguments, '[]', '[]', '', 1, 0, 0,"
        " '[]', 0, 1440, 'UTC', '', now(), now() + interval '1 hour' FROM calls_call WHERE id = %s",
        *(scene.person.pk, scene.alone),
    )


ACTIONS: dict[str, Callable[[Scene], bool]] = {
    "see the queue": lambda scene: sees(scene, "approvals:queue"),
    "see the card": lambda scene: sees(scene, "approvals:detail", scene.held),
    "see the talk": lambda scene: sees(scene, "approvals:talk", scene.held),
    "see the grants": lambda scene: sees(scene, "approvals:grants"),
    "approve": approve,
    "refuse": refuse,
    "take back": take_back,
    "edit": edit,
    "edit and approve alone": edit_and_approve_alone,
    "comment": comment,
    "ask": ask,
    "grant": grant,
    "revoke a grant": revoke,
    "freeze": freeze,
    "recover": recover,
    "recover from one's own freeze": recover_alone,
    "withdraw": withdraw,
    "be counted at the claim": be_counted_at_the_claim,
    "vote by SQL": lambda scene: vote_past_the_code(scene.held, scene.person),
    "decide by SQL": decide_by_sql,
    "comment by SQL": lambda scene: say_by_sql(scene, "comment"),
    "ask by SQL": lambda scene: say_by_sql(scene, "question"),
    "grant by SQL": grant_by_sql,
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


def written(text: str, *values: Any) -> bool:
    try:
        sql(text, *values)
    except DatabaseError:
        return False
    return True


def vote_past_the_code(held: UUID, person: User, **changes: Any) -> bool:
    digest = Call.objects.get(pk=held).call_digest
    row = {"approve": True, "digest": digest, "fallen": None, "voter": person.pk, **changes}
    return written(
        "INSERT INTO approvals_vote (approval_id, person_id, approve, reason, seen_digest, at,"
        " fallen_at) VALUES (%s, %s, %s, '', %s, now(), %s)",
        *(held, row["voter"], row["approve"], row["digest"], row["fallen"]),
    )


def colleague(name: str, group: Any, *roles: Role) -> User:
    made = scenery.person(name, *roles)
    made.groups.add(group)
    return made
