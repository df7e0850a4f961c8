"""Agents that listen hear how their tasks go on, whichever process runs them.

Source: io.modelcontextprotocol/tasks, specification/draft/tasks, "Task Status Notifications".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from calls.content.answers import CallStatus
from core.errors import RecordUnavailable
from gateway.methods import tasks as task_methods
from gateway.methods.named_calls import find_named
from gateway.process.log_lines import LogStream
from gateway.protocol import handles
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError
from gateway.submit import lookups

NOTICE = "notifications/tasks"
TASKS_MAX = 100
HOW_FAR_S = 1.0

Push = Callable[[Mapping[str, Any]], None]


async def known_tasks(rpc: RpcRequest, ids: object) -> dict[str, UUID]:
    """The agent's own tasks among these ids, each once and as it named them. Raises RpcError for a
    client that does not declare tasks."""
    task_methods.check_declared(rpc)
    listed = ids if isinstance(ids, list) else []
    found = {}
    for task_id in listed[:TASKS_MAX]:
        call_id = await _own(rpc, task_id)
        if call_id is not None:
            found[task_id] = call_id
    return found


async def _own(rpc: RpcRequest, task_id: object) -> UUID | None:
    try:
        call_id = handles.call_of_task(task_id, rpc.agent_id)
    except RpcError:
        return None
    return call_id if await find_named(rpc.context, call_id) else None


async def tell(rpc: RpcRequest, tasks: Iterable[UUID], push: Push) -> None:
    """How each stands, and again whenever that changes, until all of them have ended."""
    watch, news = rpc.runtime.watch, TaskUpdates()
    watched = {call_id: _Watched(call_id, news) for call_id in tasks}
    for call_id, one in watched.items():
        watch.join(call_id, one)
    try:
        while watched:
            one = await news.next()
            if one.call_id not in watched:
                continue
            told = await _look(rpc, one)
            if told is None:
                continue
            push(told)
            if told["status"] in task_methods.ENDED:
                watch.leave(one.call_id, watched.pop(one.call_id))
                one.close()
    finally:
        for call_id, one in watched.items():
            watch.leave(call_id, one)
            one.close()


class TaskUpdates:
    """Tasks that moved, each once however often it did."""

    def __init__(self) -> None:
        self._moved: dict[_Watched, None] = {}
        self._ring = asyncio.Event()

    def add(self, one: _Watched) -> None:
        self._moved[one] = None
        self._ring.set()

    async def next(self) -> _Watched:
        while not self._moved:
            self._ring.clear()
            await self._ring.wait()
        one = next(iter(self._moved))
        del self._moved[one]
        return one


class _Watched:
    """Told at once of what its agent has to react to, and how far it is at most once a second."""

    def __init__(self, call_id: UUID, news: TaskUpdates) -> None:
        self.call_id = call_id
        self._news = news
        self.lines: LogStream | None = None
        self._seen: tuple[object, ...] | None = None
        self._how_far: tuple[object, ...] | None = None
        self._later: asyncio.TimerHandle | None = None

    def hear(self, logged: Iterable[object]) -> None:
        """Tasks have no log of their own."""

    def see(self, seen: CallStatus) -> None:
        now = (seen.state, seen.asked, seen.maybe, seen.answer is None, seen.consent_page)
        if now != self._seen:
            self._seen = now
            self._news.add(self)
        how_far = (seen.progress, seen.message)
        if self._how_far not in (None, how_far) and self._later is None:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(HOW_FAR_S, self._tell_how_far)
        self._how_far = how_far

    def _tell_how_far(self) -> None:
        self._later = None
        self._news.add(self)

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()

    def look_again(self) -> None:
        self._seen = None


async def _look(rpc: RpcRequest, one: _Watched) -> dict[str, Any] | None:
    """None where it cannot be read just now: it is looked at again within a second."""
    try:
        found = await lookups.own(rpc.runtime, one.call_id, agent_id=rpc.agent_id)
        assert found is not None
        return await task_methods.detailed(rpc, found)
    except (RecordUnavailable, DatabaseError):
        one.look_again()
        return None
