"""Event loops in background threads, for processes whose own work is synchronous.

Celery's threads, REST views and commands hand them coroutines; upstream connections live on them,
so they outlast any one call. Calls have one loop, and discovery has another: neither waits for the
other's loop, nor for the threads in which the other's blocking work runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    def __init__(self, name: str, *, threads: int | None = None) -> None:
        """`threads` for blocking work: how many, or as many as asyncio takes by itself."""
        self._name, self._threads = name, threads
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def run(self, work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
        """Run `work` and wait for it; never call this from this loop."""
        return self.submit(work).result(timeout)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        if self._threads:
            loop.set_default_executor(ThreadPoolExecutor(self._threads, f"{self._name} worker"))
        threading.Thread(target=loop.run_forever, name=self._name, daemon=True).start()
        return loop


# One of each per process is the point.
_calls = BackgroundLoop("background loop")
discovery = BackgroundLoop("discovery loop", threads=6)


def run(work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Run `work` on the loop of calls and wait for it; never call this from that loop."""
    return _calls.run(work, timeout=timeout)


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `work` on the loop of calls, and wait for nothing."""
    return _calls.submit(work)
