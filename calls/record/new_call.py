"""A call's first row: what was asked, what policy said, and how it begins."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from calls.record.statements import call_digest
from calls.record.states import State


@dataclass(slots=True)
class NewCall:
    """One line of OPEN; plain values, so that the agents' path touches no model."""

    # Not frozen: setting so many fields one by one past the guard takes three times as long.

    id: UUID
    agent_id: int
    agent: str
    token_id: int | None
    person_id: int
    person: str
    toolset: str
    server_id: int | None
    server: str
    tool_id: int | None
    definition_id: int | None
    definition_digest: str
    tool_name: str
    arguments: bytes
    origin: str
    mode: str
    effect: str
    rule_id: int | None
    rule: str
    reason: str
    state: State
    outcome: str = ""
    revision: str = ""
    client: str = ""
    request_key: str = ""
    lease_owner: str = ""
    # Of calls that wait, for people or for a worker: what they are bound to.
    statement: str = ""
    # Seconds; None: as the installation is set.
    decide_within_s: int | None = None
    start_within_s: int | None = None
    # No worker takes it and nobody decides on it before, unless it is confirmed (CONFIRM in
    # calls/record/transitions.py).
    unconfirmed_s: float | None = None
    # The standing grant that lets it run; its use must stand in the same commit.
    grant_id: int | None = None
    # The key that it must have to be opened (calls/record/idempotency.py).
    once: str | None = None
    # Not opened while the same may have run without its agent having heard of it.
    guarded: bool = False
    # Opened although an equal call waits for people.
    separate: bool = False
    # Only with what it reserves of limits (calls/record/reservations.py).
    reserves: bool = False
    # More facts for the entry.
    details: dict[str, Any] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        line: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        line["arguments"] = self.arguments.decode()
        line["arguments_digest"] = digest(self.arguments)
        line |= self._bound()
        line |= self._clocks()
        return line

    def _bound(self) -> dict[str, Any]:
        if not self.statement:
            return {"call_digest": ""}
        known = call_digest(self.statement)
        return {"call_digest": known, "details": {**self.details, "call_digest": known}}

    def _clocks(self) -> dict[str, float]:
        match self.state:
            case State.HELD:
                return {"decide_in_s": self.decide_within_s or settings.DECIDE_WITHIN_S}
            case State.QUEUED:
                return {"start_in_s": self.start_within_s or settings.START_WITHIN_S}
            case State.RUNNING:
                return {"lease_s": settings.LEASE_S}
            case _:
                return {}


class OpenedCall(NamedTuple):
    """The answer of OPEN. Not open: a duplicate blocks it, or its standing approval is used up."""

    id: str
    is_open: bool
    # Of the configuration, in the same transaction.
    generation: int
    # Of agent, person, tool, context and reason, unless the line said them (audit/sql/names.sql).
    names: list[int | None] | None


def digest(arguments: bytes) -> str:
    return hashlib.sha256(arguments).hexdigest()
