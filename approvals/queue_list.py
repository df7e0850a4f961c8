"""The list of pending calls beside the card: its filters, order and groups, and a line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Min
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval, ApprovalQuerySet
from approvals.risk import Risk, risk
from approvals.risk_history import (
    NO_HISTORY,
    Histories,
    PendingPair,
    RiskHistory,
    histories,
    pending_pairs,
)
from core import exact_json
from core.paging import Page, paged

ROWS = 50
# By risk, so many of the oldest are put in order: each is read for it.
RANKED = 200

OLDEST, NEWEST, RISKIEST = "oldest", "newest", "risk"
SORTS = {OLDEST: _("Oldest first"), NEWEST: _("Newest first"), RISKIEST: _("Highest risk first")}
GROUPS = {"": _("None"), "agent": _("Agent"), "tool": _("Tool")}
# Shown of a call in one line: the first of these that it has, or else its first text or number.
TELLING = (
    *("to", "recipient", "recipients", "email", "amount", "path", "file", "url", "uri"),
    *("host", "command", "query", "sql", "subject", "title", "name", "id"),
)
VALUE_MAX = 60


class FilterChoice(NamedTuple):
    value: str
    n: int


@dataclass(frozen=True, slots=True)
class QueueFilters:
    """The filters that the address has; a value that is none counts as not given."""

    agent: str = ""
    tool: str = ""
    sort: str = OLDEST
    group: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> QueueFilters:
        sort, group = given.get("sort", ""), given.get("group", "")
        return cls(
            agent=given.get("agent", ""),
            tool=given.get("tool", ""),
            sort=sort if sort in SORTS else OLDEST,
            group=group if group in GROUPS else "",
        )

    @property
    def is_any(self) -> bool:
        return self != QueueFilters()

    @property
    def query(self) -> dict[str, str]:
        """The parameters that an address needs; without those that are usual."""
        usual = QueueFilters()
        return {
            name: value for name, value in asdict(self).items() if value != getattr(usual, name)
        }

    @property
    def address(self) -> str:
        return f"?{urlencode(sorted(self.query.items()))}" if self.query else ""

    @property
    def narrows(self) -> bool:
        return bool(self.agent or self.tool)

    @property
    def is_appended(self) -> bool:
        """New calls come below those that are shown."""
        return self.sort == OLDEST and not self.group

    def has(self, pair: PendingPair) -> bool:
        return self.agent in ("", pair.agent) and self.tool in ("", pair.tool)

    def narrow(self, pending: ApprovalQuerySet) -> ApprovalQuerySet:
        if self.agent:
            pending = pending.filter(call__agent__name=self.agent)
        if self.tool:
            pending = pending.filter(call__tool_name=self.tool)
        return pending


@dataclass(frozen=True, slots=True)
class Row:
    approval: Approval
    risk: Risk
    # The argument that tells most about it.
    name: str
    value: str

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING


class RowGroup(NamedTuple):
    title: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class QueueList:
    filters: QueueFilters
    page: Page[Approval]
    groups: list[RowGroup]
    agents: list[FilterChoice]
    tools: list[FilterChoice]
    total: int
    # Of all that is pending, whatever the filters.
    pending: int
    oldest: datetime | None
    histories: Histories

    @property
    def sorts(self) -> Iterable[tuple[str, Any]]:
        return SORTS.items()

    @property
    def groupings(self) -> Iterable[tuple[str, Any]]:
        return GROUPS.items()

    @property
    def first(self) -> Approval | None:
        return self.groups[0].rows[0].approval if self.groups else None

    @property
    def in_order(self) -> list[Approval]:
        return [row.approval for group in self.groups for row in group.rows]

    @property
    def ranked(self) -> int:
        return RANKED

    @property
    def is_ranked_in_part(self) -> bool:
        return self.filters.sort == RISKIEST and self.total > RANKED


def read(given: Mapping[str, str], chosen: UUID | None = None) -> QueueList:
    """`chosen`: the call whose card stands beside it, in it or not."""
    filters = QueueFilters.read(given)
    pending = filters.narrow(Approval.objects.waiting()).for_queue()
    page = _candidates(filters, pending, given)
    shown = [approval.pk for approval in page.rows]
    pairs = pending_pairs([*shown, chosen] if chosen else shown)
    past = histories(pairs)
    return QueueList(
        filters=filters,
        page=page,
        groups=_groups(filters, _ordered(filters, _rows(page.rows, past))),
        agents=_added_up((pair.agent, pair.pending) for pair in pairs),
        tools=_added_up((pair.tool, pair.pending) for pair in pairs),
        total=sum(pair.pending for pair in pairs if filters.has(pair)),
        pending=sum(pair.pending for pair in pairs),
        oldest=min((pair.oldest for pair in pairs if pair.oldest), default=None),
        histories=past,
    )


def count_pending() -> dict[str, Any]:
    """How many calls are pending, and when the first of them was asked for."""
    found: dict[str, Any] = Approval.objects.waiting().aggregate(
        pending=Count("pk"), oldest=Min("asked_at")
    )
    return found


def rows(approvals: Sequence[Approval]) -> list[Row]:
    if not approvals:
        return []
    return _rows(approvals, histories(pending_pairs([approval.pk for approval in approvals])))


def _rows(approvals: Sequence[Approval], past: Histories) -> list[Row]:
    return [_row(one, past.get(_pair(one), NO_HISTORY)) for one in approvals]


def _pair(approval: Approval) -> tuple[int, int | None]:
    return approval.call.agent_id, approval.call.tool_id


def _row(approval: Approval, history: RiskHistory) -> Row:
    given = approval.call.exact_arguments
    name, value = telling_argument(given)
    return Row(approval, risk(approval.call, given, history), name, value)


def telling_argument(given: Any) -> tuple[str, str]:
    """Its name, and its value in short; two empty texts where there is none."""
    if not isinstance(given, dict):
        return "", ""
    texts = {name: _in_short(value) for name, value in given.items()}
    names = [name for name in (*TELLING, *texts) if texts.get(name)]
    return (names[0], texts[names[0]]) if names else ("", "")


def _in_short(value: Any) -> str:
    match value:
        case str():
            text = " ".join(value[: 4 * VALUE_MAX].split())
        case exact_json.Number():
            text = value.text
        case [str(), *_]:
            text = " · ".join(one for one in value[:VALUE_MAX] if isinstance(one, str))
        case _:
            text = ""
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


def _candidates(
    filters: QueueFilters, pending: ApprovalQuerySet, given: Mapping[str, str]
) -> Page[Approval]:
    if filters.sort == RISKIEST:
        return Page(list(pending[:RANKED]))
    return paged(pending, "-call_id" if filters.sort == NEWEST else "call_id", given, size=ROWS)


def _ordered(filters: QueueFilters, found: list[Row]) -> list[Row]:
    if filters.sort != RISKIEST:
        return found
    return sorted(found, key=lambda row: -row.risk.score)[:ROWS]


def _groups(filters: QueueFilters, found: list[Row]) -> list[RowGroup]:
    """In the order of the list within each; one without a title where nothing is grouped."""

    def title(row: Row) -> str:
        call = row.approval.call
        return {"agent": call.agent.name, "tool": call.tool_name}.get(filters.group, "")

    ordered = sorted(found, key=title)
    return [RowGroup(name, list(members)) for name, members in groupby(ordered, key=title)]


def _added_up(counts: Iterable[tuple[str, int]]) -> list[FilterChoice]:
    found: Counter[str] = Counter()
    for value, n in counts:
        found[value] += n
    return [FilterChoice(value, n) for value, n in sorted(found.items()) if n]
