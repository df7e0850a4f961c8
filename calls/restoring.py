"""Closes calls that were open when a restored backup was made.

What came after the backup is not in it: a call that is queued there may have been sent since, and
one that is held may have been approved and sent. So none is ever sent. Where the record that was
replaced could still be read and said that a call had not been sent, it is superseded; of every
other the outcome is unknown, and a person finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from audit.services import Actor
from calls.models import Call
from calls.record.states import NOT_SENT, Executed, State
from calls.record.transitions import Move, move_now
from core.english import english
from core.english import gettext as _

OPEN = (State.APPROVED, State.QUEUED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class Fate:
    """The replaced record's last word on a call."""

    state: State
    is_unsent: bool

    @classmethod
    def of(cls, call: Call) -> Fate:
        never_began = call.state in (State.HELD, State.APPROVED, State.QUEUED) and not call.fence
        stopped = call.state == State.CANCELLED and call.executed == Executed.NO
        return cls(State(call.state), never_began or stopped or call.state in NOT_SENT)


def fates(ids: Iterable[UUID]) -> dict[UUID, Fate]:
    return {call.pk: Fate.of(call) for call in Call.objects.filter(pk__in=list(ids))}


def close_open(known: Mapping[UUID, Fate], *, said: str, by: Actor) -> int:
    """In the caller's transaction; how many they were. `said` names the backup."""
    ends = [
        ended(call.pk, State(call.state), known.get(call.pk), said=said, by=by)
        for call in Call.objects.filter(state__in=OPEN).order_by("pk")
    ]
    return sum(move_now(move) for move in ends)


def ended(call_id: UUID, source: State, fate: Fate | None, *, said: str, by: Actor) -> Move:
    unsent = fate is not None and fate.is_unsent and source != State.RUNNING
    target = State.SUPERSEDED if unsent and source != State.APPROVED else State.UNKNOWN
    executed = Executed.NO if unsent else Executed.UNKNOWN
    sentence = f"{said} {_what_is_known(fate)}"
    return Move(call_id, source, target, by, sentence, outcome=sentence, executed=executed)


def _what_is_known(fate: Fate | None) -> str:
    if fate is None:
        return _("Whether it was sent since is not known. It is not sent again.")
    if fate.is_unsent:
        return _("It was not sent. Ask again if it is still needed.")
    return _("The record that was replaced said of it: %(state)s. It is not sent again.") % {
        "state": english(fate.state.label)
    }
