"""Taking a queued call to run it: once, and only if nothing that was decided on has changed."""

from __future__ import annotations

import time
from uuid import UUID

from django.db import transaction

from audit import rollback
from audit.models import ClockTime
from audit.services import SYSTEM
from calls.basis import superseding
from calls.freezes import frozen
from calls.models import Call
from calls.pauses import why_paused
from calls.queue.recheck import find_sending_obstacle, may_start
from calls.queue.scheduling import is_room_for, whose_turn
from calls.record.call_options import options_of
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from calls.running.execution import ExecutionRequest
from registry.publishing import published_catalogue

# Others look at the same moment and take the first of them.
TRIED = 64


def claim_next(*, owner: str) -> ExecutionRequest | None:
    """The call whose turn it is; None when none may start now."""
    if why_paused():
        return None
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


@transaction.atomic
def claim(call_id: UUID, *, owner: str) -> ExecutionRequest | None:
    """None when somebody else has it, when it may no longer be sent or not now, or when there is
    no room."""
    if not may_start():
        return None
    call = (
        Call.objects.select_for_update(of=("self",), skip_locked=True)
        .select_related("agent__owner", "token", "amendment")
        .filter(~frozen(), pk=call_id, state=State.QUEUED, start_by__gt=ClockTime())
        .first()
    )
    if call is None:
        return None

    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if obstacle := find_sending_obstacle(call, tool):
        move_now(superseding(call.pk, State.QUEUED, obstacle))
        return None
    assert tool is not None

    if not is_room_for(call):
        return None
    move_now(Move(call.pk, State.QUEUED, State.RUNNING, SYSTEM, lease_owner=owner))
    rollback.note_position()
    return ExecutionRequest(
        call_id=call.pk,
        fence=call.fence + 1,
        tool=tool,
        arguments=call.to_send,
        background=True,
        claimed_at=time.monotonic(),
        doubtful=call.executed == Executed.UNKNOWN,
        options=options_of(call.pk),
        revision=call.revision,
        agent_id=call.agent_id,
    )
