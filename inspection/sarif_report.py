"""Findings of another scanner, read from SARIF 2.1.0 (OASIS, 2020-03-27)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from core.english import gettext as _
from core.errors import CountersignError
from inspection.definitions import MOST, QUOTED, Finding

RULE_OF = {"error": "external-error", "warning": "external-warning", "note": "external-note"}


class BadReport(CountersignError):
    """It is no SARIF; says why."""


@dataclass(frozen=True, slots=True)
class ExternalFindings:
    """By the name of the definition. `unplaced`: results that name none of those scanned."""

    by_name: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    unplaced: int = 0


def read_report(document: bytes, names: Collection[str]) -> ExternalFindings:
    """Raises BadReport."""
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    unplaced = 0
    for scanner, run in _runs(document):
        levels = _levels(run)
        for result in _dicts(run.get("results")):
            placed = list(_placed(scanner, result, levels, names))
            unplaced += not placed
            for name, finding in placed:
                if len(found[name]) < MOST * len(RULE_OF) and finding not in found[name]:
                    found[name].append(finding)
    return ExternalFindings({name: tuple(ones) for name, ones in found.items()}, unplaced)


def _runs(document: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each run with the name of its scanner."""
    try:
        report = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise BadReport(_("its output is no JSON")) from error
    runs = report.get("runs") if isinstance(report, dict) else None
    if not isinstance(runs, list):
        raise BadReport(_("its output is no SARIF: it has no runs"))
    for run in _dicts(runs):
        yield _text(_driver(run).get("name"), 40) or "?", run


def _placed(
    scanner: str, result: dict[str, Any], levels: Mapping[str, str], names: Collection[str]
) -> Iterator[tuple[str, Finding]]:
    """The result as a finding of each definition that it names."""
    rule = _text(result.get("ruleId"), 60)
    level = _text(result.get("level"), 20) or levels.get(rule, "warning")
    message = result.get("message")
    said = _text(message.get("text"), 4 * QUOTED) if isinstance(message, dict) else ""
    quote = " ".join(filter(None, (scanner, rule, said)))[: 2 * QUOTED]
    for place in _places(result):
        if (name := _name(place, names)) is not None:
            where = place.removeprefix(name).removeprefix("#")
            yield name, Finding(RULE_OF.get(level, "external-note"), where[:QUOTED], quote)


def _name(place: str, names: Collection[str]) -> str | None:
    """The definition at this place, which may have a `#` in its name, and a path behind another."""
    end = len(place)
    while end > 0:
        if place[:end] in names:
            return place[:end]
        end = place.rfind("#", 0, end)
    return None


def _places(result: dict[str, Any]) -> Iterator[str]:
    for location in _dicts(result.get("locations")):
        for logical in _dicts(location.get("logicalLocations")):
            yield _text(logical.get("fullyQualifiedName") or logical.get("name"), 4_000)


def _levels(run: dict[str, Any]) -> dict[str, str]:
    """Levels of rules whose results have none of their own."""
    found = {}
    for rule in _dicts(_driver(run).get("rules")):
        usual = rule.get("defaultConfiguration")
        level = _text(usual.get("level"), 20) if isinstance(usual, dict) else ""
        found[_text(rule.get("id"), 60)] = level or "warning"
    return found


def _driver(run: dict[str, Any]) -> dict[str, Any]:
    tool = run.get("tool")
    driver = tool.get("driver") if isinstance(tool, dict) else None
    return driver if isinstance(driver, dict) else {}


def _dicts(found: Any) -> Iterator[dict[str, Any]]:
    return (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))


def _text(found: Any, most: int) -> str:
    return found[:most] if isinstance(found, str) else ""
