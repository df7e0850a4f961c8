"""The configuration that a call is judged by: its tool, its toolset, rules and groups.

Read anew for each question, or kept by a worker as long as nobody changes anything of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from accounts.models import User
from policies import decide
from policies.decide import RuleBook
from policies.limits import compiled
from policies.limits.compiled import LimitBook
from registry.publishing import published_catalogue
from registry.publishing.published_tools import PublishedTool
from registry.publishing.tool_override import OverriddenTool

T = TypeVar("T")
# Of many tools and agents, a worker meets few before something changes.
KEPT_MAX = 10_000


class CallConfiguration:
    """The configuration as it stands now: each question reads."""

    def tool(self, tool_id: int) -> PublishedTool | None:
        return published_catalogue.one(tool_id)

    def offers(self, slug: str, tool: PublishedTool, *, agent_id: int) -> bool:
        return published_catalogue.offers(slug, tool, agent_id=agent_id)

    def override_of(self, slug: str, tool: PublishedTool) -> OverriddenTool:
        return published_catalogue.override_of(slug, tool)

    def rules(self) -> RuleBook:
        return decide.load()

    def limits(self) -> LimitBook:
        return compiled.load()

    def groups_of(self, person: User) -> frozenset[str]:
        return frozenset(person.groups.values_list("name", flat=True))


CURRENT = CallConfiguration()
_UNKNOWN: Any = object()


class Generation(NamedTuple):
    """One that comes once: a server that lost the last changes counts them again."""

    # The cluster and origin, and when its server began.
    place: str
    began_at: datetime
    # As in core.listen.GENERATION.
    number: int


class KeptConfiguration(CallConfiguration):
    """The configuration of one generation: each question reads once."""

    def __init__(self, generation: Generation | None) -> None:
        self.generation = generation
        self._known: dict[Hashable, Any] = {}

    def tool(self, tool_id: int) -> PublishedTool | None:
        """A program's command is the host's to say, and no generation counts that."""
        return self._once(("tool", tool_id), lambda: CURRENT.tool(tool_id), may_keep=_is_at_url)

    def offers(self, slug: str, tool: PublishedTool, *, agent_id: int) -> bool:
        key = ("offers", slug, tool.tool_id, agent_id)
        return self._once(key, lambda: CURRENT.offers(slug, tool, agent_id=agent_id))

    def override_of(self, slug: str, tool: PublishedTool) -> OverriddenTool:
        key = ("override", slug, tool.tool_id)
        return self._once(key, lambda: CURRENT.override_of(slug, tool))

    def rules(self) -> RuleBook:
        return self._once("rules", CURRENT.rules)

    def limits(self) -> LimitBook:
        return self._once("limits", CURRENT.limits)

    def groups_of(self, person: User) -> frozenset[str]:
        return self._once(("groups", person.pk), lambda: CURRENT.groups_of(person))

    def _once(
        self, key: Hashable, read: Callable[[], T], may_keep: Callable[[T], bool] = lambda _: True
    ) -> T:
        found: T = self._known.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = read()
            if may_keep(found):
                if len(self._known) >= KEPT_MAX:
                    self._known.clear()
                self._known[key] = found
        return found


def _is_at_url(tool: PublishedTool | None) -> bool:
    return tool is not None and tool.connection.transport != "stdio"
