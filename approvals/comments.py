"""Comments of people and the agent on a held call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from accounts.models import User
from approvals import eligibility
from approvals.eligibility import EligibilityFacts
from approvals.models import Approval, Comment
from audit.services import Actor, record
from core.english import gettext as _
from core.errors import CountersignError
from core.live import notify_on_commit
from policies.thresholds import DECIDE

LONGEST = 4000
# Of one call: what is decided on stays readable, and an agent cannot flood those who decide.
MOST_BY_PEOPLE = 200
MOST_BY_AGENT = 20


class CommentRefused(CountersignError):
    """It was not taken; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Discussion:
    """The comments as one person sees them."""

    said: list[Comment]
    may_say: bool = False
    may_ask: bool = False


def discussions(
    approvals: Sequence[Approval], person: User, facts: Mapping[UUID, EligibilityFacts]
) -> dict[UUID, Discussion]:
    said: dict[UUID, list[Comment]] = defaultdict(list)
    discussed = [one for one in approvals if facts[one.pk].has_comments]
    for comment in Comment.objects.filter(approval__in=discussed).for_card():
        said[comment.approval_id].append(comment)
    return {
        one.pk: _discussion(one, person, said[one.pk], facts[one.pk].excluded) for one in approvals
    }


def _discussion(
    approval: Approval, person: User, said: list[Comment], excluded: Collection[int]
) -> Discussion:
    if approval.state != Approval.State.WAITING:
        return Discussion(said)
    return Discussion(said, _may_comment(person, excluded), person.has_perm(DECIDE))


def _may_comment(person: User, excluded: Collection[int]) -> bool:
    """Whether the person may comment: deciders, and those on whose behalf the call is made."""
    return person.is_active and (person.has_perm(DECIDE) or person.pk in excluded)


@transaction.atomic
def say(
    approval: Approval, *, by: User, text: str, ask_agent: bool = False, via: str = ""
) -> Comment:
    """A comment, or a question to the agent. `via`: the chat account, for the entry, where it was
    not on our page. Raises CommentRefused."""
    may = _may_comment(by, eligibility.excluded_people(approval.call))
    if not may or (ask_agent and not by.has_perm(DECIDE)):
        raise CommentRefused(_("You are not among those who decide."))
    kind = Comment.Kind.QUESTION if ask_agent else Comment.Kind.COMMENT
    _hold(approval.pk)
    _check(text, approval.comments.filter(agent=None).count(), MOST_BY_PEOPLE)
    made = Comment.objects.create(approval=approval, kind=kind, person=by, text=text)
    _record(made, by.actor, via)
    return made


@transaction.atomic
def answer(call_id: UUID, *, agent: Actor, text: str) -> Comment:
    """Records the agent's explanation (`countersign.justify`). Raises CommentRefused."""
    _hold(call_id)
    approval = Approval.objects.select_related("call").get(pk=call_id)
    if approval.call.agent_id != agent.id:
        raise CommentRefused(_("No call of yours that is pending approval has this call_id."))
    _check(text, approval.comments.filter(person=None).count(), MOST_BY_AGENT)
    made = Comment.objects.create(
        approval=approval, kind=Comment.Kind.ANSWER, agent_id=agent.id, text=text
    )
    _record(made, agent)
    return made


def open_questions(call_id: UUID) -> list[str]:
    """Questions that people asked since the agent's last comment."""
    said = list(Comment.objects.filter(approval_id=call_id).values_list("kind", "text"))
    last = max(
        (n for n, (kind, _text) in enumerate(said) if kind == Comment.Kind.ANSWER), default=-1
    )
    return [text for kind, text in said[last + 1 :] if kind == Comment.Kind.QUESTION]


def _hold(call_id: UUID) -> None:
    """One at a time, and only while the call waits."""
    waits = Approval.objects.waiting().select_for_update().filter(pk=call_id)
    if not waits.values_list("pk"):
        raise CommentRefused(_("The call is no longer pending approval."))


def _check(text: str, there_are: int, most: int) -> None:
    if not text.strip():
        raise CommentRefused(_("Say something."))
    if "\0" in text or len(text) > LONGEST:
        raise CommentRefused(_("At most %(n)d characters, none of them NUL.") % {"n": LONGEST})
    if there_are >= most:
        raise CommentRefused(_("There are %(n)d already: enough was said.") % {"n": most})


def _record(made: Comment, actor: Actor, via: str = "") -> None:
    call = made.approval.call
    record(
        f"approval.{made.kind}",
        actor=actor,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        tool=call.tool_name,
        text=made.text,
        **({"via": via} if via else {}),
    )
    notify_on_commit("queue", "calls", f"call.{call.pk}")
