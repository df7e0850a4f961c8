"""Any JSON as a tree for people: members folded behind their number, lists of records as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_NODES = 2_000
MAX_DEPTH = 12
TABLE_ROWS = 200
# Objects with more names are not rows of one table.
TABLE_COLUMNS = 50
# So many levels stand open.
OPEN = 2


@dataclass(slots=True)
class JsonNode:
    """`kind`: "object", "list", "table", "value", or "rest" for what is no longer drawn."""

    name: str
    kind: str
    depth: int
    value: Any = None
    count: int = 0
    children: list[JsonNode] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.depth < OPEN


def tree(content: Any) -> JsonNode:
    return _Planter().node("", content, 0)


def records(content: Any) -> list[dict[str, Any]]:
    """Rows of a list of flat objects; none of anything else."""
    if not isinstance(content, list) or not content:
        return []
    flat = all(isinstance(line, dict) and _is_flat(line) for line in content)
    return content[:TABLE_ROWS] if flat else []


def columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


class _Planter:
    def __init__(self) -> None:
        self._left = MAX_NODES

    def node(self, name: str, content: Any, depth: int) -> JsonNode:
        self._left -= 1
        if not isinstance(content, dict | list) or not content:
            return JsonNode(name, "value", depth, content)
        if self._left < 0 or depth == MAX_DEPTH:
            return JsonNode(name, "rest", depth, count=len(content))
        if rows := self._rows(content):
            named = columns(rows)
            self._left -= len(rows) * len(named)
            return JsonNode(name, "table", depth, rows, len(content), columns=named)
        kind = "object" if isinstance(content, dict) else "list"
        made = JsonNode(name, kind, depth, count=len(content))
        made.children = list(self._children(content, depth + 1))
        return made

    def _rows(self, content: Any) -> list[dict[str, Any]]:
        """Rows that fit: each has a cell of every column, filled or not."""
        rows = records(content)
        width = len(columns(rows))
        return rows[: self._left // width] if 0 < width <= TABLE_COLUMNS else []

    def _children(self, content: Any, depth: int) -> Iterator[JsonNode]:
        named = content.items() if isinstance(content, dict) else enumerate(content, start=1)
        for n, (name, member) in enumerate(named):
            if self._left < 0:
                yield JsonNode("", "rest", depth, count=len(content) - n)
                return
            yield self.node(str(name), member, depth)


def _is_flat(line: dict[str, Any]) -> bool:
    return not any(isinstance(value, dict | list) for value in line.values())
