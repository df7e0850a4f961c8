"""Takes back a record that was committed too late: nothing was sent for it, and it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection

from approvals.services import withdraw_unconfirmed
from audit.services import SYSTEM
from calls.record.new_call import NewCall
from calls.record.states import Executed, State
from calls.record.transitions import MOVE, Move, Outcome, ending
from core.english import gettext as _
from core.journal import GroupCommit
from gateway.call_request import CallRequest
from gateway.process.runtime import Runtime
from gateway.submit import wait

# How often a record that came too late is looked for: it comes once the database is back, and is
# found before its lease is over.
TAKE_BACK_S = (0.0, 1.0, 4.0, *[15.0] * 40)


def take_back(runtime: Runtime, line: dict[str, Any]) -> None:
    """Ends a record that was committed too late as not sent, whenever it appears."""
    runtime.keep(until_found(partial(_moved, runtime.call_runtime.journal, line)))


async def until_found(take_back: Callable[[], Awaitable[bool | None]]) -> None:
    """It may be written by a connection that was given up, and later than we look."""
    for pause_s in TAKE_BACK_S:
        await asyncio.sleep(pause_s)
        if await take_back():
            return


async def _moved(journal: GroupCommit, line: dict[str, Any]) -> bool:
    (moved,) = await journal.write((MOVE, line), within=None)
    return moved is not None


async def withdrawn(call_id: UUID) -> bool | None:
    """The same of a held call, with its approval."""
    return await wait.surely(lambda: asyncio.to_thread(_withdraw, call_id))


def _withdraw(call_id: UUID) -> bool:
    try:
        return withdraw_unconfirmed(call_id)
    finally:
        connection.close()


def not_sent(call_request: CallRequest, why: str) -> dict[str, Any]:
    sentence = _("Not executed: %(why)s") % {"why": why}
    return ending(call_request.call_id, 1, Outcome(State.FAILED, sentence, Executed.NO), SYSTEM)


def taken_back(new_call: NewCall) -> dict[str, Any]:
    sentence = _("Its agent could not be notified in time that it was recorded.")
    move = Move(new_call.id, State.QUEUED, State.CANCELLED, SYSTEM, sentence, outcome=sentence)
    move.executed = Executed.NO
    return move.line()
