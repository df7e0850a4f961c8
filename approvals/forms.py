"""A grant's terms as a form: each argument as it was approved, or let vary within bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext as _

from approvals.bounds import MOST_VALUES, PREFIX, RANGE, SET, BadBound, Bound, Path, leaves
from approvals.standing_approvals import Terms
from calls.models import Call
from core import exact_json, strict_json
from core.exact_json import Number
from registry.schemas.violations import json_path

EQUAL = "equal"
DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class ArgumentTerms:
    """One argument in the form."""

    n: int
    path: Path
    value: Any
    kind: str = EQUAL
    prefix: str = ""
    values: str = ""
    least: str = ""
    most: str = ""

    @property
    def at(self) -> str:
        """Its name as cards show it, after those around it."""
        return json_path(self.path).removeprefix("$.")

    @property
    def shown(self) -> str:
        return exact_json.pretty(self.value)

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, Number)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        kinds = [(EQUAL, _("exactly this"))]
        if isinstance(self.value, str):
            kinds.append((PREFIX, _("begins with")))
        if self.is_number:
            kinds.append((RANGE, _("from … to")))
        words = _("items among") if isinstance(self.value, list) else _("one of")
        return kinds if self.value == {} else [*kinds, (SET, words)]

    def bound(self) -> Bound | None:
        """The bound that was typed; None where the value is pinned. Raises BadBound."""
        match self.kind:
            case "prefix" if isinstance(self.value, str) and self.prefix:
                return Bound(self.path, PREFIX, prefix=self.prefix)
            case "set":
                return Bound(self.path, SET, values=tuple(self._values()))
            case "range" if self.is_number:
                return Bound(
                    self.path, RANGE, least=self._number(self.least), most=self._number(self.most)
                )
            case "equal":
                return None
            case _:
                raise BadBound(_("%(at)s: say what it begins with.") % {"at": self.at})

    def _number(self, written: str) -> Decimal:
        try:
            return Decimal(exact_json.number(written.strip()).text)
        except strict_json.Ambiguous as error:
            said = _("%(at)s: “%(what)s” is no number.")
            raise BadBound(said % {"at": self.at, "what": written[:40]}) from error

    def _values(self) -> list[Any]:
        lines = [line for line in self.values.replace("\r\n", "\n").split("\n") if line.strip()]
        if not 0 < len(lines) <= MOST_VALUES:
            said = _("%(at)s: one value a line, at most %(most)d.")
            raise BadBound(said % {"at": self.at, "most": MOST_VALUES})
        return list(dict.fromkeys(self._one(line.strip()) for line in lines))

    def _one(self, line: str) -> Any:
        """Texts stand as they are; in quotes, or of another type, as JSON."""
        items = self.value if isinstance(self.value, list) else [self.value]
        if all(isinstance(item, str) for item in items) and not line.startswith('"'):
            return line
        try:
            found = exact_json.loads(line.encode())
        except strict_json.Ambiguous as error:
            raise BadBound(_("%(at)s: %(why)s") % {"at": self.at, "why": error}) from error
        if isinstance(found, dict | list):
            raise BadBound(_("%(at)s: only single values.") % {"at": self.at})
        if items and type(found) not in {type(item) for item in items}:
            said = _("%(at)s: %(what)s is of another type than what was approved.")
            raise BadBound(said % {"at": self.at, "what": exact_json.pretty(found)})
        return found


@dataclass(slots=True)
class TermsForm:
    lines: list[ArgumentTerms]
    data: Mapping[str, str]
    weekdays: frozenset[int]

    @property
    def digest(self) -> str:
        """A digest of the choices, so that what is created is what was reviewed."""
        try:
            chosen = self.terms()
        except BadBound:
            return ""
        parts = [getattr(chosen, name) for name in Terms.__slots__ if name not in ("note", "days")]
        return hashlib.sha256(repr((parts, sorted(chosen.days))).encode()).hexdigest()[:16]

    @property
    def numbers(self) -> list[ArgumentTerms]:
        return [line for line in self.lines if line.is_number]

    def terms(self) -> Terms:
        """Raises BadBound."""
        bounds = [line.bound() for line in self.lines]
        counted = self._counted()
        return Terms(
            bounds=tuple(bound for bound in bounds if bound is not None),
            max_uses=self._whole("max_uses", _("uses")),
            days_valid=self._whole("days_valid", _("days")),
            sum_path=counted.path if counted else None,
            max_sum=counted._number(self.data.get("max_sum", "")) if counted else None,
            days=self.weekdays,
            start=_minute(self.data.get("start", ""), 0),
            end=_minute(self.data.get("end", ""), DAY),
            note=self.data.get("note", "").strip()[:1000],
        )

    def _counted(self) -> ArgumentTerms | None:
        chosen = self.data.get("sum", "")
        return next((line for line in self.numbers if str(line.n) == chosen), None)

    def _whole(self, name: str, what: str) -> int:
        written = self.data.get(name, "")
        if not (written.isascii() and written.isdecimal() and len(written) < 7):
            raise BadBound(_("How many %(what)s? Give a whole number.") % {"what": what})
        return int(written)


FIRST = {"max_uses": "20", "days_valid": "7", "start": "", "end": "", "sum": "", "max_sum": ""}


def first(call: Call) -> TermsForm:
    return filled(call, FIRST, [])


def filled(call: Call, data: Mapping[str, str], weekdays: list[str]) -> TermsForm:
    document = exact_json.loads(call.to_send)
    lines = [_line(n, path, value, data) for n, (path, value) in enumerate(leaves(document))]
    days = frozenset(int(day) for day in weekdays if day in "0123456" and len(day) == 1)
    return TermsForm(lines, {name: data[name] for name in data}, days)


def _line(n: int, path: Path, value: Any, data: Mapping[str, str]) -> ArgumentTerms:
    items = value if isinstance(value, list) else [value]
    as_lines = "\n".join(
        item if isinstance(item, str) else exact_json.dumps(item) for item in items
    )
    number = value.text if isinstance(value, Number) else ""
    return ArgumentTerms(
        n,
        path,
        value,
        data.get(f"is.{n}", EQUAL),
        data.get(f"prefix.{n}", value if isinstance(value, str) else ""),
        data.get(f"values.{n}", as_lines),
        data.get(f"least.{n}", number),
        data.get(f"most.{n}", number),
    )


def _minute(written: str, otherwise: int) -> int:
    if not written:
        return otherwise
    try:
        given = time.fromisoformat(written)
    except (ValueError, InvalidOperation) as error:
        raise BadBound(_("A time is written like 09:00.")) from error
    return given.hour * 60 + given.minute
