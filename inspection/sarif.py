"""Findings as SARIF 2.1.0, the format that code scanners share (OASIS, 2020-03-27)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from core.text import revealed
from inspection.definitions import RULES, VERSION, Finding, Level, Scan

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LEVELS = {
    Level.HIGH: "error",
    Level.MEDIUM: "warning",
    Level.LOW: "note",
    Level.ADVICE: "note",
}


class Inspected(NamedTuple):
    server: str
    name: str
    # tool, resource, template, prompt or instructions.
    kind: str
    scan: Scan


def report(inspected: Iterable[Inspected]) -> dict[str, Any]:
    names = list(RULES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": str(rule.said)},
            "defaultConfiguration": {"level": LEVELS[rule.level]},
            "properties": {"family": rule.family, "level": rule.level.value},
        }
        for name, rule in RULES.items()
    ]
    driver = {
        "name": "Countersign inspection",
        "semanticVersion": f"{VERSION}.0.0",
        "rules": rules,
    }
    results = [_result(one, finding, names) for one in inspected for finding in one.scan.findings]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(one: Inspected, finding: Finding, names: list[str]) -> dict[str, Any]:
    quoted = f": {revealed(finding.quote)}" if finding.quote else ""
    where = {"fullyQualifiedName": revealed(f"{one.name}#{finding.where}"), "kind": one.kind}
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": LEVELS[finding.level],
        "message": {"text": f"{finding.said}{quoted}"},
        "locations": [{"logicalLocations": [where]}],
        "properties": {"server": one.server, "score": one.scan.score},
    }
