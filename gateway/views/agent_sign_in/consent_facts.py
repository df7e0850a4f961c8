"""Facts on the page on which a user allows a client something, and the agent that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.agent_sign_in import clients, grants
from accounts.models import Agent, SignInClient, User
from core import english
from core.errors import CountersignError
from policies import decide
from policies.decide import Decision, RuleBook, Subject
from policies.models import Effect
from registry import services as registry
from registry.credentials.owners import owner_for
from registry.models import Toolset
from registry.publishing import published_catalogue
from registry.publishing.published_tools import PublishedTool


class RequestRejected(CountersignError):
    """The client's request cannot be answered; says why. English, for the record."""


class ToolEffect(NamedTuple):
    """One tool and what the rules make of a call of it now."""

    name: str
    effect: str
    # Other arguments may be judged otherwise.
    conditional: bool


def consent_facts(
    person: User, client: SignInClient, toolset: Toolset, resource: str
) -> dict[str, Any]:
    agent = grants.agent_of(person, client)
    tools = list(_tools(toolset, resource, client.client_id, person, agent))
    return {
        "client": client,
        "host": clients.host_of(client),
        "look_alike": clients.look_alike(client),
        "product": clients.product_named(client),
        "toolset": toolset,
        "resource": resource,
        "agent": agent,
        "effects": [
            (label, [tool for tool in tools if tool.effect == effect])
            for effect, label in (
                (Effect.ALLOW, _("Runs without approval")),
                (Effect.ASK, _("Requires approval")),
                (Effect.DENY, _("Blocked by policy")),
            )
        ],
        "tool_count": len(tools),
        "days": grants.GRANT_LASTS.days,
    }


def agent_in(toolset: Toolset, person: User, client: SignInClient) -> Agent:
    """The user's agent for this client, in the toolset. Raises RequestRejected, AccountRefused and
    ManagedElsewhere."""
    agent = grants.find_or_make_agent(person, client)
    if not agent.enabled:
        raise RequestRejected(english.gettext("The agent of this client is disabled."))
    # A toolset that a file manages takes no agent that it does not name.
    if not toolset.agents.filter(pk=agent.pk).exists():
        registry.assign(toolset, agent, by=person)
    return agent


def _tools(
    toolset: Toolset, resource: str, client_id: str, person: User, agent: Agent | None
) -> Iterator[ToolEffect]:
    published = published_catalogue.load().toolset(toolset.slug)
    if published is None:
        return
    server = resource.removeprefix(f"{settings.AGENT_URL}/mcp/{toolset.slug}").strip("/")
    tools = published.by_server.get(server) if server else published.by_exposed
    book, groups = decide.load(), frozenset(group.name for group in person.groups.all())
    for name, tool in sorted(tools.items() if tools else ()):
        decision = _decision(book, tool, person, groups, agent, client_id)
        yield ToolEffect(name, decision.effect, decision.conditional)


def _credential(person: User, tool: PublishedTool, agent: Agent | None) -> str:
    """Whose it carries; of an agent that is not made yet, there is none."""
    if agent is not None:
        return owner_for(agent, tool.connection).label
    return person.username if tool.connection.credential_of == "person" else ""


def _decision(
    book: RuleBook,
    tool: PublishedTool,
    person: User,
    groups: frozenset[str],
    agent: Agent | None,
    client_id: str,
) -> Decision:
    """Decides a call without arguments; `conditional` says that others may be judged otherwise."""
    return book.decide(
        Subject(
            agent_id=agent.pk if agent else 0,
            agent=agent.name if agent else "",
            groups=groups,
            definition_id=tool.definition_id,
            server=tool.server_slug,
            tool=tool.name,
            hints=tool.hints,
            owner=person.username,
            exposed=tool.exposed_name,
            tags=tool.tags,
            labels=tool.labels,
            credential=_credential(person, tool, agent),
            client=client_id,
        )
    )
