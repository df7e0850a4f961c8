"""Conditions that can never hold, whatever is called: said on the rules' page, with the reason.

Only what is certain is said. A condition is taken apart into alternatives, each a list of facts
that must be so together (`args.n > 5`, `tool.name == 'x'`); it can never hold if each alternative
has facts that contradict each other, or the tool's schema, or the rule's own patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from core.english import gettext as _
from policies.conditions import BadCondition, compiled
from policies.tree import Const, Node, OperatorCall, Path, tree

ALTERNATIVES = 64
_FLIPPED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = {f"_{sign}_": sign for sign in _FLIPPED}


@dataclass(frozen=True, slots=True)
class Fact:
    """`sign` is one of == != < <= > >= in, not in, or "never"."""

    path: str
    sign: str
    value: Any

    def __str__(self) -> str:
        return f"{self.path} {self.sign} {self.value!r}" if self.path else str(self.value).lower()


@dataclass(frozen=True, slots=True)
class Domain:
    """The possible values: one of `among`, none of `barred`, and between the ends."""

    among: tuple[Any, ...] | None = None
    barred: tuple[Any, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False

    def is_empty(self) -> bool:
        if self.among is not None:
            return not any(self._has(value) for value in self.among)
        low, high = self.low, self.high
        if self.whole:
            low = math.floor(low) + 1 if self.low_open and math.isfinite(low) else low
            high = math.ceil(high) - 1 if self.high_open and math.isfinite(high) else high
            return _up(low) > _down(high)
        return low > high or (low == high and (self.low_open or self.high_open))

    def _has(self, value: Any) -> bool:
        if any(_equal(value, other) for other in self.barred):
            return False
        if not _is_number(value):
            return True
        above = value > self.low or (value == self.low and not self.low_open)
        below = value < self.high or (value == self.high and not self.high_open)
        return bool(above and below)

    def but(self, fact: Fact) -> Domain:
        """The values that remain if this holds as well."""
        match fact.sign:
            case "==":
                return self._only((fact.value,))
            case "in":
                return self._only(tuple(fact.value))
            case "!=":
                return replace(self, barred=(*self.barred, fact.value))
            case "not in":
                return replace(self, barred=(*self.barred, *fact.value))
        return self._bounded(fact.sign, fact.value) if _is_number(fact.value) else self

    def _only(self, values: tuple[Any, ...]) -> Domain:
        if self.among is None:
            return replace(self, among=values)
        return replace(
            self, among=tuple(v for v in self.among if any(_equal(v, o) for o in values))
        )

    def _bounded(self, sign: str, value: float) -> Domain:
        opened = sign in ("<", ">")
        if sign in (">", ">=") and (value, opened) > (self.low, self.low_open):
            return replace(self, low=value, low_open=opened)
        if sign in ("<", "<=") and (-value, opened) > (-self.high, self.high_open):
            return replace(self, high=value, high_open=opened)
        return self


Domains = Mapping[str, Domain]
RISKS = ("destroys", "unsaid", "changes", "reads")
ALWAYS: Domains = {
    "history.calls_1h": Domain(low=0, whole=True),
    "history.refused_24h": Domain(low=0, whole=True),
    "unusual.refusals": Domain(low=0, whole=True),
    "unusual.rate": Domain(low=0),
    "tool.risk": Domain(among=RISKS),
}


def why_never(
    when: str, *, server: str = "*", tool: str = "*", schema: dict[str, Any] | None = None
) -> str:
    """Why this condition can never hold, as a sentence; empty if it may."""
    try:
        condition = compiled(when, hints=True)
    except BadCondition:
        # It asks, which is told elsewhere.
        return ""
    known = dict(ALWAYS)
    known.update(_named("tool.server", server))
    known.update(_named("tool.name", tool))
    known.update(_of_schema("args", schema or {}))
    reasons = []
    for facts in _alternatives(tree(condition.expression), holds=True) or [[]]:
        reason = _contradiction(facts, known)
        if not reason:
            return ""
        reasons.append(reason)
    return reasons[0]


def _contradiction(facts: list[Fact], known: Domains) -> str:
    left = dict(known)
    by_path: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.sign == "never":
            return _("It is always false.")
        if (before := left.get(fact.path, Domain())).but(fact).is_empty():
            return _sentence([*by_path.get(fact.path, []), fact])
        left[fact.path] = before.but(fact)
        by_path.setdefault(fact.path, []).append(fact)
    return ""


def _sentence(facts: list[Fact]) -> str:
    together = _(" and ").join(str(fact) for fact in facts)
    if len(facts) == 1:
        return _("%(what)s is never so: the tool takes no such value.") % {"what": together}
    return _("%(what)s are never so together.") % {"what": together}


def _alternatives(node: Node, *, holds: bool) -> list[list[Fact]]:
    """Alternatives, of which one must hold. An empty one says nothing."""
    match node:
        case OperatorCall("!_", (inner,)):
            return _alternatives(inner, holds=not holds)
        case OperatorCall("_&&_", (left, right)):
            return _both(left, right, holds) if holds else _either(left, right, holds)
        case OperatorCall("_||_", (left, right)):
            return _either(left, right, holds) if holds else _both(left, right, holds)
        case Const(bool() as value):
            return [[]] if value is holds else [[Fact("", "never", value)]]
        case Path(name):
            return [[Fact(name, "==", holds)]]
        case OperatorCall(function, (left, right)):
            return [list(_fact(function, left, right, holds))]
    return [[]]


def _both(left: Node, right: Node, holds: bool) -> list[list[Fact]]:
    pairs = product(_alternatives(left, holds=holds), _alternatives(right, holds=holds))
    found = [[*one, *other] for one, other in pairs]
    return found if len(found) <= ALTERNATIVES else [[]]


def _either(left: Node, right: Node, holds: bool) -> list[list[Fact]]:
    found = [*_alternatives(left, holds=holds), *_alternatives(right, holds=holds)]
    return found if len(found) <= ALTERNATIVES else [[]]


def _fact(function: str, left: Node, right: Node, holds: bool) -> Iterator[Fact]:
    match (function, left, right):
        case ("@in", Path(name), Const(list() as values)):
            yield Fact(name, "in" if holds else "not in", values)
        case (_, Path(name), Const(value)) if function in _OPERATORS:
            sign = _OPERATORS[function]
            yield Fact(name, sign if holds else _FLIPPED[sign], value)
        case (_, Const(value), Path(name)) if function in _OPERATORS:
            sign = _OPERATORS[function]
            sign = _MIRRORED.get(sign, sign)
            yield Fact(name, sign if holds else _FLIPPED[sign], value)


def _named(path: str, pattern: str) -> Iterable[tuple[str, Domain]]:
    return () if any(sign in pattern for sign in "*?[") else ((path, Domain(among=(pattern,))),)


def _of_schema(path: str, schema: Any) -> Iterator[tuple[str, Domain]]:
    """Only plain keywords: what is combined or referred to says nothing here."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            yield f"{path}.{name}", _domain(inner)
            yield from _of_schema(f"{path}.{name}", inner)


def _domain(schema: Any) -> Domain:
    if not isinstance(schema, dict):
        return Domain()
    among = schema.get("enum", [schema["const"]] if "const" in schema else None)
    found = Domain(
        among=tuple(among) if isinstance(among, list) else None,
        whole=schema.get("type") == "integer",
    )
    for keyword, sign in _BOUNDS.items():
        if _is_number(schema.get(keyword)):
            found = found.but(Fact("", sign, schema[keyword]))
    return found


_BOUNDS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}


def _equal(one: Any, other: Any) -> bool:
    """Equality as in CEL: numbers by value, and true is no number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _up(value: float) -> float:
    return math.ceil(value) if math.isfinite(value) else value


def _down(value: float) -> float:
    return math.floor(value) if math.isfinite(value) else value
