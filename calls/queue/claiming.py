"""Taking a queued call to run it: once, and only if nothing that was decided on has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from audit import rollback
from audit.models import ClockTime
from audit.services import SYSTEM
from calls.basis import Obstacle, find_changes, find_denial, judged, superseding
from calls.freezes import frozen, wait_for_freezes
from calls.models import Call
from calls.pauses import why_paused
from calls.queue.scheduling import is_room_for, whose_turn
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from calls.running.execution import ExecutionRequest
from calls.running.input_relay import wishes_of
from policies.decide import Decision
from policies.models import Effect
from registry.publishing import published_catalogue
from registry.publishing.published_catalogue import PublishedTool

# Says what, of what people said, no longer lets the call be sent; empty if nothing.
Check = Callable[[Call, Decision], str]

# Others look at the same moment and take the first of them.
TRIED = 64


@cache
def _checks() -> tuple[Check, ...]:
    """Of people, who are above calls: settings name them."""
    return tuple(import_string(path) for path in settings.CLAIM_CHECKS)


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
    """Claimed or ended meanwhile: then others may be next. If not, what is next has no room."""
    left = Call.objects.filter(pk__in=candidates, state=State.QUEUED).count()
    return left < len(candidates)


@transaction.atomic
def claim(call_id: UUID, *, owner: str) -> ExecutionRequest | None:
    """None when somebody else has it, when it may no longer be sent or not now, or when there is
    no room."""
    wait_for_freezes()
    if why_paused() or rollback.has_gone_back():
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
    if obstacle := _obstacle(call, tool):
        move_now(superseding(call.pk, State.QUEUED, obstacle))
        return None
    assert tool is not None

    if not is_room_for(call):
        return None
    move_now(Move(call.pk, State.QUEUED, State.RUNNING, SYSTEM, lease_owner=owner))
    rollback.note_position()
    client_options = wishes_of(call.pk)
    return ExecutionRequest(
        call_id=call.pk,
        fence=call.fence + 1,
        tool=tool,
        arguments=call.to_send,
        background=True,
        doubtful=call.executed == Executed.UNKNOWN,
        abilities=client_options.abilities if tool.relays else (),
        takes_tasks=client_options.takes_tasks,
        log_level=client_options.log_level,
        revision=call.revision,
        session=client_options.session,
        trace=client_options.trace,
    )


def _obstacle(call: Call, tool: PublishedTool | None) -> Obstacle | None:
    """What changed since the call was allowed or approved."""
    if found := find_changes(call, tool):
        return found
    assert tool is not None
    decision = judged(call, tool, call.to_send)
    if found := find_denial(decision):
        return found
    if decision.effect == Effect.ASK and call.effect == Effect.ALLOW:
        return Obstacle(_("Policy now asks a person first: %(why)s") % {"why": decision.reason})
    whys = (check(call, decision) for check in _checks())
    return next((Obstacle(why) for why in whys if why), None)
