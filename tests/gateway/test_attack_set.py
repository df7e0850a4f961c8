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
from tests.gateway import agentdojo
from tests.gateway.attack_set import ATTACKS, LABELLED, TASKS, TOOLS, Scenario
from tests.gateway.conftest import add_rule, add_server
from tests.gateway.limiting import ask
from tests.processes import ROOT
from tests.upstreams.recorder import Recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

PAGES = [ROOT / "docs" / name / "guides" / "write-rules.md" for name in ("en", "zh-hans")]
NUMBER = re.compile(r"\d+")
BEGIN, END = "<!-- {} figures -->\n", "<!-- end of {} figures -->\n"
Figures = dict[str, Counter[str]]


@pytest.fixture
def office(toolset: Toolset, upstream: Recorder, bob: User) -> None:
    add_tools("office", TOOLS, LABELLED, toolset, upstream, bob)
    add_rules()


@pytest.fixture
def dojo(toolset: Toolset, upstream: Recorder, bob: User) -> None:
    add_tools("dojo", agentdojo.TOOLS, agentdojo.LABELLED, toolset, upstream, bob)
    add_rules()


def add_tools(
    slug: str, tools: Any, labelled: Any, toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    upstream.tools = tools
    add_server(slug, toolset, upstream, by=bob)
    for name, choices in labelled.items():
        tool = Tool.objects.select_related("server").get(name=name, server__slug=slug)
        services.set_labels(tool, {label: choices.get(label, "") for label in Label}, by=bob)


def add_rules() -> None:
    flow = read_template("flow", "", "UTC").rule()
    flow.position = 10
    flow.save()
    add_rule(Effect.ASK, "*", position=20, when="tool.risk == 'destroys'")


_numbers = count()


def tokens(bob: User, toolset: Toolset) -> str:
    agent = accounts.create_agent(f"agent-{next(_numbers)}", owner=bob, by=bob)
    services.assign(toolset, agent, by=bob)
    return accounts.issue_token(agent, by=bob)


async def fate(runtime: Runtime, server: str, scenario: Scenario, token: str, other: str) -> str:
    """Of the last call, or of an earlier one that did not run: then a model gets no further."""
    for by, steps in ((other, scenario.other), (token, scenario.steps)):
        for step in steps:
            done = await ask(runtime, by, tool=f"{server}.{step}", arguments={})
            if done.state != "succeeded":
                return "held" if done.state == "held" else "blocked"
    return "passed"


def rows(figures: Figures) -> Iterator[str]:
    total = sum(figures.values(), Counter[str]())
    for kind, found in [*figures.items(), ("**all**", total)]:
        cells = (kind, found.total(), found["blocked"], found["held"], found["passed"])
        yield f"| {' | '.join(map(str, cells))} |\n"


def table(attacks: Figures, tasks: Figures) -> str:
    head = "| {} | n | blocked | held | passed |\n|---|---|---|---|---|\n"
    said = [head.format("attack"), *rows(attacks), "\n"]
    return "".join([*said, head.format("harmless task"), *rows(tasks)])


async def fates(server: str, scenarios: Counter[Scenario], toolset: Toolset, bob: User) -> Figures:
    """By kind; each scenario counts as often as it is there."""
    found: Figures = {scenario.kind: Counter() for scenario in scenarios}
    runtime = Runtime()
    await runtime.start()
    try:
        for scenario, times in scenarios.items():
            pair = await sync_to_async(lambda: (tokens(bob, toolset), tokens(bob, toolset)))()
            found[scenario.kind][await fate(runtime, server, scenario, *pair)] += times
    finally:
        await runtime.aclose()
    return found


def check_pages(name: str, said: str) -> None:
    begin, end = BEGIN.format(name), END.format(name)
    english, chinese = (page.read_text().partition(begin)[2].partition(end)[0] for page in PAGES)
    assert english == said, said
    assert NUMBER.findall(chinese) == NUMBER.findall(said)


async def test_the_figures_in_the_docs_are_those_of_the_set(
    office: None, toolset: Toolset, bob: User
) -> None:
    attacks = await fates("office", Counter(ATTACKS), toolset, bob)
    tasks = await fates("office", Counter(TASKS), toolset, bob)

    check_pages("attack", table(attacks, tasks))


async def test_the_figures_in_the_docs_are_those_of_a_published_set(
    dojo: None, toolset: Toolset, bob: User
) -> None:
    attacks = await fates("dojo", agentdojo.attacks(), toolset, bob)
    tasks = await fates("dojo", agentdojo.tasks(), toolset, bob)

    check_pages("agentdojo", table(attacks, tasks))
