"""Agents of 2025-11-25 hear beside their session that a page which they were to open is done with.

Source: MCP 2025-11-25, client/elicitation, "Completion Notifications for URL Mode Elicitation".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from core.listen import PAGE, Listener

NOTICE = "notifications/elicitation/complete"

Tell = Callable[[str], None]


class PageListeners:
    """Listeners of this process, by session key."""

    def __init__(self, listener: Listener) -> None:
        self._listening: dict[str, list[Tell]] = {}
        listener.on(PAGE, self._on_page)

    @contextlib.contextmanager
    def listening(self, session: str, tell: Tell) -> Iterator[None]:
        """`tell` gets the name of each page, as its server gave it."""
        self._listening.setdefault(session, []).append(tell)
        try:
            yield
        finally:
            self._listening[session].remove(tell)
            if not self._listening[session]:
                del self._listening[session]

    def _on_page(self, said: str) -> None:
        session, _, name = said.partition(" ")
        # A message of ours comes on one of a client's streams, and not on all.
        for tell in self._listening.get(session, [])[-1:]:
            tell(name)
