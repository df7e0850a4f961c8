"""A client's description of itself: revision, name, capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from core import abilities
from gateway.protocol.revisions import LAST_LEGACY, MODERN, TASKS


# No slots: it is remembered with the head that it came with, and so is what is read from it.
@dataclass(frozen=True)
class Client:
    """A client as it describes itself with each request, or once when its session starts."""

    revision: str
    name: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""

    @cached_property
    def modern(self) -> bool:
        return self.revision == MODERN

    @cached_property
    def takes_tasks(self) -> bool:
        extensions = self.capabilities.get("extensions")
        return self.modern and isinstance(extensions, dict) and TASKS in extensions

    @cached_property
    def asks_for_tasks(self) -> bool:
        """Whether it requests tasks as in 2025-11-25."""
        return self.revision == LAST_LEGACY

    @property
    def opens_urls(self) -> bool:
        return abilities.URL in self.abilities

    @cached_property
    def hears_of_pages(self) -> bool:
        """Whether it gets `notifications/elicitation/complete`: by 2025-11-25, in a session."""
        return self.revision == LAST_LEGACY and bool(self.session) and self.opens_urls

    @cached_property
    def abilities(self) -> tuple[str, ...]:
        """Input requests that it can answer, in the words of core.abilities."""
        return abilities.declared(self.capabilities)


def named(info: Any) -> str:
    """A client's name and version, as far as it says."""
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[key]) for key in ("name", "version") if info.get(key))[:200]
