"""A scanner of the operator's own looks at new definitions, and discovery goes on without it."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.roles import Role
from inspection.definitions import Scan
from inspection.sarif_report import BadReport, read_report
from registry.discovery import external_scanner
from registry.models import Definition, Discovery, Server, Tool
from tests.console import scenery
from tests.registry.offering import ADD, Offering

Look = Callable[[Server], Discovery]
Scanner = Callable[..., None]

PROGRAM = """
import json, os, sys
given = json.load(sys.stdin)
open({seen!r}, "w").write(json.dumps({{
    "argv": sys.argv[1:], "env": dict(os.environ), "given": given, "cwd": os.getcwd()}}))
{then}
"""
REPORT = "print(json.dumps({report!r}))"


def result(name: str, **more: Any) -> dict[str, Any]:
    place = {"logicalLocations": [{"fullyQualifiedName": name}]}
    message = {"text": "Speaks to the model."}
    return {"ruleId": "TP1", "level": "error", "message": message, "locations": [place], **more}


def report(*results: dict[str, Any], rules: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    driver = {"name": "other scan", "rules": [*rules]}
    return {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": [*results]}]}


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """What the scanner was given."""
    return tmp_path / "seen.json"


@pytest.fixture
def scanner(settings: Any, tmp_path: Path, seen: Path) -> Scanner:
    def write(then: str, *words: str) -> None:
        program = tmp_path / "scanner.py"
        program.write_text(PROGRAM.format(seen=str(seen), then=then))
        settings.SCANNER = [sys.executable, str(program), *words]
        settings.SCANNER_TIMEOUT_S = 20

    return write


def found(name: str = "add") -> Scan:
    return Definition.objects.filter(tool__name=name).latest().findings


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_what_it_finds_is_read_before_publishing(
    calculator: Server, look: Look, scanner: Scanner, seen: Path, client: Client
) -> None:
    scanner(REPORT.format(report=report(result("add#description"))), "--stdin", "; id")
    os.environ["COUNTERSIGN_TEST_SECRET"] = "do not tell"

    row = look(calculator)
    del os.environ["COUNTERSIGN_TEST_SECRET"]

    assert row.summary == "Found 1 tool. New, to be published: 1."
    given = json.loads(seen.read_text())
    assert given["argv"] == ["--stdin", "; id"]
    assert given["given"] == {
        "server": "calculator",
        "definitions": [{"name": "add", "kind": "tool", "definition": ADD}],
    }
    assert given["env"].keys() <= {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE"}
    assert given["env"]["HOME"] == given["cwd"]
    assert not Path(given["cwd"]).exists()
    (one,) = [one for one in found().findings if one.family == "external"]
    assert (one.rule, one.where) == ("external-error", "description")
    assert found().is_red
    client.force_login(scenery.person("ada", Role.OPERATOR))
    page = client.get("/servers/calculator/review/").text
    assert "other scan TP1 Speaks to the model." in page


@pytest.mark.django_db(transaction=True)
def test_it_sees_each_version_once(
    calculator: Server, look: Look, scanner: Scanner, seen: Path, offering: Offering
) -> None:
    scanner(REPORT.format(report=report()))
    look(calculator)
    seen.unlink()

    look(calculator)
    assert not seen.exists()

    offering.tools = [{**ADD, "description": "Adds."}, {**ADD, "name": "more"}]
    look(calculator)
    listed = json.loads(seen.read_text())["given"]["definitions"]
    assert [one["name"] for one in listed] == ["add", "more"]


FAILURES = {
    "import time; time.sleep(60)": "it took longer than 1 s",
    "sys.exit('no licence\\n')": "it ended with status 1: no licence",
    "print('[]')": "its output is no SARIF: it has no runs",
    "print('all is well')": "its output is no JSON",
    "os.kill(os.getpid(), 9)": "it ended with status -9",
    "print('x' * 9_000_000)": "it wrote more than 8 MB",
}


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("then", "why"), FAILURES.items(), ids=FAILURES.values())
def test_its_failure_is_said_and_stops_no_discovery(
    calculator: Server, look: Look, scanner: Scanner, settings: Any, then: str, why: str
) -> None:
    scanner(then)
    settings.SCANNER_TIMEOUT_S = 1

    row = look(calculator)

    assert row.succeeded
    assert f"The external scanner failed: {why}" in row.summary
    assert Tool.objects.get(name="add").state == Tool.State.NEW
    assert [one.quote[: len(why)] for one in found().findings if one.family == "external"] == [why]
    assert not found().is_red


@pytest.mark.django_db(transaction=True)
def test_without_its_word_nothing_is_published_by_itself(
    calculator: Server, look: Look, scanner: Scanner, settings: Any
) -> None:
    settings.PUBLISH_ON_DISCOVERY = True
    scanner("sys.exit(3)")

    row = look(calculator)

    assert "“calculator.add” is not published by itself" in row.summary
    assert Tool.objects.get(name="add").state == Tool.State.NEW


@pytest.mark.django_db(transaction=True)
def test_a_program_that_is_not_there_is_a_failure_too(
    calculator: Server, look: Look, settings: Any
) -> None:
    settings.SCANNER = ["/nowhere/scan"]

    assert "The external scanner failed: " in look(calculator).summary


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_what_it_started_ends_with_it(
    calculator: Server, look: Look, scanner: Scanner, settings: Any, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    scanner(
        "import subprocess, time\n"
        f"open({str(pid)!r}, 'w').write(str(subprocess.Popen(['sleep', '99']).pid))\n"
        "time.sleep(60)"
    )
    settings.SCANNER_TIMEOUT_S = 2

    look(calculator)

    deadline = time.monotonic() + 10
    while _lives(int(pid.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(int(pid.read_text()))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.django_db(transaction=True)
def test_findings_that_name_nothing_are_counted(
    calculator: Server, look: Look, scanner: Scanner
) -> None:
    scanner(REPORT.format(report=report(result("other"), result("add"))))

    row = look(calculator)

    assert "Findings of the external scanner that name no definition: 1." in row.summary
    assert found().is_red


@pytest.mark.django_db(transaction=True)
def test_without_the_setting_nothing_is_started(
    calculator: Server, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_scanner, "_run", None)

    assert look(calculator).succeeded
    assert not any(one.family == "external" for one in found().findings)


def test_levels_are_the_results_or_the_rules() -> None:
    rules = ({"id": "R1", "defaultConfiguration": {"level": "note"}}, {"id": "R2"})
    results = (
        result("a", ruleId="R1", level=None),
        result("b", ruleId="R2", level=None),
        result("c", ruleId="R1", level="error"),
        result("d", level="none"),
    )
    read = read_report(json.dumps(report(*results, rules=rules)).encode(), set("abcd"))

    assert {name: ones[0].rule for name, ones in read.by_name.items()} == {
        "a": "external-note",
        "b": "external-warning",
        "c": "external-error",
        "d": "external-note",
    }


def test_names_may_have_the_sign_of_a_path() -> None:
    names = {"notes://a#b", "notes://a"}
    places = ("notes://a#b#text", "notes://a#text", "notes://a#b")
    read = read_report(json.dumps(report(*map(result, places))).encode(), names)

    assert {name: [one.where for one in ones] for name, ones in read.by_name.items()} == {
        "notes://a#b": ["text", ""],
        "notes://a": ["text"],
    }


ODD = [
    *("{}", "[]", '{"runs": 3}', "", "\xff"),
]


@pytest.mark.parametrize("document", ODD)
def test_other_documents_are_no_reports(document: str) -> None:
    with pytest.raises(BadReport):
        read_report(document.encode("latin-1"), {"a"})


@pytest.mark.parametrize(
    "results",
    [
        *(3, [3], [{}], [{"locations": 3}], [{"locations": [{"logicalLocations": [3]}]}]),
        [{"ruleId": 3, "level": [], "message": "x", "locations": [{"logicalLocations": [{}]}]}],
    ],
)
def test_odd_results_are_counted_or_left_out(results: Any) -> None:
    document = {"runs": [3, {"tool": 3, "results": results}]}

    assert not read_report(json.dumps(document).encode(), {"a"}).by_name


def test_a_flood_of_results_is_cut() -> None:
    results = [result("a", ruleId=f"R{n}") for n in range(500)]

    read = read_report(json.dumps(report(*results)).encode(), {"a"})

    assert len(read.by_name["a"]) == 15
