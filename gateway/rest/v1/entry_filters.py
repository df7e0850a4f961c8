"""Filters of the audit log, as programs send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from audit.filters import DAYS, NAMES, RANGES, Filters, moment
from core.english import gettext as _

UTC = ZoneInfo("UTC")
# Whoever searches in arguments sees some of them.
FILTERS = tuple(name for name in NAMES if name != "text")
# With a character to look for, and without NUL.
WORD = {"type": "string", "pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"}
# Years as `moment` takes them.
TIME = {"type": "string", "format": "date-time", "pattern": "^(19[7-9]|[2-8][0-9]{2})"}
RANGE = {"type": "string", "enum": [*RANGES, *DAYS]}
SCHEMAS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(FILTERS, WORD),
    "range": RANGE,
    "since": TIME,
    "until": TIME,
}


def read(given: Mapping[str, str]) -> Filters:
    return Filters.read(given, UTC).without_text()


def mistake_in(given: Mapping[str, str]) -> str:
    """A sentence on a value without a meaning, for which the console shows all entries; or ""."""
    sent = {name for name in FILTERS if name in given}
    times = {name for name in ("since", "until") if not moment(given.get(name, ""), UTC)}
    ranges = set() if given.get("range") in {*RANGES, *DAYS} else {"range"}
    wrong = sorted(sent & (times | ranges) | (sent - set(read(given).given)))
    return _("The value of “%s” fits nothing.") % wrong[0] if wrong else ""
