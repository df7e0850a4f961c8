"""In every worker: one of them listens to servers that say when their lists change."""

from __future__ import annotations

from core import loop
from registry.discovery.list_change_listener import attend


class Attendant:
    def start(self) -> None:
        loop.discovery.submit(attend())
