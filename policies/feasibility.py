"""Could the people that there are meet what thresholds ask?

Rules may have been saved when they could, and several rules that hold together may ask for what
none asks alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accounts.roles import Role
from core.english import gettext as _
from core.english import ngettext
from policies.thresholds import (
    DEFAULT,
    GROUP,
    Decider,
    Distinct,
    Threshold,
    clauses,
    needed,
)

ROLES = frozenset(Role)
# Beyond it nobody looks for teams that differ: a warning says what is certain.
MOST_TEAMS = 16


def why_unmeetable(thresholds: Iterable[Threshold], able: Sequence[Decider]) -> str:
    """The reason why these people can never meet the thresholds; "" where they can."""
    for clause in clauses(tuple(thresholds) or DEFAULT):
        lacks = [_lack(one, able) for one in clause]
        if all(lacks):
            return lacks[0]
    return ""


def _lack(one: Threshold, able: Sequence[Decider]) -> str:
    circle = [decider for decider in able if one.is_from(decider.names, decider.groups)]
    if len(circle) < one.approve:
        said = ngettext(
            "It needs %(what)s, and %(n)d person may give one.",
            "It needs %(what)s, and %(n)d people may give one.",
            len(circle),
        )
        return said % {"what": needed(one), "n": len(circle)}
    if one.distinct == Distinct.TEAM and not _are_of_teams(_teams(one, circle), one.approve):
        said = _("It needs %(what)s of different teams, and there are not so many teams.")
        return said % {"what": needed(one)}
    return ""


def _teams(one: Threshold, circle: Iterable[Decider]) -> list[frozenset[str]]:
    """The groups of each person, roles and the requested group apart; equal groups count once."""
    asked = {one.source.removeprefix(GROUP)} if one.source.startswith(GROUP) else set()
    teams = [frozenset(decider.groups) - ROLES - asked for decider in circle]
    return [*(team for team in teams if not team), *{team for team in teams if team}]


def _are_of_teams(teams: Sequence[frozenset[str]], wanted: int) -> bool:
    """Do so many of them share nothing?"""
    if wanted <= 0 or len(teams) > MOST_TEAMS:
        return True
    for n, first in enumerate(teams):
        apart = [team for team in teams[n + 1 :] if not team & first]
        if len(apart) >= wanted - 1 and _are_of_teams(apart, wanted - 1):
            return True
    return False
