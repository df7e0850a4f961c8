"""The one door. Every call, from whichever surface, comes to be here and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from approvals.grants import USE
from approvals.services import ASK, asking, withdraw_unconfirmed
from audit.services import SYSTEM
from calls import dispatch
from calls.content.answers import Answer, build_answer
from calls.models import Call
from calls.queue.queue_limits import find_room
from calls.record.idempotency import CLAIM_KEY, KeyClaim
from calls.record.listed_tasks import LIST
from calls.record.new_call import NewCall, OpenedCall
from calls.record.refusal import RefusalDetails, RetryAdvice, of_policy
from calls.record.states import Executed, State
from calls.record.transitions import CONFIRM, MOVE, OPEN, Move, Outcome, ending
from calls.running.execution import ExecutionRequest, Unwritten
from calls.running.listeners import NO_LISTENER, CallListener, EarlyReply
from core.errors import RecordUnavailable
from core.journal import GroupCommit, Line
from core.pipeline import Row
from gateway.call_request import (
    NO_ARGUMENTS,
    CallRequest,
    SubmitResult,
    claimed_key,
    is_guarded,
    subject,
    with_fixed_arguments,
)
from gateway.process.new_call_cache import TemplateLine, opening
from gateway.process.runtime import Runtime, Snapshot
from gateway.submit import duplicates, lookups, wait
from gateway.submit.run import run_until_reply
from policies.decide import Decision
from policies.models import Effect
from registry.publishing.published_catalogue import PublishedTool, Violation

log = logging.getLogger(__name__)

# Until the same, which another process opens, can be read.
PAUSES_S = (0.0, 0.05, 0.2, 0.5)
# A queued call that nobody confirms expires after so long; a held one, by approvals.services.
UNCONFIRMED_S = 30
NEVER_S = 10 * 365 * 86400.0
CONFIRM_S = 1.0
# How often a record that came too late is looked for: it comes once the database is back, and is
# found before its lease is over.
TAKE_BACK_S = (0.0, 1.0, 4.0, *[15.0] * 40)


class KeyTaken(Exception):
    """What was asked for is another call, or is becoming one."""


class Judged(NamedTuple):
    """What was asked for, and what rules and standing approvals say of it now."""

    call_request: CallRequest
    tool: PublishedTool
    decision: Decision
    snapshot: Snapshot

    @property
    def needs_people(self) -> bool:
        return self.decision.effect == Effect.ASK and self.call_request.grant is None


async def submit(
    runtime: Runtime,
    call_request: CallRequest,
    *,
    call_listener: CallListener = NO_LISTENER,
    pauses_s: Sequence[float] = PAUSES_S,
) -> SubmitResult:
    """Raises RecordUnavailable, with nothing sent, when the record cannot be written in time,
    and QueueFull, with nothing recorded, when too much waits already."""
    try:
        judged = await _judge(runtime, call_request)
        if isinstance(judged, SubmitResult):
            result = judged
        elif judged.needs_people:
            result = await _hold(runtime, judged.call_request, judged.decision)
        elif judged.call_request.background or judged.tool.mode == Call.Mode.BACKGROUND:
            result = await _queue(runtime, judged.call_request, judged.decision)
        else:
            result = await _run(runtime, judged, call_listener)
        if result.joined and result.state == State.HELD:
            # Whoever was turned away before hears of it now.
            await _confirm(runtime, result.call_id, None)
        return result
    except RecordUnavailable as error:
        error.call_id = call_request.call_id
        raise
    except KeyTaken:
        if not pauses_s:
            sentence = _("The same is being asked for right now. Nothing was sent.")
            raise RecordUnavailable(sentence, call_id=call_request.call_id) from None
    # The same was opened elsewhere at this very moment: soon its row can be read.
    await asyncio.sleep(pauses_s[0])
    return await submit(runtime, call_request, call_listener=call_listener, pauses_s=pauses_s[1:])


async def _judge(runtime: Runtime, call_request: CallRequest) -> Judged | SubmitResult:
    """A result, where it is refused or was asked for before."""
    call_request, differing = with_fixed_arguments(call_request)
    if call_request.key and (known := await duplicates.find_by_key(runtime, call_request)):
        return await _known(runtime, call_request, known)
    tool = call_request.tool
    if tool is None:
        return await _refuse(runtime, call_request, "unknown_tool", _("There is no such tool."))

    violations = [*call_request.wrong] or differing or tool.shape.violations(call_request.parsed)
    if violations:
        return await _refuse(runtime, call_request, "invalid", _sentence(violations), violations)

    if call_request.again:
        repeats = await duplicates.find_repeated(runtime, call_request)
        call_request = replace(call_request, repeats=repeats)
    snapshot = await runtime.fresh()
    freezes = snapshot.freezes
    if not freezes.is_empty and (
        frozen := freezes.over(call_request.bearer.agent_id, tool.server_id)
    ):
        return await _refuse(runtime, call_request, "frozen", frozen)

    decision = await decide(runtime, snapshot, call_request, tool)
    if decision.effect == Effect.ASK and not call_request.hold_for:
        call_request = _granted(call_request, tool, decision, snapshot)
    if decision.effect == Effect.DENY:
        return await _refuse(runtime, call_request, "policy", decision.reason, decision=decision)
    if decision.effect == Effect.ALLOW and call_request.hold_for:
        decision = replace(decision, effect=Effect.ASK, reason=call_request.hold_for)
    judged = Judged(call_request, tool, decision, snapshot)
    if call_request.at_once and judged.needs_people:
        reason = _at_once(decision)
        return await _refuse(runtime, call_request, "policy", reason, decision=decision)
    return judged


def _granted(
    call_request: CallRequest, tool: PublishedTool, decision: Decision, snapshot: Snapshot
) -> CallRequest:
    """The same, with the grant that answers for people, if there is one."""
    arguments, bearer = call_request.arguments or NO_ARGUMENTS, call_request.bearer
    found = snapshot.grants.matching(
        subject(call_request, tool), decision, arguments, bearer.parties, bearer.inviters
    )
    return replace(call_request, grant=found) if found else call_request


async def _refuse(
    runtime: Runtime,
    call_request: CallRequest,
    refusal: str,
    reason: str,
    violations: list[Violation] | None = None,
    decision: Decision | None = None,
) -> SubmitResult:
    made = opening(call_request, State.REFUSED, decision, reason=reason)
    made.details["refusal"] = refusal
    # Of what its agent is told as an error there is no task.
    listed = [] if refusal in ("unknown_tool", "key") else _listed(call_request)
    await runtime.call_runtime.journal.write((OPEN, made.line()), *listed)
    runtime.call_runtime.engine.notifier.notify("calls")
    why = _why(refusal, decision)
    answer = build_answer(made.id, State.REFUSED, reason, Executed.NO, None, None, why)
    return SubmitResult(made.id, State.REFUSED, answer, False, refusal, reason, violations or [])


def _why(refusal: str, decision: Decision | None) -> RefusalDetails:
    if decision is not None:
        return of_policy(decision.told, decision.instead, conditional=decision.conditional)
    return RefusalDetails(
        refusal, RetryAdvice.LATER if refusal == "frozen" else RetryAdvice.CHANGED
    )


def _at_once(decision: Decision) -> str:
    said = _("This waits for no person: a rule has to allow it. %(why)s")
    return said % {"why": decision.reason}


async def _known(runtime: Runtime, call_request: CallRequest, known: SubmitResult) -> SubmitResult:
    """What the agent's key stands for; refused if that is something else."""
    if known.refusal:
        return await _refuse(runtime, call_request, known.refusal, known.reason)
    return known


async def _hold(runtime: Runtime, call_request: CallRequest, decision: Decision) -> SubmitResult:
    """Waits for people; the same agent asking the same again joins what waits already."""
    if found := await duplicates.find_undelivered(
        runtime, call_request
    ) or await duplicates.find_decided(runtime, call_request):
        return found
    await find_room(runtime.call_runtime.pool, call_request.bearer.agent_id)
    while True:
        made = opening(call_request, State.HELD, decision)
        made.unconfirmed_s = NEVER_S
        lines = ((OPEN, made.line()), (ASK, asking(made.id, decision)))
        try:
            opened, _asked = await _write(runtime, call_request, *lines)
        except RecordUnavailable:
            # It may yet become durable. Nobody decides on it, since nobody confirms it.
            runtime.keep(_until_found(partial(_withdrawn, made.id)))
            raise
        if (row := _opened(opened)) is not None and row.is_open:
            await _confirm(runtime, made.id, None)
            runtime.call_runtime.engine.notifier.notify("queue", quiet_s=0)
            runtime.call_runtime.engine.notifier.notify("calls")
            return SubmitResult(made.id, State.HELD, reason=decision.reason)
        waiting = await asyncio.to_thread(duplicates.join_held, call_request)
        if waiting is not None:
            return SubmitResult(waiting, State.HELD, joined=True, reason=decision.reason)


async def _write(runtime: Runtime, call_request: CallRequest, *lines: Line) -> list[Row | None]:
    """A call's first lines, and with them its key: raises KeyTaken if that is another call's."""
    key, journal = claimed_key(call_request), runtime.call_runtime.journal
    written = (*lines, *_listed(call_request)) if call_request.as_task else lines
    if key is None:
        return (await journal.write(*written))[: len(lines)]
    taken, *answers = await journal.write((CLAIM_KEY, key.line(call_request.call_id)), *written)
    if taken is None or not KeyClaim(*taken).is_taken:
        raise KeyTaken
    return answers[: len(lines)]


def _listed(call_request: CallRequest) -> list[Line]:
    if not call_request.as_task:
        return []
    return [(LIST, {"id": call_request.call_id, "agent_id": call_request.bearer.agent_id})]


async def _queue(runtime: Runtime, call_request: CallRequest, decision: Decision) -> SubmitResult:
    if found := await duplicates.find_undelivered(runtime, call_request):
        return found
    await find_room(runtime.call_runtime.pool, call_request.bearer.agent_id)
    made = opening(call_request, State.QUEUED, decision)
    start_within_s, made.start_within_s = made.start_within_s, UNCONFIRMED_S
    made.unconfirmed_s = NEVER_S
    try:
        *_used, opened = await _write(runtime, call_request, *_lines(call_request, made))
    except RecordUnavailable:
        # It may yet become durable. No worker takes it, since nobody confirms it.
        _take_back(runtime, _taken_back(made))
        raise
    if _is_used_up(call_request, _opened(opened)):
        return await _ask_people(runtime, call_request, decision)
    await _confirm(runtime, made.id, start_within_s)
    runtime.call_runtime.engine.notifier.notify("calls")
    dispatch.notify(made.id)
    return SubmitResult(made.id, State.QUEUED, reason=decision.reason)


async def _confirm(runtime: Runtime, call_id: UUID, start_within_s: int | None) -> None:
    """Workers may take it, since its agent is told of it. What is in the record is not taken
    back: if this is not written in time, it will be, or the call expires unsent."""
    line = {"id": call_id, "start_in_s": start_within_s or settings.START_WITHIN_S}
    confirmed = asyncio.ensure_future(
        runtime.call_runtime.journal.write((CONFIRM, line), within=None)
    )
    await asyncio.wait([confirmed], timeout=CONFIRM_S)
    confirmed.add_done_callback(_note_unconfirmed)


def _note_unconfirmed(confirmed: asyncio.Future[list[Row | None]]) -> None:
    if not confirmed.cancelled() and (error := confirmed.exception()):
        log.error("a call could not be confirmed, and expires: %s", error)


async def _run(runtime: Runtime, judged: Judged, call_listener: CallListener) -> SubmitResult:
    """Opened and sent in one commit, here and now."""
    call_request, tool, decision, snapshot = judged
    # What is guarded in the usual way, the record itself compares while it opens it.
    if (call_request.grant or not is_guarded(call_request)) and (
        found := await duplicates.find_undelivered(runtime, call_request)
    ):
        return found
    engine = runtime.call_runtime.engine
    lines = _running(judged, engine.owner)
    try:
        *_used, row = await _write(runtime, call_request, *lines)
    except RecordUnavailable:
        # It may yet become durable: then it must not stand there as if it had been sent.
        _take_back(runtime, _not_sent(call_request, _("The record was not in time.")))
        raise
    opened = _opened(row)
    if _is_used_up(call_request, opened):
        return await _ask_people(runtime, call_request, decision)
    if opened is None or not opened.is_open:
        return await _not_opened(runtime, call_request)
    if opened.names and isinstance(line := lines[-1][1], TemplateLine):
        line.template.learn(opened.names)
    if opened.generation != snapshot.generation:
        why = await _changed(runtime, call_request, tool)
        if why:
            return await _stop(runtime, call_request, why)

    execution_request = _sending(call_request, tool)
    ended: Answer | Unwritten | EarlyReply | None
    if call_request.may_reply_early:
        ended = await run_until_reply(runtime, execution_request, call_listener)
    else:
        ended = await engine.execute(execution_request, call_listener)
    return _result(runtime, call_request, decision, ended)


def _result(
    runtime: Runtime,
    call_request: CallRequest,
    decision: Decision,
    ended: Answer | Unwritten | EarlyReply | None,
) -> SubmitResult:
    call_id, reason = call_request.call_id, decision.reason
    match ended:
        case Answer():
            return SubmitResult(call_id, ended.state, ended, reason=reason)
        case None:
            # It is tried again, by a worker.
            return SubmitResult(call_id, State.QUEUED, reason=reason)
        case Unwritten():
            runtime.keep(ended.finish)
            ended = "unwritten"
    return SubmitResult(call_id, State.RUNNING, reason=reason, early_reply=ended)


async def _not_opened(runtime: Runtime, call_request: CallRequest) -> SubmitResult:
    """The same may have run before, and nobody knows that the agent heard of it."""
    found = await duplicates.find_undelivered(runtime, call_request)
    if found is None:
        raise KeyTaken
    return found


def _running(judged: Judged, owner: str) -> list[Line]:
    call_request, tool, decision, snapshot = judged
    if call_request.grant is not None:
        return _lines(call_request, opening(call_request, State.RUNNING, decision, owner=owner))
    return [snapshot.openings.line(call_request, tool, decision, owner)]


def _lines(call_request: CallRequest, opening: NewCall) -> list[Line]:
    lines: list[Line] = [(OPEN, opening.line())]
    if call_request.grant is not None:
        lines.insert(0, (USE, call_request.grant.use(opening.id, opening.arguments, opening.once)))
    return lines


def _opened(row: Row | None) -> OpenedCall | None:
    return OpenedCall(*row) if row else None


def _is_used_up(call_request: CallRequest, opened: OpenedCall | None) -> bool:
    """Others used the grant meanwhile, or somebody took it back: nothing was opened."""
    return call_request.grant is not None and not (opened and opened.is_open)


async def _ask_people(
    runtime: Runtime, call_request: CallRequest, decision: Decision
) -> SubmitResult:
    if call_request.grant is not None:
        (await runtime.fresh()).grants.note(call_request.grant)
    return await _hold(runtime, replace(call_request, grant=None), decision)


async def _changed(runtime: Runtime, call_request: CallRequest, tool: PublishedTool) -> str:
    """Configuration moved between the decision and the record: does the decision still hold?"""
    snapshot = await runtime.settled()
    now = snapshot.catalogue.tool(tool.tool_id)
    if not snapshot.tokens.holds(call_request.bearer):
        return _("The token was revoked.")
    if now is None or now.definition_id != tool.definition_id or now.connection != tool.connection:
        return _("The tool changed at this moment. List the tools again.")
    toolset = snapshot.catalogue.toolset(call_request.toolset.slug)
    if toolset is None or call_request.bearer.agent_id not in toolset.agents:
        return _("The toolset is no longer this agent's.")
    if toolset.how(tool) != call_request.toolset.how(tool):
        return _("The tool changed at this moment. List the tools again.")
    if frozen := snapshot.freezes.over(call_request.bearer.agent_id, tool.server_id):
        return frozen
    if not _may_run(call_request, await decide(runtime, snapshot, call_request, tool), snapshot):
        return _("Policy changed at this moment. Ask again.")
    return ""


def _may_run(call_request: CallRequest, decision: Decision, snapshot: Snapshot) -> bool:
    if call_request.grant is None or decision.effect != Effect.ASK:
        return decision.effect == Effect.ALLOW
    return snapshot.grants.holds(call_request.grant, decision)


async def _stop(runtime: Runtime, call_request: CallRequest, why: str) -> SubmitResult:
    await runtime.call_runtime.journal.write((MOVE, _not_sent(call_request, why)), within=None)
    answer = build_answer(call_request.call_id, State.FAILED, why, Executed.NO, None, None)
    return SubmitResult(call_request.call_id, State.FAILED, answer, reason=why)


def _take_back(runtime: Runtime, line: dict[str, Any]) -> None:
    """What comes into the record too late ends there as not sent, whenever it comes."""
    runtime.keep(_until_found(partial(_moved, runtime.call_runtime.journal, line)))


async def _until_found(take_back: Callable[[], Awaitable[bool | None]]) -> None:
    """It may be written by a connection that was given up, and later than we look."""
    for pause_s in TAKE_BACK_S:
        await asyncio.sleep(pause_s)
        if await take_back():
            return


async def _moved(journal: GroupCommit, line: dict[str, Any]) -> bool:
    (moved,) = await journal.write((MOVE, line), within=None)
    return moved is not None


async def _withdrawn(call_id: UUID) -> bool | None:
    """The same of a held call, with its approval."""
    return await wait.surely(lambda: asyncio.to_thread(_withdraw, call_id))


def _withdraw(call_id: UUID) -> bool:
    try:
        return withdraw_unconfirmed(call_id)
    finally:
        connection.close()


def _not_sent(call_request: CallRequest, why: str) -> dict[str, Any]:
    sentence = _("Not executed: %(why)s") % {"why": why}
    return ending(call_request.call_id, 1, Outcome(State.FAILED, sentence, Executed.NO), SYSTEM)


def _taken_back(opening: NewCall) -> dict[str, Any]:
    sentence = _("Its agent could not be told in time that it was recorded.")
    move = Move(opening.id, State.QUEUED, State.CANCELLED, SYSTEM, sentence, outcome=sentence)
    move.executed = Executed.NO
    return move.line()


def _sending(call_request: CallRequest, tool: PublishedTool) -> ExecutionRequest:
    return ExecutionRequest(
        call_id=call_request.call_id,
        fence=1,
        tool=tool,
        arguments=call_request.arguments or NO_ARGUMENTS,
        background=False,
        options=call_request.options,
        responses=call_request.responses,
        revision=call_request.revision,
        agent_id=call_request.bearer.agent_id,
    )


async def decide(
    runtime: Runtime, snapshot: Snapshot, call_request: CallRequest, tool: PublishedTool
) -> Decision:
    """What rules say; the call's history is read only if one of them asks for it."""
    asked = subject(call_request, tool)
    if snapshot.rules.backward and snapshot.rules.looks_back(asked):
        asked.history = await lookups.history(runtime, asked, but=call_request.call_id)
    return snapshot.rules.decide(asked)


def _sentence(violations: list[Violation]) -> str:
    first = violations[0]
    more = len(violations) - 1
    sentence = _("The arguments do not fit the schema: %(path)s: %(expected)s") % {
        "path": first.path or "/",
        "expected": first.expected,
    }
    return sentence + (_(" (and %(n)d more)") % {"n": more} if more else "")
