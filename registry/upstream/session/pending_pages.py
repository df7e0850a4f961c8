"""Pages that servers want opened, until they say that somebody was there and is done.

Source: MCP 2025-11-25, client/elicitation, "Completion Notifications for URL Mode Elicitation". No
other revision has that.
"""

from typing import Any

from registry.upstream.values import OnPage

_MOST, _NAME_MAX = 1000, 500


class PendingPages:
    """Pages that were to be opened, by the server's names for them."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[str, str], OnPage] = {}

    def wanted(self, key: str, name: Any, on_page: OnPage) -> None:
        if not isinstance(name, str) or len(name) > _NAME_MAX or not name.isprintable():
            return
        self._wanted.pop((key, name), None)
        self._wanted[key, name] = on_page
        if len(self._wanted) > _MOST:
            # The oldest: nobody comes back from a page for ever.
            del self._wanted[next(iter(self._wanted))]

    def done(self, key: str, name: Any) -> None:
        on_page = self._wanted.pop((key, name), None) if isinstance(name, str) else None
        if on_page is not None:
            on_page(name)
