"""A person tries a tool: as one of their own agents, through the door that all agents use.

Nobody gets further by the console than their agents would: which tools there are, what rules say
and who has to approve is the agent's, and its owner is never the one who approves.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import Q

from accounts.models import Agent, User
from calls.models import Call
from core import exact_json
from core.english import gettext as _
from core.errors import CountersignError
from gateway.call_request import SubmitResult
from gateway.submit import sync
from gateway.submit.bearers import speaking_for
from gateway.submit.sync import SyncCallRequest
from policies.decide import Decision
from registry.models import Definition, ShownTool, Tool, Toolset
from registry.publishing.published_tools import Violation
from registry.publishing.tool_override import as_written, without

# What takes longer is looked at while it runs.
WAIT_S = 1.5
HISTORY = 10


class TryRefused(CountersignError):
    """Says why this person cannot try this tool now, and what would help."""


@dataclass(frozen=True, slots=True)
class TryRoute:
    """One of the person's agents, and a toolset by which it gets the tool."""

    agent: Agent
    toolset: str
    # What agents call the tool there, and the arguments that they cannot say.
    name: str
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected result of a call; `decision` is None if agents do not get the tool."""

    decision: Decision | None
    violations: list[Violation]


def routes(tool: Tool, person: User) -> list[TryRoute]:
    """Routes by agent name, each with the first toolset that has the tool."""
    agents = person.agents.filter(enabled=True).select_related("owner").order_by("name")
    offered = Toolset.objects.filter(Q(tools=tool) | Q(servers=tool.server), agents__in=agents)
    by_agent: dict[int, str] = {}
    for agent_id, slug in offered.order_by("slug").values_list("agents", "slug"):
        by_agent.setdefault(agent_id, slug)
    seen = {said.toolset.slug: said for said in tool.shown_as.select_related("toolset")}
    return [
        _route(agent, by_agent[agent.pk], tool, seen.get(by_agent[agent.pk]))
        for agent in agents
        if agent.pk in by_agent
    ]


def is_offered(tool: Tool) -> bool:
    """Whether agents may have it at all."""
    return tool.state == Tool.State.PUBLISHED and tool.server.enabled


def route_of(tool: Tool, agent: Agent) -> TryRoute | None:
    """This agent's route to the tool; None if it does not get it now."""
    if not is_offered(tool):
        return None
    return next((way for way in routes(tool, agent.owner) if way.agent.pk == agent.pk), None)


def _route(agent: Agent, toolset: str, tool: Tool, said: ShownTool | None) -> TryRoute:
    if said is None:
        return TryRoute(agent, toolset, tool.exposed_name)
    shown = as_written(said.name, said.title, said.description, said.pinned)
    return TryRoute(agent, toolset, shown.name or tool.exposed_name, tuple(shown.pins))


def schema(tool: Tool, way: TryRoute | None) -> dict[str, Any]:
    """The schema of the arguments that the agent may give."""
    return _schema(tool.published or tool.latest, way)


def latest_schema(tool: Tool, way: TryRoute | None) -> dict[str, Any]:
    """The same, of the definition that may not be published yet."""
    return _schema(tool.latest, way)


def _schema(definition: Definition | None, way: TryRoute | None) -> dict[str, Any]:
    whole = definition.content.get("inputSchema") if definition else None
    if not isinstance(whole, dict):
        return {}
    return without(whole, way.fixed) if way and way.fixed else whole


def own(way: TryRoute | None, arguments: bytes) -> bytes:
    """The earlier call's arguments as they were written, without those that the toolset fixes."""
    whole = exact_json.loads(arguments) if way and way.fixed else None
    if not way or not isinstance(whole, dict):
        return arguments
    return exact_json.dumps({k: v for k, v in whole.items() if k not in way.fixed}).encode()


def expect(tool: Tool, way: TryRoute, arguments: bytes, parsed: object) -> Expected:
    """The very answer that agents would get now. Nothing is called and nothing recorded."""
    found = sync.explained(_question(tool, way, arguments, parsed))
    return Expected(found.decision, found.violations) if found else Expected(None, [])


def send(
    tool: Tool,
    way: TryRoute,
    arguments: bytes,
    parsed: object,
    *,
    seconds: float = WAIT_S,
    call_id: UUID | None = None,
) -> SubmitResult:
    """Waits at most so long for its outcome; 0: a worker sends it. `call_id`: a new one's."""
    question = _question(tool, way, arguments, parsed, background=not seconds)
    return sync.ask(replace(question, call_id=call_id), seconds=seconds)


def tried(tool: Tool, person: User) -> list[Call]:
    """This user's latest test calls, to look at or to repeat."""
    own = Call.objects.filter(tool=tool, agent__owner=person, origin=Call.Origin.CONSOLE)
    return list(own.select_related("agent").defer("arguments").newest_first()[:HISTORY])


def json_rpc(way: TryRoute, arguments: bytes) -> str:
    """The JSON-RPC request that an agent's client would send."""
    name = orjson.dumps(way.name).decode()
    return (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
        f'"params": {{"name": {name}, "arguments": {arguments.decode()}}}}}'
    )


def curl(way: TryRoute, arguments: bytes) -> str:
    return "\n".join(
        (
            f"curl -sS {settings.AGENT_URL}/mcp/{way.toolset} \\",
            '  -H "Authorization: Bearer $COUNTERSIGN_TOKEN" \\',
            "  -H 'Content-Type: application/json' \\",
            "  -H 'Accept: application/json, text/event-stream' \\",
            f"  -d {shlex.quote(json_rpc(way, arguments))}",
        )
    )


def _question(
    tool: Tool, way: TryRoute, arguments: bytes, parsed: object, *, background: bool = False
) -> SyncCallRequest:
    bearer = speaking_for(way.agent)
    if bearer is None:
        raise TryRefused(_("The agent %s was disabled.") % way.agent.name)
    return SyncCallRequest(
        bearer=bearer,
        toolset=way.toolset,
        tool=way.name,
        tool_id=tool.pk,
        arguments=arguments,
        parsed=parsed,
        origin=Call.Origin.CONSOLE,
        background=background,
    )
