"""Simulates decisions on calls that nobody requested, for pages and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from accounts import single_person
from accounts.models import Agent
from core import strict_json
from core.english import gettext as _
from core.errors import CountersignError
from core.strict_json import Ambiguous
from policies import decide, lookback
from policies.decide import CompiledRule, Decision, Explanation, Subject
from policies.feasibility import why_unmeetable
from policies.flow import FlowQuestion
from policies.limits.compiled import CallParties
from policies.limits.explained import evaluate
from policies.models import Effect
from policies.thresholds import deciders
from registry.credentials.owners import owner_for
from registry.labels import Label
from registry.models import Tool, Toolset
from registry.publishing import published_catalogue
from registry.publishing.published_tools import PublishedTool

NO_ARGUMENTS = "{}"


class SimulationRefused(CountersignError):
    """There is no such agent, tool or toolset, or the arguments are no JSON; says which."""


def suppose(
    agent: str,
    tool: str,
    arguments: str = NO_ARGUMENTS,
    *,
    toolset: str = "",
    token_groups: Iterable[str] = (),
) -> Explanation:
    """The very answer of decide(), and why. Nothing is called and nothing recorded. Without a
    toolset, limits that are counted for each have no usage."""
    asker, asked, text = _agent(agent), _tool(tool), arguments or NO_ARGUMENTS
    subject = _subject(asker, asked, text)
    subject.token_groups = tuple(sorted(token_groups))
    book = decide.load()
    lookback.read(book, subject)
    explained = decide.explain(book, subject)
    parties = _parties(asker, asked, _toolset(toolset))
    limits = evaluate(subject, parties, text.encode(errors="replace"))
    unmet = _unmet(explained.decision, subject.owner)
    return replace(
        explained,
        unmet=unmet,
        limits=limits,
        results=asked.with_results(explained.decision.results).result_sentences,
        labels=[Label(label) for label in asked.labels],
        flow=subject.flow or lookback.read_flow(FlowQuestion(asker.pk)),
    )


def asking_rules(tool: Tool) -> list[CompiledRule]:
    """Rules that ask people about calls of this published tool, of some agents at least."""
    if tool.published is None:
        return []
    subject = Subject(
        agent_id=0,
        agent="",
        groups=frozenset(),
        definition_id=tool.published.pk,
        server=tool.server.slug,
        tool=tool.name,
        hints=tool.published.hints,
    )
    rules = decide.load().rules
    return [one for one in rules if one.asks and one.scope.for_every_agent.covers(subject)]


def _parties(agent: Agent, tool: PublishedTool, toolset: str) -> CallParties:
    return CallParties(
        (agent.pk, agent.name),
        (agent.owner_id, agent.owner.username),
        toolset,
        (tool.server_id, tool.server_slug),
        (tool.tool_id, tool.exposed_name),
        tool.hints,
    )


def _unmet(decision: Decision, owner: str) -> str:
    """Its owner has no vote, unless they are alone here."""
    if decision.effect != Effect.ASK:
        return ""
    able = [one for one in deciders() if owner not in one.names or single_person.is_on()]
    return why_unmeetable(decision.thresholds, able)


def _agent(name: str) -> Agent:
    agent = Agent.objects.select_related("owner").filter(name=name).first()
    if agent is None:
        raise SimulationRefused(_("There is no agent “%s”.") % name)
    return agent


def _toolset(slug: str) -> str:
    if slug and not Toolset.objects.filter(slug=slug).exists():
        raise SimulationRefused(_("There is no toolset “%s”.") % slug)
    return slug


def _tool(exposed_name: str) -> PublishedTool:
    row = Tool.objects.filter(exposed_name=exposed_name).first()
    tool = published_catalogue.one(row.pk) if row else None
    if tool is None:
        raise SimulationRefused(_("No tool is published as “%s”.") % exposed_name)
    return tool


def _subject(agent: Agent, tool: PublishedTool, text: str) -> Subject:
    try:
        arguments = strict_json.loads(text.encode(errors="replace"))
    except Ambiguous as error:
        raise SimulationRefused(_("The arguments: %s") % error) from error
    return Subject(
        agent_id=agent.pk,
        agent=agent.name,
        groups=frozenset(agent.owner.groups.values_list("name", flat=True)),
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=agent.owner.username,
        arguments=arguments,
        size=len(text.encode(errors="replace")),
        exposed=tool.exposed_name,
        tags=tool.tags,
        labels=tool.labels,
        credential=owner_for(agent, tool.connection).label,
    )
