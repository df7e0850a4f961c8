"""In every worker: one of them listens to servers that say when their lists change."""

from __future__ import annotations

import threading

from core import loop
from registry.attending import attend


class Attendant:
    def start(self) -> None:
        threading.Thread(target=loop.run, args=(attend(),), name="attendant", daemon=True).start()
