"""Whose credential a call carries, as its agent, the agent's owner and their team are now."""

from __future__ import annotations

from accounts.models import Agent
from accounts.teams import NO_TEAM, team_of
from registry.connections import ServerConnection
from registry.models import CredentialOwner


def owner_for(agent: Agent, connection: ServerConnection) -> CredentialOwner:
    person = agent.owner
    # Read only where it decides: a claim has not read it.
    team = team_of(agent) if connection.credential_of == "team" else NO_TEAM
    return connection.owner(
        person=(person.pk, person.username), team=team, agent=(agent.pk, agent.name)
    )
