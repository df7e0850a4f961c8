"""The calls that the patterns of a rule are about, which a higher package counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Agent


@dataclass(frozen=True, slots=True)
class CallCount:
    """Calls of the last days. Where there were too many to read, those among the newest
    `looked_at`, which were made since then."""

    calls: int
    days: int
    looked_at: int | None = None
    since: datetime | None = None


# Of these tools, by these agents; None: by everybody.
CountCalls = Callable[[Collection[int], Sequence[int] | None], CallCount]


def agents_of(agents: Sequence[str], owner_groups: Sequence[str]) -> list[int] | None:
    """The agents of a rule, by the keys that its form sends; None where it is for every agent."""
    if not agents and not owner_groups:
        return None
    found = Agent.objects.all()
    if agents:
        found = found.filter(pk__in=_keys(agents))
    if owner_groups:
        found = found.filter(owner__groups__in=_keys(owner_groups)).distinct()
    return list(found.values_list("pk", flat=True))


def _keys(texts: Sequence[str]) -> list[int]:
    return [int(text) for text in texts if str(text).isdecimal() and len(str(text)) < 10]
