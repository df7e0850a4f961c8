"""Asking for a call from where there is no event loop: REST and the command line."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from accounts.tokens import Bearer
from calls.record.call_options import CallOptions
from calls.record.states import State
from core import loop
from core.english import gettext as _
from core.errors import CountersignError, RecordUnavailable, RecordUnsure
from core.ids import uuid7
from core.logs import CallContext
from gateway.call_request import CallRequest, SubmitResult
from gateway.process.current import get_runtime
from gateway.process.runtime import Runtime
from gateway.submit import lookups, wait
from gateway.submit.foresee import ForeseenCall, foresee_call
from gateway.submit.named_tools import without_denied
from gateway.submit.submit import CONFIRM_S, submit
from gateway.submit.token_scope import narrow
from registry.publishing.published_tools import PublishedToolset

FOLLOWS_TASKS = CallOptions(takes_tasks=True)
# By then a call nearly always stands in the record, or it was refused because it could not.
OPENED_S = 2.5 + CONFIRM_S
# Whoever asked may have stopped waiting; what was begun goes on.
_going_on: set[asyncio.Task[SubmitResult]] = set()


class NoSuchToolset(CountersignError):
    """Unknown, or not this agent's: the same to whoever asks."""


@dataclass(frozen=True, slots=True)
class SyncCallRequest:
    bearer: Bearer
    toolset: str
    # As the agent sees it; or, where people ask for it, the one with this id.
    tool: str
    arguments: bytes
    parsed: Any
    origin: str
    # Commands end at once and leave the work to a worker.
    background: bool = False
    hold_for: str = ""
    # As in CallRequest.
    key: str = ""
    allow_duplicate: bool = False
    is_separate: bool = False
    tool_id: int = 0
    # Chosen by whoever asks, so as to find the call again; None: here.
    call_id: UUID | None = None


def ask(question: SyncCallRequest, *, seconds: float) -> SubmitResult:
    """Submits the call and waits at most `seconds` for its outcome; then the call goes on.

    Raises NoSuchToolset, RecordUnavailable and QueueFull.
    """
    return loop.run(_ask(question, seconds))


def await_end(call_id: UUID, *, seconds: float) -> None:
    """Returns when the call has ended, or after `seconds`."""
    loop.run(_await_end(call_id, seconds))


async def _await_end(call_id: UUID, seconds: float) -> None:
    await wait.wait(await get_runtime(), call_id, seconds=seconds)


def published(slug: str) -> PublishedToolset | None:
    return loop.run(_published(slug))


async def _published(slug: str) -> PublishedToolset | None:
    runtime = await get_runtime()
    return (await runtime.newest()).catalogue.toolset(slug)


def usable(bearer: Bearer, slug: str) -> PublishedToolset | None:
    """The toolset with the tools that this agent may learn of, and that its token opens."""
    return loop.run(_usable(bearer, slug))


async def _usable(bearer: Bearer, slug: str) -> PublishedToolset | None:
    snapshot = await (await get_runtime()).newest()
    toolset = snapshot.catalogue.toolset(slug)
    return toolset and without_denied(snapshot.rules, bearer, narrow(bearer, toolset))


def explained(question: SyncCallRequest) -> ForeseenCall | None:
    """Foresees the call; None where there is no such tool. Raises NoSuchToolset."""
    return loop.run(_explained(question))


async def _explained(question: SyncCallRequest) -> ForeseenCall | None:
    runtime = await get_runtime()
    asked = _call_request(question, await _toolset(runtime, question))
    return await foresee_call(runtime, asked, asked.tool) if asked.tool else None


async def _ask(question: SyncCallRequest, seconds: float) -> SubmitResult:
    runtime = await get_runtime()
    asked = _call_request(question, await _toolset(runtime, question))
    began = asyncio.get_running_loop().time()
    task = asyncio.create_task(_submit(runtime, asked))
    _going_on.add(task)
    task.add_done_callback(_going_on.discard)
    done, _ = await asyncio.wait([task], timeout=max(seconds, OPENED_S))
    if not done:
        await _check_recorded(runtime, asked)
        return SubmitResult(asked.call_id, State.RUNNING)
    submitted = task.result()
    left = began + seconds - asyncio.get_running_loop().time()
    if submitted.answer is None and left > 0:
        answer = await wait.wait(runtime, submitted.call_id, seconds=left)
        submitted = replace(submitted, answer=answer)
    return submitted


async def _submit(runtime: Runtime, asked: CallRequest) -> SubmitResult:
    with CallContext(asked.call_id):
        return await submit(runtime, asked)


async def _check_recorded(runtime: Runtime, asked: CallRequest) -> None:
    """Raises RecordUnsure. What is being sent was recorded before."""
    if asked.call_id in runtime.call_runtime.engine.flights:
        return
    with contextlib.suppress(RecordUnavailable):
        if await lookups.own(runtime, asked.call_id, agent_id=asked.bearer.agent_id):
            return
    raise RecordUnsure(_("Whether the call is recorded is not known yet."), call_id=asked.call_id)


async def _toolset(runtime: Runtime, question: SyncCallRequest) -> PublishedToolset:
    for snapshot in (runtime.fresh, runtime.newest):
        toolset = (await snapshot()).catalogue.toolset(question.toolset)
        if toolset is not None and question.bearer.agent_id in toolset.agents:
            return toolset
    raise NoSuchToolset("There is no such toolset for this agent.")


def _call_request(question: SyncCallRequest, toolset: PublishedToolset) -> CallRequest:
    by_id = toolset.by_id(question.tool_id) if question.tool_id else None
    return CallRequest(
        call_id=question.call_id or uuid7(),
        bearer=question.bearer,
        toolset=toolset,
        tool=by_id or toolset.by_exposed.find(question.tool),
        tool_name=question.tool,
        arguments=question.arguments,
        parsed=question.parsed,
        origin=question.origin,
        background=question.background,
        hold_for=question.hold_for,
        key=question.key,
        allow_duplicate=question.allow_duplicate,
        is_separate=question.is_separate,
        # Who asked by these looks at the call until it ends, whatever its server makes of it.
        options=FOLLOWS_TASKS,
    )
