"""Who ran what, and who allowed it: the calls of a period, as sentences can be made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from audit.filters import Filters
from audit.finding import Bounds, ids

# So many entries are read at most; the page says so when that was not all.
READ = 6000
SHOWN = 12
HELD = "held"
# How a held call goes when nobody decides.
LEFT = ("expired", "withdrawn", "superseded")

CALLS = """
    SELECT b.call_id, b.at, b.agent, b.person, b.tool, COALESCE(b.details ->> 'effect', ''),
           COALESCE(b.details ->> 'rule', ''), b.reason, now.from_state, now.to_state, now.reason,
           COALESCE(votes.yes, '{}'), COALESCE(votes.no, '{}'), COALESCE(votes.why, '')
    FROM audit_entry b
    LEFT JOIN LATERAL (
        SELECT m.from_state, m.to_state, m.reason FROM audit_entry m
        WHERE m.call_id = b.call_id AND m.seq IS NOT NULL ORDER BY m.seq DESC LIMIT 1
    ) now ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(v.name ORDER BY v.id) FILTER (WHERE v.details ->> 'approve' = 'true') yes,
               array_agg(v.name ORDER BY v.id) FILTER (WHERE v.details ->> 'approve' = 'false') no,
               max(v.reason) AS why
        FROM (
            -- Who had a part in the call themselves, being alone, is called so.
            SELECT w.*, w.actor || CASE WHEN w.details ->> 'single_person' = 'true'
                THEN ' (single-person mode)' ELSE '' END AS name
            FROM audit_entry w
        ) v
        WHERE v.call_id = b.call_id AND v.seq IS NULL AND v.action = 'approval.voted'
          AND NOT EXISTS (
            SELECT FROM audit_entry t
            WHERE t.call_id = v.call_id AND t.seq IS NULL AND t.action = 'approval.taken_back'
              AND t.actor_id = v.actor_id AND t.id > v.id)
    ) votes ON true
    WHERE b.id = ANY(%s) AND b.seq = 1
    ORDER BY b.id DESC
"""


class ReportedCall(NamedTuple):
    """One call, from asking to where it is now, and by whose leave."""

    call_id: UUID
    at: datetime
    agent: str
    person: str
    tool: str
    effect: str
    rule: str
    why: str
    came_from: str
    state: str
    outcome: str
    allowed_by: list[str]
    refused_by: list[str]
    said: str

    @property
    def leave(self) -> str:
        """Who or what allowed or stopped it: groups calls that are told together."""
        if self.undecided:
            return "waits"
        if self.refused_by:
            return "person-no"
        if self.allowed_by:
            return "person-yes"
        return {"allow": "rule-yes", "deny": "rule-no"}.get(self.effect, "waits")

    @property
    def undecided(self) -> bool:
        """It waits, or left the queue without a decision; some may have voted all the same."""
        return self.state == HELD or (self.came_from == HELD and self.state in LEFT)

    @property
    def who(self) -> str:
        voted = ", ".join(dict.fromkeys(self.refused_by or self.allowed_by))
        return voted if voted or self.undecided else self.rule


@dataclass(slots=True)
class Group:
    """Calls of one agent to one tool, by the same leave."""

    agent: str
    person: str
    tool: str
    leave: str
    who: str
    calls: list[ReportedCall] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.calls)

    @property
    def shown(self) -> list[ReportedCall]:
        return self.calls[:SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.calls) - SHOWN)

    @property
    def states(self) -> list[tuple[str, int]]:
        return _counted(call.state for call in self.calls)


class RoleEntry(NamedTuple):
    """One entry that changed who may decide."""

    id: int
    at: datetime
    actor: str
    action: str
    person: str
    role: str


@dataclass(frozen=True, slots=True)
class Report:
    groups: list[Group]
    calls: int
    tools: int
    states: list[tuple[str, int]]
    leaves: dict[str, int]
    # What people and administrators did besides calls: (action, how often).
    acts: list[tuple[str, int]]
    # What changed who may decide.
    roles: list[RoleEntry]
    cut: bool


def report(filters: Filters, within: Bounds) -> Report:
    wanted = ids(filters, within, most=READ)
    told = list(_told(wanted))
    groups: dict[tuple[str, ...], Group] = {}
    for call in told:
        key = (call.agent, call.tool, call.leave, call.who)
        group = groups.setdefault(key, Group(call.agent, call.person, *key[1:]))
        group.calls.append(call)
    return Report(
        groups=sorted(groups.values(), key=lambda group: -group.count),
        calls=len(told),
        tools=len({call.tool for call in told}),
        states=_counted(call.state for call in told),
        leaves=dict(_counted(call.leave for call in told)),
        acts=_acts(wanted),
        roles=_roles(wanted),
        cut=len(wanted) == READ,
    )


def _told(wanted: list[int]) -> Iterator[ReportedCall]:
    with connection.cursor() as cursor:
        cursor.execute(CALLS, [wanted])
        for row in cursor.fetchall():
            yield ReportedCall(*row)


ACTS = """
    SELECT action, count(*) FROM audit_entry
    WHERE id = ANY(%s) AND actor_kind = 'person' GROUP BY 1 ORDER BY 2 DESC, 1
"""


def _acts(wanted: list[int]) -> list[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(ACTS, [wanted])
        return list(cursor.fetchall())


ROLES = """
    SELECT id, at, actor, action, COALESCE(details ->> 'person', ''),
           COALESCE(details ->> 'role', '')
    FROM audit_entry
    WHERE id = ANY(%s) AND (action IN ('role.requested', 'role.given', 'role.refused', 'role.taken',
        'person.confirmed', 'single_person_mode.began', 'single_person_mode.ended')
        -- At the host's command line.
        OR action IN ('sign_in_link.made', 'person.password_set') AND actor_kind = 'system')
    ORDER BY id DESC
"""


def _roles(wanted: list[int]) -> list[RoleEntry]:
    with connection.cursor() as cursor:
        cursor.execute(ROLES, [wanted])
        return [RoleEntry(*row) for row in cursor.fetchall()]


def _counted(values: Iterator[Any]) -> list[tuple[Any, int]]:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda one: -one[1])
