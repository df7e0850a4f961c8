"""A worker's turn: claim the next call, run it on the background loop, and so on while there are
any that may start. Asked to stop, it takes nothing new."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

from django.conf import settings
from django.db import close_old_connections

from calls.queue.claiming import claim_next
from calls.running.execution import ExecutionRequest
from calls.running.runtime import background, started
from core import loop
from core.logs import CallContext

WRITTEN_S = 5.0

_leaving = threading.Event()
# Who looks at the same moment finds the same call next: one has it, and the others have tried for
# nothing, each with a transaction. With four threads a call cost three times what it does alone.
_claiming = threading.Lock()
_changed = threading.Condition()
_inside = 0
_claimed_at = time.monotonic()


def work() -> None:
    global _claimed_at  # noqa: PLW0603 one per process is the point
    call_runtime = background()
    with _counted():
        while (execution_request := _next(call_runtime.engine.owner)) is not None:
            _claimed_at = time.monotonic()
            # The call may take hours; the connection goes back to the pool meanwhile.
            close_old_connections()
            # Cut off by `leave`, which wrote down what is known.
            with suppress(CancelledError), CallContext(execution_request.call_id):
                loop.run(call_runtime.engine.execute(execution_request))
    close_old_connections()


def _next(owner: str) -> ExecutionRequest | None:
    with _claiming:
        return None if _leaving.is_set() else claim_next(owner=owner)


def follow(execution_request: ExecutionRequest) -> None:
    """A task at its server, taken over from a worker that is no more."""
    with _counted(), suppress(CancelledError), CallContext(execution_request.call_id):
        close_old_connections()
        loop.run(background().engine.execute(execution_request))


def drain() -> None:
    """Take nothing new, let calls end within STOP_WITHIN_S, tell the truth about the rest.

    Returns when nothing runs in this process any more.
    """
    _leaving.set()
    if (call_runtime := started()) is not None:
        loop.run(call_runtime.engine.leave(settings.STOP_WITHIN_S))
    with _changed:
        _changed.wait_for(lambda: not _inside, WRITTEN_S)


def is_leaving() -> bool:
    return _leaving.is_set()


def find_fault() -> str:
    """Why this process takes no call now; empty if it does."""
    if is_leaving():
        return "leaving"
    call_runtime = started()
    listens = call_runtime is not None and call_runtime.listener.is_listening
    return "" if listens else "not listening"


def under_way() -> int:
    call_runtime = started()
    return len(call_runtime.engine.flights) if call_runtime else 0


def since_claim_s() -> float:
    """How long this process has not taken a call, or has lived without taking any."""
    return time.monotonic() - _claimed_at


@contextmanager
def _counted() -> Iterator[None]:
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _inside  # noqa: PLW0603 one per process is the point
    with _changed:
        _inside += change
        _changed.notify_all()
