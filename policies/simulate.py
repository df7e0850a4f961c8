"""What rules would say of a call that nobody asks for: for pages and the command line."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from accounts import single_person
from accounts.models import Agent
from core import strict_json
from core.errors import CountersignError
from core.strict_json import Ambiguous
from policies import decide, history
from policies.decide import Decision, Explanation, Subject
from policies.feasibility import why_unmeetable
from policies.models import Effect
from policies.thresholds import deciders
from registry.models import Tool
from registry.publishing import published_catalogue
from registry.publishing.published_catalogue import PublishedTool

NO_ARGUMENTS = "{}"


class SimulationRefused(CountersignError):
    """There is no such agent or tool, or the arguments are no JSON; says which."""


def suppose(agent: str, tool: str, arguments: str = NO_ARGUMENTS) -> Explanation:
    """The very answer of decide(), and why. Nothing is called and nothing recorded."""
    subject = _subject(_agent(agent), _tool(tool), arguments or NO_ARGUMENTS)
    book = decide.load()
    if book.looks_back(subject):
        subject.history = history.read(subject.agent_id, subject.exposed)
    explained = decide.explain(book, subject)
    return replace(explained, unmet=_unmet(explained.decision, subject.owner))


def _unmet(decision: Decision, owner: str) -> str:
    """Its owner has no vote, unless they are alone here."""
    if decision.effect != Effect.ASK:
        return ""
    able = [one for one in deciders() if one.name != owner or single_person.is_on()]
    return why_unmeetable(decision.thresholds, able)


def _agent(name: str) -> Agent:
    agent = Agent.objects.select_related("owner").filter(name=name).first()
    if agent is None:
        raise SimulationRefused(_("There is no agent “%s”.") % name)
    return agent


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
    )
