"""Client options of a call: what its client can do and wants to hear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from audit.models import Entry


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Kept in the call's first entry alone, since it matters to few calls."""

    # What it can be asked for the server, in words of core.abilities.
    abilities: tuple[str, ...] = ()
    # It can follow a task, so that the server may make one of the call.
    takes_tasks: bool = False
    # As which least important line of its server's log it wants to hear; "": not at all.
    log_level: str = ""
    # Where it may hear that a page is done with: the key of its session; "": nowhere.
    session: str = ""
    # By which it wants to hear how far its task of 2025-11-25 is; None: not at all.
    progress_token: str | int | None = None
    # The trace that it belongs to, in the members of W3C Trace Context.
    trace: Mapping[str, str] = field(default_factory=dict)

    def details(self, *, for_workers: bool) -> dict[str, Any]:
        """Members of the entry's details; some only matter where somebody else runs the call."""
        members = {"answers": self.abilities, "tasks": self.takes_tasks, "trace": self.trace}
        if for_workers:
            members |= {"log_level": self.log_level, "session": self.session}
        said: dict[str, Any] = {name: value for name, value in members.items() if value}
        if for_workers and self.progress_token is not None:
            said["progress_token"] = self.progress_token
        return said


NO_OPTIONS = CallOptions()


def options_of(call_id: UUID) -> CallOptions:
    first = Entry.objects.filter(call_id=call_id, seq=1).values_list("details", flat=True).first()
    return options_in(first)


def options_in(details: Mapping[str, Any] | None) -> CallOptions:
    said = details or {}
    return CallOptions(
        abilities=tuple(said.get("answers", ())),
        takes_tasks=bool(said.get("tasks")),
        log_level=said.get("log_level", ""),
        session=said.get("session", ""),
        progress_token=said.get("progress_token"),
        trace=said.get("trace", {}),
    )
