"""Standing grants as the agents' path holds them: by agent and definition, compiled once a change.

A grant says yes in advance, in one person's name. It answers a rule that asks, never one that
denies; and only the very question that its maker answered: the same people asked, as strictly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from accounts.independence import Inviters, holders, unconfirmed_inviters
from approvals import bounds
from approvals.bounds import Path, Pattern
from approvals.models import Grant
from core import exact_json
from core.journal import Statement
from policies.decide import Decision, Subject
from policies.thresholds import Threshold, stored

# Counted with the call's own first row, in the same commit: OPEN opens a granted call only if its
# use stands here. A line's id is the grant's, so that two uses of one never share a statement.
USE = Statement(
    "use",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id bigint, call_id uuid, amount numeric, once text, reserves boolean)
), locked AS MATERIALIZED (
    -- In one order, whoever comes: two processes never wait for each other.
    SELECT g.id FROM approvals_grant g JOIN asked a ON a.id = g.id ORDER BY g.id FOR UPDATE OF g
), used AS (
    UPDATE approvals_grant g SET
        uses = g.uses + 1, summed = g.summed + a.amount, last_used_at = clock_timestamp()
    FROM asked a JOIN locked l ON l.id = a.id
    WHERE g.id = a.id AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
      AND g.uses < g.max_uses AND (g.max_sum IS NULL OR g.summed + a.amount <= g.max_sum)
      -- A line may come twice when the first commit's fate was unknown.
      AND (SELECT true FROM approvals_grantuse u WHERE u.call_id = a.call_id) IS NOT TRUE
      -- The key of the call is another one's: then it is not opened.
      AND (a.once IS NULL OR (
          SELECT k.call_id = a.call_id FROM calls_once k WHERE k.id = a.once) IS TRUE)
      -- Nor one that is too much for a limit.
      AND (a.reserves IS NOT TRUE OR EXISTS (
          SELECT FROM policies_limituse r WHERE r.call_id = a.call_id))
    RETURNING g.id
), noted AS (
    INSERT INTO approvals_grantuse (call_id, grant_id, amount)
    SELECT a.call_id, a.id, a.amount FROM asked a JOIN used u ON u.id = a.id
    ON CONFLICT DO NOTHING
)
SELECT a.id, u.id IS NOT NULL FROM asked a LEFT JOIN used u ON u.id = a.id
""",
    order=0,
)


@dataclass(frozen=True, slots=True)
class Window:
    """`days`: 0 is Monday; none means every day. Minutes of the day, in the maker's time zone."""

    days: frozenset[int] = frozenset()
    start: int = 0
    end: int = 24 * 60
    zone: str = "UTC"

    def holds(self, now: datetime) -> bool:
        there = now.astimezone(ZoneInfo(self.zone))
        minute = there.hour * 60 + there.minute
        return (not self.days or there.weekday() in self.days) and self.start <= minute < self.end


@dataclass(frozen=True, slots=True)
class StandingGrant:
    id: int
    owner: str
    owner_id: int
    # Its owner, and whoever may still be behind that account (accounts/independence.py).
    voices: frozenset[int]
    pattern: Pattern
    window: Window
    thresholds: tuple[Threshold, ...]
    confirmed: bool
    expires_at: datetime
    sum_path: Path | None

    def answers(self, decision: Decision, now: datetime) -> bool:
        """Is this the question that its maker answered?"""
        return (
            self.thresholds == decision.thresholds
            and (self.confirmed or not decision.confirm_grants)
            and now < self.expires_at
            and self.window.holds(now)
        )

    def is_independent(self, parties: frozenset[int], inviters: frozenset[int]) -> bool:
        """Whether nobody who made the grant has a part in the call."""
        return parties.isdisjoint(self.voices) and self.owner_id not in inviters

    def covers(self, document: Any) -> bool:
        counted = self.sum_path is None or bounds.amount(document, self.sum_path) is not None
        return counted and self.pattern.covers(document)

    def use(
        self, call_id: UUID, arguments: bytes, once: str | None, *, reserves: bool = False
    ) -> dict[str, Any]:
        """The line of USE."""
        amount = Decimal(0)
        if self.sum_path is not None:
            amount = bounds.amount(exact_json.loads(arguments), self.sum_path) or amount
        used = {"id": self.id, "call_id": call_id, "amount": str(amount)}
        return used | {"once": once, "reserves": reserves}


@dataclass(slots=True)
class GrantBook:
    """Standing approvals at one moment; used-up ones are dropped as soon as that is known."""

    grants: dict[tuple[int, int], tuple[StandingGrant, ...]]
    _spent: set[int] = field(default_factory=set)

    def matching(
        self,
        subject: Subject,
        decision: Decision,
        arguments: bytes,
        parties: frozenset[int],
        inviters: frozenset[int],
    ) -> StandingGrant | None:
        """`parties`: who has a part in what is asked; `inviters`: who may be behind them."""
        candidates = self.grants.get((subject.agent_id, subject.definition_id))
        if not candidates:
            return None
        now = datetime.now(UTC)
        left = [
            g
            for g in candidates
            if g.id not in self._spent
            and g.answers(decision, now)
            and g.is_independent(parties, inviters)
        ]
        if not left:
            return None
        document = exact_json.loads(arguments)
        return next((grant for grant in left if grant.covers(document)), None)

    def note(self, grant: StandingGrant) -> None:
        """It was not to be had: used up, unless only this amount was too much for it."""
        if grant.sum_path is None:
            self._spent.add(grant.id)

    def holds(self, grant: StandingGrant, decision: Decision) -> bool:
        """Is it still in force, and the answer to what is asked now?"""
        known = (one for grants in self.grants.values() for one in grants)
        return grant in known and grant.answers(decision, datetime.now(UTC))


def load() -> GrantBook:
    by_key: dict[tuple[int, int], list[StandingGrant]] = defaultdict(list)
    known = unconfirmed_inviters()
    for grant in Grant.objects.in_force().select_related("owner").order_by("pk"):
        by_key[grant.agent_id, grant.definition_id].append(_standing_grant(grant, known))
    return GrantBook({key: tuple(grants) for key, grants in by_key.items()})


def _standing_grant(grant: Grant, known: Inviters) -> StandingGrant:
    return StandingGrant(
        id=grant.pk,
        owner=grant.owner.username,
        owner_id=grant.owner_id,
        voices=frozenset(holders([grant.owner_id], known)),
        pattern=pattern(bytes(grant.arguments), bounds.parse(grant.bounds)),
        window=Window(frozenset(grant.days), grant.start_minute, grant.end_minute, grant.time_zone),
        thresholds=stored(grant.thresholds),
        confirmed=bool(grant.step_up),
        expires_at=grant.expires_at,
        sum_path=None if grant.sum_path is None else tuple(grant.sum_path),
    )


def pattern(arguments: bytes, vary: Iterable[bounds.Bound]) -> Pattern:
    return Pattern(exact_json.loads(arguments), {one.path: one for one in vary})
