"""What an approver is shown of held calls: facts of ours, and claims marked as claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.models import User
from approvals import history, standing, stepping
from approvals.history import Decided
from approvals.models import Approval
from approvals.reasons import SHORT
from approvals.risk import Risk, risk
from approvals.standing import Facts
from approvals.stepping import Step
from approvals.talk import Talk, talks
from approvals.votes import Picture, pictures
from calls.changes import Edited, edited
from calls.history import Before, Earlier, before
from calls.models import Call
from registry.arguments import Arguments, arguments

# Of an agent that had asked for nothing yet.
FIRST = Before([], is_usual=False)


@dataclass(frozen=True, slots=True)
class Again:
    """Its agent asks on purpose for the same again; `call`: the one before, as far as known."""

    call: Call | None


@dataclass(frozen=True, slots=True)
class Card:
    approval: Approval
    call: Call
    arguments: Arguments
    risk: Risk
    rule: str
    # The agent's last calls before this one, and decisions on calls like it.
    before: list[Earlier]
    similar: list[Decided]
    # Why this person may not decide; empty if they may.
    obstacle: str
    votes: Picture
    talk: Talk
    # What people made of the arguments.
    edited: Edited | None
    # What this person's yes asks for beyond the session.
    step: Step
    again: Again | None = None
    # Why what they just pressed was not done, and what they had written.
    error: str = ""
    typed: str = ""

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING

    @property
    def reasons(self) -> list[tuple[str, str]]:
        return [(name, str(short)) for name, short in SHORT.items()]

    @property
    def hints(self) -> dict[str, bool]:
        return self.call.definition.hints if self.call.definition else {}


@dataclass(frozen=True, slots=True)
class Spoken:
    """Of a card that waits, what people add while it does."""

    approval: Approval
    votes: Picture
    talk: Talk

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING


def spoken(approvals: Sequence[Approval], person: User) -> list[Spoken]:
    if not approvals:
        return []
    facts = standing.facts([approval.pk for approval in approvals])
    votes, said = pictures(approvals, person, facts), talks(approvals, person, facts)
    return [Spoken(one, votes[one.pk], said[one.pk]) for one in approvals]


def card(approval: Approval, person: User, *, error: str = "", typed: str = "") -> Card:
    return cards([approval], person, error=error, typed=typed)[0]


def cards(
    approvals: Iterable[Approval], person: User, *, error: str = "", typed: str = ""
) -> list[Card]:
    """As many questions to the database for a page of cards as for one."""
    approvals = list(approvals)
    # At most rings, nothing that a page shows was decided.
    if not approvals:
        return []
    ids = [approval.pk for approval in approvals]
    known = _known(approvals, ids, person)
    return [_card(approval, known, person, error, typed) for approval in approvals]


@dataclass(frozen=True, slots=True)
class Known:
    """What is asked for all cards of a page at once."""

    facts: dict[UUID, Facts]
    before: dict[UUID, Before]
    similar: dict[UUID, list[Decided]]
    votes: dict[UUID, Picture]
    talks: dict[UUID, Talk]
    steps: dict[UUID, Step]
    again: dict[UUID, Again]


def _known(approvals: list[Approval], ids: list[UUID], person: User) -> Known:
    facts = standing.facts(ids)
    return Known(
        facts,
        before(ids),
        history.similar(ids),
        pictures(approvals, person, facts),
        talks(approvals, person, facts),
        stepping.steps((one for one in approvals if one.state == one.State.WAITING), person),
        _again(facts),
    )


def _again(facts: dict[UUID, Facts]) -> dict[UUID, Again]:
    meant = {call_id: known.again for call_id, known in facts.items() if known.again is not None}
    if not meant:
        return {}
    earlier = Call.objects.in_bulk([UUID(one) for one in meant.values() if one])
    return {pk: Again(earlier.get(UUID(one)) if one else None) for pk, one in meant.items()}


def _card(approval: Approval, known: Known, person: User, error: str, typed: str) -> Card:
    call, pk = approval.call, approval.pk
    given, past = call.exact_arguments, known.before.get(pk, FIRST)
    facts, votes = known.facts[pk], known.votes[pk]
    return Card(
        approval=approval,
        call=call,
        arguments=arguments(_schema(call), given),
        risk=risk(call, given, used_lately=past.is_usual),
        rule=facts.rule,
        before=past.calls,
        similar=known.similar.get(pk, []),
        obstacle=standing.hindrance(
            approval, person, facts.excluded, votes.own, person.group_names
        ),
        votes=votes,
        talk=known.talks[pk],
        edited=edited(call),
        step=known.steps.get(pk, stepping.NO_STEP),
        again=known.again.get(pk),
        error=error,
        typed=typed,
    )


def _schema(call: Call) -> dict[str, Any]:
    content: dict[str, Any] = call.definition.content if call.definition else {}
    return content.get("inputSchema") or {}
