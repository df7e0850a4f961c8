"""A request that comes again is answered with what became of the first, and not sent once more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from audit.services import Actor, record
from calls.models import Call, Once
from calls.record.idempotency import ALIKE, FIRST, GUARD_S, REPEATED, SameCall
from calls.record.new_call import digest
from calls.record.states import State
from core.english import gettext as _
from core.ids import first_id
from gateway.call_request import NO_ARGUMENTS, CallRequest, SubmitResult, claimed_key, is_guarded
from gateway.process.runtime import Runtime
from gateway.submit import lookups
from gateway.submit.idempotency import ALLOW_DUPLICATE
from registry.publishing.published_tools import CALL


async def find_by_key(runtime: Runtime, call_request: CallRequest) -> SubmitResult | None:
    """The earlier call that holds this call's key, or the key of its duplicates."""
    key = claimed_key(call_request)
    found = await _find_same(runtime, FIRST, (key.id,)) if key else None
    if key is None or found is None:
        return None
    if not key.guard and not _is_same(call_request, found):
        return SubmitResult(
            call_request.call_id, State.INVALID, refusal="key", reason=_key_conflict(found)
        )
    return await join(runtime, call_request, found.id, guard=key.guard)


async def find_undelivered(runtime: Runtime, call_request: CallRequest) -> SubmitResult | None:
    """The earlier duplicate that blocks this call: its outcome may not have been delivered."""
    if is_guarded(call_request):
        return await find_duplicate(runtime, call_request)
    return None if call_request.key else await find_by_key(runtime, call_request)


async def find_decided(runtime: Runtime, call_request: CallRequest) -> SubmitResult | None:
    """The earlier call that people decided on after its client had stopped waiting: a program that
    reads cannot ask for that call's outcome, but it reads again."""
    if call_request.tool is None or call_request.tool.method == CALL:
        return None
    if call_request.allow_duplicate:
        return None
    return await find_duplicate(runtime, call_request)


async def find_duplicate(runtime: Runtime, call_request: CallRequest) -> SubmitResult | None:
    """The same that may have run, of which nobody knows that the agent heard the outcome."""
    found = await _find_same(runtime, ALIKE, _identity(call_request))
    return await join(runtime, call_request, found.id, guard=True) if found else None


async def find_repeated(runtime: Runtime, call_request: CallRequest) -> UUID | None:
    """The last one that is the same and may have run, for those who decide on another."""
    since = first_id(datetime.now(UTC) - timedelta(seconds=GUARD_S))
    found = await lookups.one(runtime, REPEATED, (*_identity(call_request), since))
    return found[0] if found else None


async def join(
    runtime: Runtime, call_request: CallRequest, call_id: UUID, *, guard: bool
) -> SubmitResult:
    """Answered with another call; the record says so."""
    agent_id = call_request.bearer.agent_id
    found = await lookups.own(runtime, call_id, agent_id=agent_id)
    assert found is not None
    await asyncio.to_thread(_note_joined, call_request, call_id, "guard" if guard else "key")
    answer = found.seen.answer
    if answer is not None:
        answer = replace(answer, repeated=True, note=_note_of(found) if guard else "")
    return SubmitResult(call_id, found.seen.state, answer, joined=True)


def join_held(call_request: CallRequest) -> UUID | None:
    """The same that waits for people already; None if it was decided in this very moment."""
    agent_id, tool_id, arguments_digest = _identity(call_request)
    try:
        held = Call.objects.filter(
            agent_id=agent_id,
            tool_id=tool_id,
            arguments_digest=arguments_digest,
            state=State.HELD,
        ).first()
        if held is None:
            return None
        if key := claimed_key(call_request):
            Once.objects.filter(pk=key.id, call_id=call_request.call_id).update(call_id=held.pk)
        _note(call_request, held.pk, "held")
        return held.pk
    finally:
        connection.close()


def _note_joined(call_request: CallRequest, call_id: UUID, why: str) -> None:
    try:
        _note(call_request, call_id, why)
    finally:
        connection.close()


@transaction.atomic
def _note(call_request: CallRequest, call_id: UUID, why: str) -> None:
    bearer = call_request.bearer
    record(
        "call.joined",
        actor=Actor("agent", bearer.agent_id, bearer.agent_name),
        call_id=call_id,
        agent=(bearer.agent_id, bearer.agent_name),
        server=call_request.tool.server_slug if call_request.tool else "",
        tool=call_request.tool.exposed_name if call_request.tool else "",
        why=why,
    )
    # What has ended, the agent hears of now.
    ended = Call.objects.filter(pk=call_id, unheard_at__isnull=False, finished_at__isnull=False)
    ended.update(unheard_at=None)


def _is_same(call_request: CallRequest, found: SameCall) -> bool:
    name = call_request.tool.exposed_name if call_request.tool else call_request.tool_name
    return (found.tool_name, found.arguments_digest) == (
        name,
        digest(call_request.arguments or NO_ARGUMENTS),
    )


def _key_conflict(found: SameCall) -> str:
    said = _(
        "This idempotency key stands for another call (%(id)s, of %(tool)s): with another tool or "
        "other arguments, give another key."
    )
    return said % {"id": found.id, "tool": found.tool_name}


def _note_of(found: lookups.AgentCall) -> str:
    said = _(
        "Not sent again: the same was asked at %(at)s UTC (call %(id)s), and this is its "
        "outcome. If it is meant to be done once more, the client says so with %(again)s in _meta."
    )
    at = found.asked_at.astimezone(UTC).strftime("%H:%M:%S")
    return said % {"at": at, "id": found.call_id, "again": f'"{ALLOW_DUPLICATE}": true'}


def _identity(call_request: CallRequest) -> tuple[int, int, str]:
    assert call_request.tool is not None
    return (
        call_request.bearer.agent_id,
        call_request.tool.tool_id,
        digest(call_request.arguments or NO_ARGUMENTS),
    )


async def _find_same(runtime: Runtime, query: str, given: tuple[Any, ...]) -> SameCall | None:
    row = await lookups.one(runtime, query, given)
    return SameCall(*row) if row else None
