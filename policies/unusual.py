"""Unusual use by an agent, against its own calls before: for conditions, and for its page.

Each is a count over the record, with a reason that anybody can check. They can hold a call, and
never allow one: a condition of a rule that allows may not ask for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from core.english import gettext as _
from core.english import ngettext
from policies.history import BLOCKED, LOOKED_AT

ROOT = "unusual"

# Less than this is no custom that anything could differ from.
DAYS_KNOWN, HOURS_KNOWN = 7, 24
# Of today nothing counts: the last 12 hours.
SIGHT_H = DAYS_KNOWN * 24 + 12
# What nobody looks at may have been anything, so that a flood cannot hide itself.
MUCH = 1_000_000.0
# For the page, where no rule says what is much.
TENFOLD, REFUSALS = 10, 5

SQL = f"""
WITH moment AS (
    SELECT COALESCE(%s::timestamptz, clock_timestamp()) AS now
), recent AS MATERIALIZED (
    SELECT e.id, e.at, e.seq, e.to_state, e.tool, e.call_id, {BLOCKED} FROM audit_name n
    CROSS JOIN LATERAL (
        -- As the index has them (audit/models/entries.py::BLOCK).
        SELECT * FROM audit_entryrow r WHERE r.agent = n.id
        ORDER BY r.id >> 10 DESC, r.id DESC LIMIT {LOOKED_AT}
    ) e
    WHERE n.kind = 'agent' AND n.subject = %s ORDER BY e.id DESC LIMIT {LOOKED_AT}
), mine AS (
    SELECT r.*, m.now,
        date_trunc('hour', r.at AT TIME ZONE 'UTC') AS hour, r.at > m.now - interval '1 hour' AS new
    FROM recent r, moment m
    WHERE (r.call_id IS DISTINCT FROM %s::uuid AND r.seq IS NOT NULL OR r.blocked > 0)
      AND r.at <= m.now
)
SELECT
    extract(hour FROM max(moment.now) AT TIME ZONE 'UTC')::int,
    -- Of today nothing counts: the second call at a new hour is as unusual as the first.
    count(DISTINCT hour::date) FILTER (WHERE seq = 1 AND at < mine.now - interval '12 hours'),
    count(*) FILTER (WHERE seq = 1 AND at < mine.now - interval '12 hours'
        AND extract(hour FROM hour) = extract(hour FROM mine.now AT TIME ZONE 'UTC')),
    count(*) FILTER (WHERE seq = 1 AND new) + COALESCE(sum(blocked) FILTER (WHERE new), 0),
    count(*) FILTER (WHERE seq = 1 AND NOT new) + COALESCE(sum(blocked) FILTER (WHERE NOT new), 0),
    count(DISTINCT hour) FILTER (WHERE seq = 1 AND NOT new),
    count(*) FILTER (WHERE to_state IN ('refused', 'invalid', 'denied') AND mine.id > COALESCE(
        (SELECT max(id) FROM recent WHERE to_state = 'running'), 0))
        + COALESCE(sum(blocked) FILTER (WHERE blocked_at > COALESCE(
            (SELECT max(at) FROM recent WHERE to_state = 'running'), '-infinity')), 0),
    count(*) FILTER (WHERE seq = 1 AND tool IN (
        SELECT n.id FROM audit_name n WHERE n.kind = 'tool' AND n.text = %s)),
    (SELECT CASE WHEN count(*) = {LOOKED_AT}
        THEN extract(epoch FROM (SELECT now FROM moment) - min(at))::float / 3600 END FROM recent),
    (SELECT COALESCE(max(address), '') FROM (
        -- As of hours: for twelve of them it is new, and only beside others of a week ago.
        SELECT a.address FROM accounts_agentaddress a, moment m
        WHERE a.agent_id = %s AND a.first_at > m.now - interval '12 hours' AND a.first_at <= m.now
          AND EXISTS (SELECT FROM accounts_agentaddress k WHERE k.agent_id = a.agent_id
              AND k.first_at < m.now - interval '{DAYS_KNOWN} days')
        ORDER BY a.first_at DESC LIMIT 1) new),
    -- For pages: a call is not kept waiting for it.
    CASE WHEN %s = '' THEN (SELECT COALESCE(min(n.text), '') FROM (
        SELECT r.tool FROM mine r WHERE r.seq = 1
        GROUP BY r.tool HAVING min(r.at) > max(r.now) - interval '12 hours') first
        JOIN audit_name n ON n.id = first.tool
        JOIN registry_tool t ON t.exposed_name = n.text AND 'sink' = ANY(t.labels)) ELSE '' END
FROM moment LEFT JOIN mine ON true
"""


class UnusualFinding(NamedTuple):
    """A reason in English; of a kind there is one at a time."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unusual:
    """Counts over the agent's newest entries. `hour`: of now, in UTC. `sight_h`: how many hours
    they go back, where it has more entries than are looked at."""

    hour: int = 0
    days: int = 0
    at_hour: int = 0
    lately: int = 0
    before: int = 0
    hours_before: int = 0
    refusals: int = 0
    of_tool: int = 0
    sight_h: float | None = None
    # The newest of those that it came from for the first time in the last 12 hours; "": none.
    address: str = ""
    # One of the tools that send outside, by name, which it used first in the last 12 hours;
    # "": none, or a call asks.
    sink: str = ""

    @property
    def is_flood(self) -> bool:
        """So many entries that the hours before are out of sight."""
        return self.sight_h is not None and self.sight_h < HOURS_KNOWN

    @property
    def _is_cut(self) -> bool:
        return self.sight_h is not None and self.sight_h < SIGHT_H

    @property
    def is_new_hour(self) -> bool:
        return (self._is_cut or self.days >= DAYS_KNOWN) and not self.at_hour

    @property
    def rate(self) -> float:
        """Calls of the last hour, in relation to those of an hour in which it called at all; 0
        where too few such hours are known."""
        if self.is_flood:
            return MUCH
        if self.hours_before < HOURS_KNOWN:
            return 0.0
        return self.lately * self.hours_before / self.before

    @property
    def is_first_use(self) -> bool:
        return not self.of_tool

    def facts(self) -> dict[str, Any]:
        return {
            "unusual.hour": self.is_new_hour,
            "unusual.rate": self.rate,
            "unusual.refusals": self.refusals,
            "unusual.first_use": self.is_first_use,
            "unusual.address": bool(self.address),
        }

    def reasons(self) -> Iterator[str]:
        """The reasons why its use as a whole is unusual, in English."""
        return (one.reason for one in self.findings())

    def findings(self) -> Iterator[UnusualFinding]:
        """A flood is none: an agent that is always so busy is one every day."""
        if self.is_new_hour and self.lately and not self.is_flood:
            said = _("It never called between %(from)s and %(to)s UTC on %(n)d earlier days.")
            hours = {"from": f"{self.hour:02}:00", "to": f"{(self.hour + 1) % 24:02}:00"}
            yield UnusualFinding("hour", said % {**hours, "n": self.days})
        if self.rate >= TENFOLD and not self.is_flood:
            said = _("%(n)d calls in the last hour are %(times)d times as many as usual.")
            yield UnusualFinding("rate", said % {"n": self.lately, "times": self.rate})
        if self.refusals >= REFUSALS:
            said = ngettext(
                "Its last call was blocked or denied.",
                "Its last %d calls were blocked or denied.",
                self.refusals,
            )
            yield UnusualFinding("refusals", said % self.refusals)
        if self.address and self.lately:
            said = _("It called from %s, where it never called from before the last 12 hours.")
            yield UnusualFinding("address", said % self.address)
        if self.sink and self.days >= DAYS_KNOWN and not self._is_cut:
            said = _("It used %s, which sends outside, for the first time in the last 12 hours.")
            yield UnusualFinding("sink", said % self.sink)


def parameters(
    agent_id: int, tool: str = "", *, but: UUID | None = None, at: datetime | None = None
) -> list[Any]:
    """Parameters of the SQL. `tool`: its name for agents, empty for pages; `but` and `at`: as
    things were when that call was requested."""
    return [at, agent_id, but, tool, agent_id, tool]


def of_rows(rows: Sequence[Sequence[Any]]) -> Unusual:
    return Unusual(*rows[0])
