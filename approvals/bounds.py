"""Which arguments a grant covers: the approved ones, and what was let vary within bounds.

Compared as written: 10 and 10.0 are different texts, and whatever is not the same waits for people.
Only prefixes look closer (approvals/prefixes.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from approvals.prefixes import is_below
from core import exact_json
from core.english import gettext as _
from core.errors import CountersignError
from core.exact_json import Number
from registry.schemas.violations import json_path

Path = tuple[str | int, ...]

PREFIX, SET, RANGE = "prefix", "set", "range"
MOST_VALUES = 100


class BadBound(CountersignError):
    """Says which one is wrong, and what would be right."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`kind`: PREFIX of a text, SET of values (of a list: of its items), RANGE of a number."""

    path: Path
    kind: str
    prefix: str = ""
    values: tuple[Any, ...] = ()
    least: Decimal | None = None
    most: Decimal | None = None

    def holds(self, given: Any, approved: Any) -> bool:
        """`approved`: what stood there in the call that the grant was made from. Only what is of
        the same type may stand in its place."""
        match self.kind:
            case "prefix":
                if not isinstance(given, str) or not isinstance(approved, str):
                    return False
                return is_below(given, self.prefix, approved=approved)
            case "set" if isinstance(approved, list):
                return isinstance(given, list) and self._all_known(given)
            case "set":
                return not isinstance(given, list) and self._is_known(given)
            case "range":
                same = isinstance(given, Number) and isinstance(approved, Number)
                return same and self._between(given)
            case _:
                return False

    def _is_known(self, given: Any) -> bool:
        return any(type(value) is type(given) and value == given for value in self.values)

    def _all_known(self, given: list[Any]) -> bool:
        """Each once: nothing is sent twice to one of them."""
        if not 0 < len(given) <= len(self.values):
            return False
        return all(self._is_known(item) for item in given) and _are_distinct(given)

    def _between(self, given: Number) -> bool:
        assert self.least is not None
        assert self.most is not None
        try:
            return self.least <= Decimal(given.text) <= self.most
        except InvalidOperation:
            # An exponent beyond all reckoning.
            return False

    def plain(self) -> dict[str, Any]:
        """The stored form: numbers as text."""
        said: dict[str, Any] = {"path": list(self.path), "is": self.kind}
        match self.kind:
            case "prefix":
                said["prefix"] = self.prefix
            case "set":
                said["values"] = [exact_json.dumps(value) for value in self.values]
            case _:
                said |= {"least": str(self.least), "most": str(self.most)}
        return said

    def __str__(self) -> str:
        at = json_path(self.path)
        match self.kind:
            case "prefix":
                said = _("%(at)s begins with %(prefix)s")
                return said % {"at": at, "prefix": exact_json.literal(self.prefix)}
            case "set":
                values = ", ".join(exact_json.pretty(value) for value in self.values)
                return _("%(at)s is one of %(values)s") % {"at": at, "values": values}
            case _:
                said = _("%(at)s is from %(least)s to %(most)s")
                return said % {"at": at, "least": self.least, "most": self.most}


def _are_distinct(items: list[Any]) -> bool:
    return len({(type(item), item) for item in items}) == len(items)


def parse(plain: list[dict[str, Any]]) -> tuple[Bound, ...]:
    """Reads the output of `Bound.plain`."""
    return tuple(
        Bound(
            path=tuple(one["path"]),
            kind=one["is"],
            prefix=one.get("prefix", ""),
            values=tuple(exact_json.loads(v.encode()) for v in one.get("values", ())),
            least=Decimal(one["least"]) if "least" in one else None,
            most=Decimal(one["most"]) if "most" in one else None,
        )
        for one in plain
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """A document, of which some places may be otherwise."""

    pinned: Any
    bounds: dict[Path, Bound] = field(default_factory=dict)

    def covers(self, given: Any, path: Path = ()) -> bool:
        """`given`: as `exact_json` reads it."""
        pinned = at(self.pinned, path)
        if path in self.bounds:
            return self.bounds[path].holds(given, pinned)
        match pinned, given:
            case dict(), dict():
                return pinned.keys() == given.keys() and all(
                    self.covers(value, (*path, name)) for name, value in given.items()
                )
            case list(), list():
                return len(pinned) == len(given) and all(
                    self.covers(value, (*path, n)) for n, value in enumerate(given)
                )
            case _:
                return type(pinned) is type(given) and pinned == given


def at(document: Any, path: Path) -> Any:
    """Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        document = document[step]
    return document


def amount(document: Any, path: Path) -> Decimal | None:
    """The value that counts towards a sum: a number that is not negative; None otherwise."""
    try:
        found = at(document, path)
    except (KeyError, IndexError, TypeError):
        return None
    if not isinstance(found, Number):
        return None
    try:
        written = Decimal(found.text)
    except InvalidOperation:
        return None
    return written if 0 <= written < Decimal(10) ** 18 else None


def leaves(document: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Each place that may be let vary: single values, and lists of them."""
    match document:
        case dict() if document:
            return [leaf for name, v in document.items() for leaf in leaves(v, (*path, name))]
        case list() if any(isinstance(item, dict | list) for item in document):
            return [leaf for n, v in enumerate(document) for leaf in leaves(v, (*path, n))]
        case _:
            return [(path, document)]
