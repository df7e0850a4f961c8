"""Is the console's process alive, and can it serve? For supervisors and balancers.

Answered before any of Django runs: for any Host, and while every thread waits for the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from audit.demo import is_demo
from core.connections import each_within
from gateway.http import health
from gateway.process import current

WITHIN_S = 1.5

# Its own: those of pages may all be waiting for the database.
_threads = ThreadPoolExecutor(1, thread_name_prefix="health")


def health_first(console: Any) -> Any:
    what_is_wrong = find_fault_after(lambda: "" if current.is_listening() else health.NOT_LISTENING)

    async def route(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] in health.PATHS:
            await health.respond(scope, send, what_is_wrong, is_demo)
        else:
            await console(scope, receive, send)

    return route


def find_fault_after(find_fault: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    """The same, once the database has answered."""

    async def what_is_wrong() -> str:
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(_threads, _reaches_database):
            return health.NO_DATABASE
        return find_fault()

    return what_is_wrong


def _reaches_database() -> bool:
    try:
        with each_within(WITHIN_S), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            # Read once, here, where a thread may wait for it.
            is_demo()
    except (DatabaseError, InterfaceError):
        return False
    else:
        return True
    finally:
        connection.close()
