"""What an approver is shown of held calls: facts of ours, and claims marked as claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.models import User
from approvals import history, talk
from approvals.history import Decided
from approvals.models import Approval
from approvals.reasons import SHORT
from approvals.risk import Risk, risk
from approvals.standing import Picture, obstacles, picture
from approvals.talk import Talk
from audit.models import Entry
from calls.changes import Edited, edited
from calls.history import Before, Earlier, before
from calls.models import Call
from registry.arguments import Arguments, arguments

# Of an agent that had asked for nothing yet.
FIRST = Before([], is_usual=False)


@dataclass(frozen=True, slots=True)
class Card:
    approval: Approval
    call: Call
    arguments: Arguments
    risk: Risk
    # The rule that holds it, by the name that it had; empty when no rule covered the call.
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


def card(approval: Approval, person: User, *, error: str = "", typed: str = "") -> Card:
    return cards([approval], person, error=error, typed=typed)[0]


def cards(
    approvals: Iterable[Approval], person: User, *, error: str = "", typed: str = ""
) -> list[Card]:
    """As many questions to the database for a page of cards as for one."""
    approvals = list(approvals)
    ids = [approval.pk for approval in approvals]
    rules, earlier, alike = _rules(ids), before(ids), history.similar(ids)
    obstacle = obstacles(approvals, person)
    made = []
    for approval in approvals:
        call = approval.call
        given, past = call.parsed_arguments, earlier.get(call.pk, FIRST)
        made.append(
            Card(
                approval=approval,
                call=call,
                arguments=arguments(_schema(call), given),
                risk=risk(call, given, used_lately=past.is_usual),
                rule=rules.get(call.pk, ""),
                before=past.calls,
                similar=alike.get(call.pk, []),
                obstacle=obstacle[approval.pk],
                votes=picture(approval, person),
                talk=talk.of(approval, person),
                edited=edited(call),
                error=error,
                typed=typed,
            )
        )
    return made


def _schema(call: Call) -> dict[str, Any]:
    content: dict[str, Any] = call.definition.content if call.definition else {}
    return content.get("inputSchema") or {}


def _rules(ids: Sequence[UUID]) -> dict[UUID, str]:
    """As entries know them: a rule may have another name by now, or be gone."""
    asked = Entry.objects.filter(call_id__in=ids, seq=1).values_list("call_id", "details__rule")
    return {call_id: rule or "" for call_id, rule in asked if call_id}
