"""The recipes of docs/en/guides/example-policies.md decide as the page promises."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings

from accounts.models import Agent, User
from policies import decide, thresholds
from policies.decide import Decision, Subject
from policies.history import History
from policies.models import Effect, Rule

pytestmark = pytest.mark.django_db

PAGE = (settings.BASE_DIR / "docs" / "en" / "guides" / "example-policies.md").read_text()
RECIPES = {
    int(n): text for n, text in re.findall(r"^### (\d+)\. (.*?)(?=^### |\Z)", PAGE, re.M | re.S)
}
EFFECTS = {"Allow": Effect.ALLOW, "Require approval": Effect.ASK, "Deny": Effect.DENY}
HINTS = {
    "not read-only": Rule.Hint.WRITES,
    "open-world": Rule.Hint.OPEN_WORLD,
    "destructive": Rule.Hint.DESTRUCTIVE,
}
READS = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)
# By recipe: the tool, its arguments and what else is so; what the rule makes of it; and the same
# where it does not apply.
CASES: dict[int, tuple[tuple[str, dict[str, Any], dict[str, Any]], tuple[Any, ...]]] = {
    1: (("weather.forecast", {}, {}), ("weather.set_station", {}, {})),
    2: (("notes.add", {}, {"hints": {}}), ("notes.list", {}, {})),
    3: (("web.fetch", {}, {"hints": {}}), ("notes.list", {}, {})),
    4: (("files.remove", {}, {"hints": {}}), ("files.list", {}, {})),
    5: (
        ("mailer.send_mail", {"to": ["ana@example.org", "eve@example.com"]}, {}),
        ("mailer.send_mail", {"to": ["ana@example.org"]}, {}),
    ),
    6: (("bank.pay", {"amount": 99.5}, {}), ("bank.pay", {"amount": -1}, {})),
    7: (("bank.pay", {"amount": 1000.01}, {}), ("bank.pay", {"amount": 1000}, {})),
    8: (
        ("files.write_file", {"path": "/srv/shared/../secret"}, {}),
        ("files.write_file", {"path": "/srv/shared/notes.md"}, {}),
    ),
    9: (
        ("warehouse.query", {"sql": "SELECT count(*) FROM sailings"}, {}),
        ("warehouse.query", {"sql": "DELETE FROM sailings"}, {}),
    ),
    10: (
        ("web.fetch", {"url": "https://example.com/"}, {}),
        ("web.fetch", {"url": "https://docs.example.org/a"}, {}),
    ),
    11: (
        ("mailer.send_mail", {}, {"at": NOON.replace(hour=19)}),
        ("mailer.send_mail", {}, {"at": NOON}),
    ),
    12: (
        ("mailer.send_mail", {}, {"history": History(calls_1h=21)}),
        ("mailer.send_mail", {}, {"history": History(calls_1h=20)}),
    ),
}


@pytest.fixture
def scout() -> Agent:
    return Agent.objects.create(name="scout", owner=User.objects.create(username="bob"))


def rule_of(text: str) -> Rule:
    """As somebody would enter the recipe."""
    effect, *fields = text.splitlines()[2].split(" · ")
    given = dict(re.findall(r"^(\w+) `(.*)`$", "\n".join(fields), re.M))
    found = dict(re.findall(r"```(cel|json)\n(.*?)```", text, re.DOTALL))
    rule = Rule(
        name=text.splitlines()[0],
        effect=EFFECTS[effect.strip("*")],
        server=given["server"],
        tool=given["tool"],
        hint=HINTS.get(given.get("hints", ""), ""),
        when=found.get("cel", "").strip(),
        thresholds=json.loads(found.get("json", "[]")),
    )
    thresholds.parse(rule.thresholds)
    rule._clean_condition()
    rule.save()
    rule.agents.set(Agent.objects.filter(name=given.get("agents", "")))
    return rule


def decided(agent: Agent, call: tuple[Any, ...]) -> Decision:
    tool, arguments, more = call
    server, name = tool.split(".")
    facts = {"hints": READS, "at": NOON, "history": History(), **more}
    return decide.load().decide(
        Subject(agent.pk, agent.name, frozenset(), 1, server, name, arguments=arguments, **facts)
    )


def test_there_are_twelve() -> None:
    assert RECIPES.keys() == CASES.keys() == set(range(1, 13))


@pytest.mark.parametrize("number", CASES)
def test_it_decides_as_the_page_promises(number: int, scout: Agent) -> None:
    rule = rule_of(RECIPES[number])
    if rule.effect != Effect.ALLOW:
        Rule.objects.create(name="The rest", effect=Effect.ALLOW)
    applies, does_not = CASES[number]

    decision = decided(scout, applies)
    assert (decision.effect, decision.rule) == (rule.effect, rule.name)
    assert decided(scout, does_not).rule != rule.name
    if rule.thresholds:
        assert decision.thresholds[0].plain().items() >= rule.thresholds[0].items()
