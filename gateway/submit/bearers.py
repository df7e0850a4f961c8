"""An agent at the door without its token: by the word of whoever may speak for it."""

from __future__ import annotations

from accounts.independence import inviters_behind, unconfirmed_inviters
from accounts.models import Agent
from accounts.teams import team_of
from accounts.tokens import Bearer, parties


def speaking_for(agent: Agent) -> Bearer | None:
    """None if the agent or its owner was disabled."""
    if not (agent.enabled and agent.owner.is_active):
        return None
    party = parties(agent)
    return Bearer(
        token_id=0,
        agent_id=agent.pk,
        agent_name=agent.name,
        person_id=agent.owner_id,
        person_name=agent.owner.username,
        groups=frozenset(agent.owner.groups.values_list("name", flat=True)),
        expires_at=float("inf"),
        parties=party,
        inviters=frozenset(inviters_behind(party, unconfirmed_inviters())),
        team=team_of(agent),
    )
