"""Teams: the groups that are no role. An agent acts for at most one, which its owner is in."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from accounts.models import Agent, User
from accounts.roles import Role

Team = tuple[int, str]
NO_TEAM: Team = (0, "")


def every_team() -> QuerySet[Group]:
    there = Group.objects.exclude(name__in=list(Role)).filter(custom_role__retired_at=None)
    return there.order_by("name")


def teams_of(person: User) -> QuerySet[Group]:
    return every_team().filter(user=person)


def team_of(agent: Agent) -> Team:
    groups = {group.name: group.pk for group in agent.owner.groups.all()}
    name = acting_team(agent.team.name if agent.team else "", groups)
    return (groups[name], name) if name else NO_TEAM


def acting_team(chosen: str, groups: Iterable[str]) -> str:
    """The one that was chosen for an agent, while its owner is in it. Without a choice, the only
    one of its owner: of several, none is guessed."""
    teams = set(groups) - set(Role)
    if chosen:
        return chosen if chosen in teams else ""
    return teams.pop() if len(teams) == 1 else ""
