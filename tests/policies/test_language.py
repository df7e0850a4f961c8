"""The reference of conditions, docs/en/guides/write-rules.md: every line of it is tried."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from policies import decide
from policies.conditions import CONTEXT, BadCondition, compiled
from policies.decide import Subject
from policies.flow import Flow, FlowSource
from policies.history import History
from policies.undecided import Undecided
from policies.unusual import Unusual

PAGE = (settings.BASE_DIR / "docs" / "en" / "guides" / "write-rules.md").read_text()
(EXAMPLES,) = re.findall(r"```cel\n(.*?)```", PAGE, re.DOTALL)
LINES = [tuple(re.split(r"\s+// ", line)) for line in EXAMPLES.splitlines()]
ARGUMENTS = json.loads(re.findall(r"```json\n(\{.*?)```", PAGE, re.DOTALL)[0])
NOW = datetime(2026, 11, 18, 16, 30, tzinfo=UTC)
FUNCTIONS = [
    *("size", "contains", "startsWith", "endsWith", "matches", "has"),
    *("all", "exists", "exists_one", "filter", "timestamp", "duration"),
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    *("int", "uint", "double", "string", "bool", "bytes", "type", "dyn"),
]
OPERATORS = [*"!<>+-*/%?[", "&&", "||", "==", "!=", "<=", ">=", "in"]


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return NOW

    monkeypatch.setattr(decide, "datetime", Clock)
    return Subject(
        agent_id=1,
        agent="scout",
        groups=frozenset({"payments"}),
        definition_id=1,
        server="mailer",
        tool="send_mail",
        hints={"readOnlyHint": False},
        owner="bob",
        arguments=ARGUMENTS,
        size=300,
        tags=("mail",),
        labels=("untrusted", "sink"),
        unusual=Unusual(days=9, at_hour=4, lately=2, before=60, hours_before=30, of_tool=3),
        flow=Flow(untrusted=FlowSource(NOW - timedelta(minutes=10), "web.fetch")),
        history=History(2, 0, NOW - timedelta(days=1)),
    )


@pytest.mark.parametrize(("when", "comes_to"), LINES)
def test_it_comes_to_what_the_page_says(subject: Subject, when: str, comes_to: str) -> None:
    try:
        found = str(compiled(when, hints=True).holds(subject.facts(), subject.size)).lower()
    except Undecided:
        found = "asks"

    assert found == comes_to


@pytest.mark.parametrize("name", [*CONTEXT, *OPERATORS])
def test_every_variable_and_operator_has_an_example(name: str) -> None:
    assert name in EXAMPLES


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example(name: str) -> None:
    assert re.search(rf"\b{name}\(", EXAMPLES)


@pytest.mark.parametrize(
    "name",
    [
        "tool.hints.readOnlyHint",
        "tool.risk == 'reads'",
        "size(tool.labels) == 0",
        "!flow.untrusted",
    ],
)
def test_claims_are_not_for_rules_that_allow(name: str) -> None:
    with pytest.raises(BadCondition, match="cannot rest on what a server says"):
        compiled(name, hints=False)
