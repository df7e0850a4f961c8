"""One event loop in a background thread, for processes whose own work is synchronous.

Celery's threads, REST views and commands hand it coroutines; upstream connections live on it,
so they outlast any one call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 one per process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="background loop", daemon=True).start()
        return _loop


def run(work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Run `work` on the background loop and wait for it; never call this from that loop."""
    return asyncio.run_coroutine_threadsafe(work, loop()).result(timeout)
