"""Information flow: what an agent read lately, by the labels of its tools.

Whatever came by a tool stands in the agent's memory, and may be in all that it sends after. Read
from the record as history is (policies/history.py), and only where a rule or a card needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from accounts.models import shown_name
from policies.history import LOOKED_AT, NEVER
from registry.labels import Label

ROOT = "flow"

# Something of a tool came back, or may be coming: progress and questions come while it runs. Who
# joins a call hears of it then. Whoever it asked for, an agent has one memory.
SQL = f"""
SELECT asked.but, found.* FROM unnest(
    %s::bigint[], %s::uuid[], %s::timestamptz[]) asked (agent, but, at)
CROSS JOIN LATERAL (
    WITH moment AS (
        SELECT COALESCE(asked.at, clock_timestamp()) AS now,
            COALESCE(asked.at, clock_timestamp()) - make_interval(secs => %s) AS since
    ), recent AS MATERIALIZED (
        SELECT e.id, e.at, e.to_state, e.action, e.tool, e.person, e.call_id FROM audit_name n
        CROSS JOIN LATERAL (
            -- As the index has them (audit/models/entries.py::BLOCK).
            SELECT * FROM audit_entryrow r WHERE r.agent = n.id
            ORDER BY r.id >> 10 DESC, r.id DESC LIMIT {LOOKED_AT}
        ) e
        WHERE n.kind = 'agent' AND n.subject = asked.agent ORDER BY e.id DESC LIMIT {LOOKED_AT}
    ), came AS (
        SELECT DISTINCT ON (r.tool) r.tool, r.at, r.call_id, r.person FROM recent r, moment
        WHERE (r.to_state IN ('running', 'succeeded', 'tool_error', 'failed') OR r.action IN (
              SELECT n.id FROM audit_name n WHERE n.kind = 'action' AND n.text = 'call.joined'))
          AND r.call_id IS DISTINCT FROM asked.but
          AND r.at <= moment.now AND r.at > moment.since
        ORDER BY r.tool, r.id DESC
    ), oldest AS (
        SELECT CASE WHEN count(*) = {LOOKED_AT} THEN min(at) END AS at FROM recent
    )
    SELECT CASE WHEN oldest.at > moment.since THEN oldest.at END AS cut_at,
        k.text, came.at, came.call_id, t.labels, p.text, u.first_name
    FROM moment CROSS JOIN oldest
    LEFT JOIN came ON true
    LEFT JOIN audit_name k ON k.id = came.tool
    LEFT JOIN audit_name p ON p.id = came.person
    LEFT JOIN accounts_user u ON u.id = p.subject
    LEFT JOIN registry_tool t ON t.exposed_name = k.text
) found
"""


@dataclass(frozen=True, slots=True)
class FlowSource:
    """A call that brought something, and for whom. Without a tool: one of more calls than are
    looked at."""

    at: datetime
    tool: str = ""
    call_id: UUID | None = None
    person: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """The latest source of each kind within the window. `unread`: nobody knows."""

    untrusted: FlowSource | None = None
    sensitive: FlowSource | None = None
    unread: bool = False

    @property
    def is_tainted(self) -> bool:
        return self.unread or self.untrusted is not None or self.sensitive is not None

    def facts(self) -> dict[str, Any]:
        return {
            "flow.untrusted": self.untrusted is not None,
            "flow.sensitive": self.sensitive is not None,
            "flow.last_untrusted": self.untrusted.at if self.untrusted else NEVER,
            "flow.last_sensitive": self.sensitive.at if self.sensitive else NEVER,
        }


class FlowQuestion(NamedTuple):
    """Whose flow. `but` and `at`: as things were when that call was requested."""

    agent_id: int
    but: UUID | None = None
    at: datetime | None = None


def parameters(*asked: FlowQuestion) -> list[Any]:
    """Parameters of the SQL."""
    return [*map(list, zip(*asked, strict=True)), settings.FLOW_WINDOW_S]


def of_rows(rows: Sequence[Sequence[Any]]) -> Flow:
    """The flow of one question."""
    sources = [_source(row) for row in rows if row[3] is not None]
    if rows and rows[0][1] is not None:
        # What nobody looks at may have been anything.
        sources.append((FlowSource(rows[0][1]), list(Label)))
    sources.sort(key=lambda one: one[0].at)
    latest = {label: source for source, labels in sources for label in labels}
    return Flow(latest.get(Label.UNTRUSTED), latest.get(Label.SENSITIVE))


def by_call(rows: Sequence[Sequence[Any]]) -> dict[UUID, Flow]:
    """The flows of several questions, by the call that each is about."""
    found: dict[UUID, list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return {call_id: of_rows(mine) for call_id, mine in found.items()}


def _source(row: Sequence[Any]) -> tuple[FlowSource, list[str]]:
    """A tool that has another name by now may have had any label."""
    _but, _cut_at, tool, at, call_id, labels, person, display = row
    name = shown_name(person, display or "") if person else ""
    return FlowSource(at, tool, call_id, name), list(Label) if labels is None else labels
