"""Taking a queued call to run it: once, and only if nothing that was decided on has changed."""

from __future__ import annotations

import time
from contextlib import suppress
from uuid import UUID

from django.db import transaction

from audit import rollback
from audit.position import KnownPosition
from audit.services import SYSTEM
from calls.basis import Obstacle, superseding
from calls.models import Call
from calls.queue import queued_call
from calls.queue.consents import is_postponed, lacked_scopes
from calls.queue.recheck import find_costs, judge_sending, may_start
from calls.queue.scheduling import read_capacity, whose_turn
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from calls.running.execution import ExecutionRequest
from policies.models import Effect
from registry.credentials.owners import owner_for

# Others look at the same moment and take the first of them.
TRIED = 64
# How often a call is judged while the configuration changes under it, before others have a turn.
JUDGED_MAX = 3


def claim_next(*, owner: str) -> ExecutionRequest | None:
    """The call whose turn it is; None when none may start now."""
    while candidates := whose_turn(most=TRIED):
        for call_id in candidates:
            execution_request = claim(call_id, owner=owner)
            if execution_request is not None:
                return execution_request
        if not _some_moved(candidates):
            return None
    return None


def _some_moved(candidates: list[UUID]) -> bool:
    """True if one was claimed or ended meanwhile, so that others may be next."""
    left = Call.objects.filter(pk__in=candidates, state=State.QUEUED).count()
    return left < len(candidates)


def claim(call_id: UUID, *, owner: str) -> ExecutionRequest | None:
    """None when somebody else has it, when it may no longer be sent or not now, or when there is
    no room."""
    for _attempt in range(JUDGED_MAX):
        with suppress(_Overtaken), transaction.atomic():
            return _claim(call_id, owner)
    return None


class _Overtaken(Exception):
    """The configuration changed while the call was judged by it."""


def _claim(call_id: UUID, owner: str) -> ExecutionRequest | None:
    start = may_start()
    if start is None:
        return None
    queued = queued_call.lock(call_id)
    if queued is None:
        return None

    call = queued.call
    tool = start.configuration.tool(call.tool_id) if call.tool_id else None
    found = judge_sending(call, tool, start.configuration)
    # The last look, after all locks: what changed while they were waited for is judged anew.
    capacity = read_capacity(call)
    if capacity.generation != start.generation.number:
        raise _Overtaken
    if isinstance(found, Obstacle):
        move_now(superseding(call.pk, State.QUEUED, found))
        return None

    if not capacity.is_free or is_postponed(call, found):
        return None
    move_now(Move(call.pk, State.QUEUED, State.RUNNING, SYSTEM, lease_owner=owner))
    rollback.note_position(KnownPosition(start.generation.place, capacity.transaction))
    return ExecutionRequest(
        call_id=call.pk,
        fence=call.fence + 1,
        tool=found,
        arguments=call.to_send,
        background=True,
        claimed_at=time.monotonic(),
        doubtful=call.executed == Executed.UNKNOWN,
        options=queued.options,
        revision=call.revision,
        agent_id=call.agent_id,
        is_approved=call.effect == Effect.ASK,
        lacked_scopes=lacked_scopes(call, found),
        credential_owner=owner_for(call.agent, found.connection),
        costs=find_costs(call, found, start.configuration),
    )
