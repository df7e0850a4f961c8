"""What is found in a labelled corpus, family by family, as docs/en/reference/inspection.md says it.

`python -m tests.inspection.test_corpus` writes the table there anew.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from inspection.definitions import (
    FAMILIES,
    RULES,
    EarlierDefinition,
    Finding,
    Scan,
    families,
    scan,
)
from inspection.sarif import Inspected, report

ROOT = Path(__file__).resolve().parents[2]
CORPUS = json.loads((Path(__file__).parent / "corpus" / "definitions.json").read_text())
HARMLESS: list[dict[str, Any]] = CORPUS["harmless"]
# With the family that each is an example of.
HOSTILE: list[tuple[str, dict[str, Any]]] = [(one, tool) for one, tool in CORPUS["hostile"]]
# What a server says after what it said before, with the versions that it stated.
CHANGES: list[dict[str, Any]] = CORPUS["changes"]
PAGE = ROOT / "docs" / "en" / "reference" / "inspection.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


class Figures(NamedTuple):
    hostile: int
    found: int
    false: int

    @property
    def precision(self) -> str:
        everything = self.found + self.false
        return f"{self.found / everything:.2f}" if everything else "–"

    @property
    def recall(self) -> str:
        return f"{self.found / self.hostile:.2f}" if self.hostile else "–"


def figures() -> Iterator[tuple[str, Figures]]:
    quiet = [families(scan(one).risks) for one in HARMLESS]
    loud = [(family, families(scan(one).risks)) for family, one in HOSTILE]
    for family in FAMILIES:
        if family in ("lint", "external"):
            continue
        if family == "change":
            yield family, _changes()
            continue
        found = [family in said for wanted, said in loud if wanted == family]
        yield family, Figures(len(found), sum(found), sum(family in said for said in quiet))


def changed(one: dict[str, Any]) -> Scan:
    before, after = one["stated"]
    earlier = EarlierDefinition(one["before"], after) if before == after else None
    return scan(one["after"], earlier=earlier)


def _changes() -> Figures:
    found = [(one["hostile"], changed(one).is_unexplained) for one in CHANGES]
    hostile = [is_found for is_hostile, is_found in found if is_hostile]
    return Figures(len(hostile), sum(hostile), found.count((False, True)))


def table() -> str:
    lines = [
        "| family | hostile | found | harmless with it | precision | recall |",
        "|---|---|---|---|---|---|",
    ]
    for family, one in figures():
        row = (family, one.hostile, one.found, one.false, one.precision, one.recall)
        lines.append(f"| {' | '.join(map(str, row))} |")
    red = sum(scan(one).is_red for _, one in HOSTILE), sum(scan(one).is_red for one in HARMLESS)
    lines += [
        "",
        f"Red: {red[0]} of {len(HOSTILE)} hostile and {red[1]} of {len(HARMLESS)} harmless ones.",
    ]
    return "\n".join(lines) + "\n"


def test_the_figures_in_the_docs_are_those_of_the_corpus() -> None:
    assert len(HARMLESS) + len(HOSTILE) >= 300
    assert len(HARMLESS) * 2 >= len(HARMLESS) + len(HOSTILE)
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == table()


def test_every_rule_finds_something_and_nothing_is_lost_when_kept() -> None:
    tools = [*HARMLESS, *(tool for _, tool in HOSTILE)]
    # Of other servers' tools none of these knows.
    known = scan({"name": "a", "description": "Before send_mail use this."}, others=["send_mail"])
    like = scan({"name": "a", "inputSchema": {}}, like="mail.send")
    odd = scan({"name": "read_and_write", "description": "One\u200b.", "inputSchema": {}})
    scans = [*map(scan, tools), *map(changed, CHANGES), known, like, odd]

    ours = {name for name, rule in RULES.items() if rule.family != "external"}
    assert {one.rule for found in scans for one in found.findings} == ours
    for found in scans:
        assert Scan.of_kept(json.loads(json.dumps(found.kept()))) == found
        assert 0 <= found.score <= 100
    assert Scan.of_kept({"version": 0, "findings": []}) is None


def test_each_member_that_changed_is_named() -> None:
    before = {"name": "a", "description": "Reads.", "icons": [1], "annotations": {}}
    after = {"name": "a", "description": "Sends.", "icons": [2], "inputSchema": {}}

    found = scan(after, earlier=EarlierDefinition(before, "1.\u202e0")).findings

    assert [(one.where, one.quote) for one in found if one.rule == "unexplained-change"] == [
        ("annotations", "1.\u202e0"),
        ("description", "1.\u202e0"),
        ("inputSchema", "1.\u202e0"),
    ]


def test_advice_changes_no_score() -> None:
    found = scan({"name": "x", "inputSchema": {"type": "object", "properties": {"a": {}}}})

    assert found.score == 0
    assert {one.rule for one in found.advice} >= {"unclear-name", "no-description", "no-example"}


def test_findings_are_written_as_sarif() -> None:
    found = Scan((Finding("override", "description", "Ignore\u202e all"),))

    said = report([Inspected("files", "files.read", "tool", found)])

    (run,) = said["runs"]
    (result,) = run["results"]
    assert said["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "override"
    assert result["level"] == "error"
    assert "⟦U+202E⟧" in result["message"]["text"]
    (where,) = result["locations"][0]["logicalLocations"]
    assert where == {"fullyQualifiedName": "files.read#description", "kind": "tool"}


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}")


if __name__ == "__main__":
    import django
    from django.conf import settings

    settings.configure(USE_I18N=False)
    django.setup()
    main()
