"""Rules and calls with what must come of them: table.toml, line by line."""

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policies import decide
from policies.decide import Decision, Subject
from policies.history import NEVER, History
from policies.models import Rule

TABLE = tomllib.loads((Path(__file__).parent / "table.toml").read_text())["case"]
LINES = [(case, line) for case in TABLE for line in case["calls"]]


@pytest.fixture(scope="module")
def books(django_db_setup: None, django_db_blocker: Any) -> dict[str, decide.RuleBook]:
    """Compiled as they are for agents; the rows themselves are not needed after."""
    with django_db_blocker.unblock():
        return {case["name"]: book(case["rules"]) for case in TABLE}


def book(rules: list[dict[str, str]]) -> decide.RuleBook:
    made = [Rule.objects.create(position=n, **given) for n, given in enumerate(rules)]
    try:
        return decide.load()
    finally:
        for rule in made:
            rule.delete()


def parts(text: str) -> Iterator[Any]:
    """JSON values one after another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        at += len(text[at:]) - len(text[at:].lstrip())


def asked(line: str) -> tuple[Subject, dict[str, Any]]:
    call = line.rpartition(" => ")[0]
    name, _space, rest = call.partition(" ")
    arguments, more = [*parts(rest.replace("\n", "\\n").strip()), {}][:2]
    server, tool = name.split(".")
    last = more.get("last_approved")
    history = History(
        more.get("calls_1h", 0),
        more.get("refused_24h", 0),
        datetime.fromisoformat(last) if last else NEVER,
    )
    subject = Subject(
        agent_id=1,
        agent=more.get("agent", "scout"),
        groups=frozenset(more.get("groups", ())),
        definition_id=hash((line, "definition")),
        server=server,
        tool=tool,
        hints=more.get("hints", {}),
        owner=more.get("owner", "bob"),
        arguments=arguments,
        size=len(rest),
        tags=tuple(more.get("tags", ())),
        history=history,
    )
    return subject, more


def told(decision: Decision) -> str:
    said = f"{decision.effect.value} {decision.rule}".strip()
    if decision.shadow_effect:
        said += f" (would: {decision.shadow_effect['effect']} {decision.shadow_effect['rule']})"
    return said


@pytest.mark.parametrize(("case", "line"), LINES, ids=[line[:60] for _case, line in LINES])
def test_it_comes_to_what_the_table_says(
    books: dict[str, decide.RuleBook],
    monkeypatch: pytest.MonkeyPatch,
    case: dict[str, Any],
    line: str,
) -> None:
    subject, more = asked(line)
    moment = datetime.fromisoformat(more.get("now", "2026-11-18T09:00:00Z"))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.astimezone(tz or UTC)

    monkeypatch.setattr(decide, "datetime", Clock)

    assert told(books[case["name"]].decide(subject)) == line.rpartition(" => ")[2]


def test_the_table_is_long_enough() -> None:
    assert len(LINES) >= 120
