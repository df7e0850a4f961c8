"""Alerts and dashboard ask for figures that there are, and each alert has a runbook."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "monitoring"
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((EXAMPLES / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((EXAMPLES / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
RUNBOOKS = (ROOT / "docs" / "en" / "guides" / "runbooks.md").read_text()
# tests/gateway/test_metrics.py compares these with what is told.
DOCUMENTED = set(
    re.findall(r"`(countersign_\w+)", (ROOT / "docs" / "en" / "guides" / "monitor.md").read_text())
)
PROMTOOL = shutil.which("promtool")
OF_GRAFANA = {"$__rate_interval": "5m"}
WIDTH = 24


def expressions() -> Iterator[str]:
    yield from (alert["expr"] for alert in ALERTS)
    for panel in PANELS:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_each_figure_that_is_asked_for_is_there() -> None:
    asked = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for expression in expressions()
        for name in re.findall(r"countersign_\w+", expression)
    }
    assert asked - DOCUMENTED == set()
    # What nobody looks at needs no counting.
    assert DOCUMENTED - asked == SELDOM


# For who asks by hand.
SELDOM = {
    # The console says so on every page, and who was named is notified.
    "countersign_break_glass",
    "countersign_process",
    "countersign_listeners_deaf",
    "countersign_pool_idle",
}


def test_each_alert_says_what_is_wrong_how_badly_and_where_to_read_on() -> None:
    names = [alert["alert"] for alert in ALERTS]
    assert len(set(names)) == len(names)
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert alert["annotations"]["summary"].endswith(".")
        anchor = f"docs/en/guides/runbooks.md#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook"] == anchor


def test_each_alert_is_seen_to_fire() -> None:
    tests = yaml.safe_load((EXAMPLES / "alerts_test.yml").read_text())["tests"]
    fired = {
        one["alertname"]
        for test in tests
        for one in test["alert_rule_test"]
        if one.get("exp_alerts")
    }

    assert fired == {alert["alert"] for alert in ALERTS}


def test_each_runbook_is_of_an_alert_and_says_what_to_do() -> None:
    sections = dict(re.findall(r"^## (Countersign\w+)\n(.*?)(?=^## |\Z)", RUNBOOKS, re.M | re.S))
    assert set(sections) == {alert["alert"] for alert in ALERTS}
    for name, text in sections.items():
        assert "\n1. " in text, name


def test_panels_stand_beside_each_other_and_ask_for_something() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations(PANELS, 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    for panel in PANELS:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= WIDTH
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert panel["datasource"]["uid"] == "${datasource}"
            letters = [target["refId"] for target in panel["targets"]]
            assert letters
            assert len(set(letters)) == len(letters)


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )


def test_the_dashboard_asks_which_data_source() -> None:
    (variable,) = DASHBOARD["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert DASHBOARD["schemaVersion"] >= 39
    assert "id" not in DASHBOARD


def promtool(*arguments: object, given: str = "") -> str:
    done = subprocess.run(
        [PROMTOOL or "", *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        cwd=EXAMPLES,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.skipif(not PROMTOOL, reason="needs promtool (Debian: prometheus)")
def test_prometheus_takes_the_alerts_and_they_fire_when_they_should() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "alerts.yml")
    promtool("test", "rules", "alerts_test.yml")


@pytest.mark.long
@pytest.mark.skipif(not PROMTOOL, reason="needs promtool (Debian: prometheus)")
def test_prometheus_takes_what_the_dashboard_asks(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{panel['id']}:{target['refId']}", "expr": target["expr"]}
        for panel in PANELS
        for target in panel.get("targets", ())
    ]
    text = json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})
    for name, value in OF_GRAFANA.items():
        text = text.replace(name, value)
    asked = tmp_path / "asked.json"
    asked.write_text(text)

    assert f"{len(rules)} rules found" in promtool("check", "rules", asked)
