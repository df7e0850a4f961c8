"""Agents of 2025-11-25 hear beside their session how far their tasks are.

A process that began a task says so to all of them: the session's stream may be at another one.
Source: MCP 2025-11-25, basic/utilities/tasks, "Task Progress Notifications".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from uuid import UUID

import orjson

from core.ids import uuid7
from core.journal import GroupCommit, Statement
from core.listen import TASK, Listener

BEGUN = Statement(
    "tell of a task",
    """
SELECT a.id, pg_notify('countersign_task', a.said)::text
FROM json_to_recordset(%s::json) AS a(id uuid, said text)
""",
    order=5,
)
# NOTIFY carries less than 8,000 bytes.
TOKEN_MAX = 1000

# The task's call, and the token of the request that it was.
Begin = Callable[[UUID, str | int], None]


def tell(journal: GroupCommit, session: str, call_id: UUID, token: str | int) -> None:
    """`session`: by its key."""
    said = orjson.dumps([session, str(call_id), token]).decode()
    if len(said) <= TOKEN_MAX:
        journal.write_later((BEGUN, {"id": uuid7(), "said": said}))


class TaskListeners:
    """Listeners of this process, by session key."""

    def __init__(self, listener: Listener) -> None:
        self._listening: dict[str, list[Begin]] = {}
        listener.on(TASK, self._begun)

    @contextlib.contextmanager
    def listening(self, session: str, begin: Begin) -> Iterator[None]:
        self._listening.setdefault(session, []).append(begin)
        try:
            yield
        finally:
            self._listening[session].remove(begin)
            if not self._listening[session]:
                del self._listening[session]

    def _begun(self, said: str) -> None:
        session, call_id, token = orjson.loads(said)
        # A message of ours comes on one of a client's streams, and not on all.
        for begin in self._listening.get(session, [])[-1:]:
            begin(UUID(call_id), token)
