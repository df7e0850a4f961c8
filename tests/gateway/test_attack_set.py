"""What becomes of attacks and of harmless tasks under the shipped rules, as docs say it."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from gateway.process.runtime import Runtime
from policies.drafts import read_template
from policies.models import Effect
from registry import services
from registry.labels import Label
from registry.models import Tool, Toolset
from tests.gateway.attack_set import ATTACKS, LABELLED, TASKS, TOOLS, Scenario
from tests.gateway.conftest import add_rule, add_server
from tests.gateway.limiting import ask
from tests.processes import ROOT
from tests.upstreams.recorder import Recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

PAGES = [ROOT / "docs" / name / "guides" / "write-rules.md" for name in ("en", "zh-hans")]
NUMBER = re.compile(r"\d+")
BEGIN, END = "<!-- attack figures -->\n", "<!-- end of attack figures -->\n"


@pytest.fixture
def office(toolset: Toolset, upstream: Recorder, bob: User) -> None:
    upstream.tools = TOOLS
    add_server("office", toolset, upstream, by=bob)
    for name, choices in LABELLED.items():
        tool = Tool.objects.select_related("server").get(name=name)
        services.set_labels(tool, {label: choices.get(label, "") for label in Label}, by=bob)
    flow = read_template("flow", "", "UTC").rule()
    flow.position = 10
    flow.save()
    add_rule(Effect.ASK, "*", position=20, when="tool.risk == 'destroys'")


_numbers = count()


def tokens(bob: User, toolset: Toolset) -> str:
    agent = accounts.create_agent(f"agent-{next(_numbers)}", owner=bob, by=bob)
    services.assign(toolset, agent, by=bob)
    return accounts.issue_token(agent, by=bob)


async def fate(runtime: Runtime, scenario: Scenario, token: str, other: str) -> str:
    """Of the last call, or of an earlier one that did not run: then a model gets no further."""
    for by, steps in ((other, scenario.other), (token, scenario.steps)):
        for step in steps:
            done = await ask(runtime, by, tool=f"office.{step}", arguments={})
            if done.state != "succeeded":
                return "held" if done.state == "held" else "blocked"
    return "passed"


def rows(figures: dict[str, Counter[str]]) -> Iterator[str]:
    total = sum(figures.values(), Counter[str]())
    for kind, found in [*figures.items(), ("**all**", total)]:
        cells = (kind, found.total(), found["blocked"], found["held"], found["passed"])
        yield f"| {' | '.join(map(str, cells))} |\n"


def table(attacks: dict[str, Counter[str]], tasks: dict[str, Counter[str]]) -> str:
    head = "| {} | n | blocked | held | passed |\n|---|---|---|---|---|\n"
    said = [head.format("attack"), *rows(attacks), "\n"]
    return "".join([*said, head.format("harmless task"), *rows(tasks)])


async def test_the_figures_in_the_docs_are_those_of_the_set(
    office: None, toolset: Toolset, bob: User, upstream: Recorder
) -> None:
    everything = [*ATTACKS, *TASKS]
    known: list[Any] = [
        await sync_to_async(lambda: (tokens(bob, toolset), tokens(bob, toolset)))()
        for _ in everything
    ]
    found: dict[int, dict[str, Counter[str]]] = {0: {}, 1: {}}
    runtime = Runtime()
    await runtime.start()
    try:
        for n, (scenario, pair) in enumerate(zip(everything, known, strict=True)):
            kinds = found[n >= len(ATTACKS)]
            kinds.setdefault(scenario.kind, Counter())[await fate(runtime, scenario, *pair)] += 1
    finally:
        await runtime.aclose()

    said = table(found[0], found[1])
    english, chinese = (page.read_text().partition(BEGIN)[2].partition(END)[0] for page in PAGES)
    assert english == said, said
    assert NUMBER.findall(chinese) == NUMBER.findall(said)
