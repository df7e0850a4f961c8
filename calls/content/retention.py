"""Which retention period counts for a tool's calls.

The most specific one: of the tool itself; of a tag that operators gave it; of its labels; of its
server; of all calls. Where several tags, or labels, have periods, the shortest counts. "Kept"
counts as the longest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.utils import timezone

from calls.models import Call, RetainedContent, RetentionPeriod, RetentionProgress, RetentionScope
from registry.models import Tool

Key = tuple[RetentionScope, str]
Cutoffs = dict[int, datetime]
FIRST = UUID(int=0)

# SQL: the calls of some tools that come after the place up to which they were looked at and are
# due. Read by the index of tools, a tool after the other: as a plain join, PostgreSQL may read all
# calls. Calls of tools that there are not have no number there.
DUE_CALLS = """
    unnest(%(tools)s::bigint[], %(passed)s::uuid[], %(cutoffs)s::timestamptz[])
        AS t (tool, passed, cutoff)
    CROSS JOIN LATERAL (
        SELECT c.id FROM calls_call c
        WHERE c.tool_id = t.tool AND c.id > t.passed AND c.id < core_first_id(t.cutoff)
            AND t.tool <> 0
        UNION ALL
        SELECT c.id FROM calls_call c
        WHERE c.tool_id IS NULL AND c.id > t.passed AND c.id < core_first_id(t.cutoff)
            AND t.tool = 0
        ORDER BY id LIMIT %(each)s) c
"""


@dataclass(frozen=True, slots=True)
class RetainedTool:
    """A tool by everything that periods can name. `pk`: 0 for calls of tools that there are not."""

    pk: int
    name: str = ""
    server: str = ""
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: Tool | None) -> Self:
        if tool is None:
            return cls(0)
        tags = tuple(sorted(tag.name for tag in tool.tags.all()))
        return cls(tool.pk, tool.exposed_name, tool.server.slug, tags, tuple(sorted(tool.labels)))

    def levels(self) -> Iterable[Sequence[Key]]:
        """Keys by which periods are found, from the most specific to the least."""
        yield [(RetentionScope.TOOL, self.name)]
        yield [(RetentionScope.TAG, tag) for tag in self.tags]
        yield [(RetentionScope.LABEL, label) for label in self.labels]
        yield [(RetentionScope.SERVER, self.server)]
        yield [(RetentionScope.ALL, "")]


@dataclass(frozen=True, slots=True)
class EffectivePeriod:
    """A period in days and what it was set for. `days` is None: kept."""

    days: int | None
    scope: RetentionScope
    target: str

    def cutoff(self) -> datetime | None:
        """Calls from before are due."""
        return None if self.days is None else timezone.now() - timedelta(days=self.days)


class RetentionRules:
    """All periods for one kind of content."""

    def __init__(self, content: RetainedContent, days: dict[Key, int | None]) -> None:
        self.content = content
        self.days = days

    @classmethod
    def load(cls, content: RetainedContent) -> Self:
        rows = RetentionPeriod.objects.filter(content=content)
        return cls(content, {(RetentionScope(r.scope), r.target): r.days for r in rows})

    def changed(self, key: Key, days: int | None, *, removed: bool = False) -> RetentionRules:
        """These rules after a change."""
        left = {one: kept for one, kept in self.days.items() if one != key}
        return RetentionRules(self.content, left if removed else {**left, key: days})

    def period_of(self, tool: RetainedTool) -> EffectivePeriod | None:
        for keys in tool.levels():
            if known := [key for key in keys if key in self.days]:
                scope, target = min(known, key=self._length)
                return EffectivePeriod(self.days[scope, target], scope, target)
        return None

    def _length(self, key: Key) -> tuple[bool, int, str]:
        days = self.days[key]
        return days is None, days or 0, key[1]

    def has_end(self) -> bool:
        return any(days is not None for days in self.days.values())


def all_tools() -> list[RetainedTool]:
    """Every tool that calls can be of, and none."""
    rows = Tool.objects.select_related("server").prefetch_related("tags")
    wanted = rows.only("exposed_name", "labels", "server__slug").order_by("pk")
    return [RetainedTool(0), *map(RetainedTool.of, wanted)]


def lengths(rules: RetentionRules, tools: Iterable[RetainedTool]) -> dict[int, int]:
    """Days by the number of each tool whose calls have an end."""
    periods = ((tool.pk, rules.period_of(tool)) for tool in tools)
    return {pk: one.days for pk, one in periods if one and one.days is not None}


def cutoffs(days: Mapping[int, int]) -> Cutoffs:
    """By the number of a tool: calls from before then are due."""
    now = timezone.now()
    return {pk: now - timedelta(days=length) for pk, length in days.items()}


def due_values(rules: RetentionRules, ends: Cutoffs) -> dict[str, Any]:
    """Values for DUE_CALLS."""
    rows = RetentionProgress.objects.filter(content=rules.content, tool_id__in=list(ends))
    passed = dict(rows.values_list("tool_id", "passed"))
    return {
        "tools": list(ends),
        "passed": [passed.get(pk, FIRST) for pk in ends],
        "cutoffs": list(ends.values()),
    }


def ends_of(call: Call) -> dict[str, datetime]:
    """When what is kept of a call is to be erased, by its kind; without kinds that have no end."""
    rules = [RetentionRules.load(content) for content in RetainedContent]
    if not any(one.has_end() for one in rules):
        return {}
    tool = RetainedTool.of(call.tool)
    found = {one.content.value: one.period_of(tool) for one in rules}
    return {
        content: call.asked_at + timedelta(days=period.days)
        for content, period in found.items()
        if period and period.days is not None
    }
