"""The one door: every call, from whichever surface, is created here and nowhere else."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from approvals.grants import USE, StandingGrant
from approvals.services import ASK, approval_line
from calls import dispatch
from calls.content.answers import Answer, build_answer
from calls.models import Call
from calls.queue.queue_limits import QueueFull, find_room
from calls.record.idempotency import CLAIM_KEY, KeyClaim
from calls.record.new_call import NewCall, OpenedCall
from calls.record.states import Executed, State
from calls.record.transitions import CONFIRM, MOVE, OPEN
from calls.running.execution import ExecutionRequest, Unwritten
from calls.running.listeners import NO_LISTENER, CallListener, EarlyReply
from core import figures, telemetry
from core.english import gettext as _
from core.errors import RecordUnavailable
from core.journal import Line
from core.pipeline import Row
from gateway.call_request import (
    NO_ARGUMENTS,
    CallRequest,
    SubmitResult,
    claimed_key,
    is_guarded,
    owner_for,
    subject,
    with_fixed_arguments,
)
from gateway.process.new_call_cache import TemplateLine, make_new_call
from gateway.process.runtime import Runtime, Snapshot
from gateway.submit import duplicates, limits, lookups
from gateway.submit.limits import AtLimit
from gateway.submit.named_tools import is_denied
from gateway.submit.refuse import (
    SIGN_IN,
    UNKNOWN,
    limit_refusal,
    needs_approval,
    no_such_tool,
    refuse,
    task_lines,
    violation_sentence,
)
from gateway.submit.run import run_until_reply
from gateway.submit.take_back import not_sent, take_back, taken_back, until_found, withdrawn
from gateway.submit.token_scope import why_outside
from policies.decide import Decision
from policies.limits.costs import result_costs
from policies.models import Effect, LimitEffect
from registry.connections import SHARED
from registry.publishing.published_tools import PublishedTool, Violation

log = logging.getLogger(__name__)

# Backoff while another process commits the same idempotency key.
PAUSES_S = (0.0, 0.05, 0.2, 0.5)
# A queued call that nobody confirms expires after so long; a held one, by approvals.services.
UNCONFIRMED_S = 30
NEVER_S = 10 * 365 * 86400.0
CONFIRM_S = 1.0


class KeyTaken(Exception):
    """Another call holds the idempotency key, or is about to."""


class Judged(NamedTuple):
    """A call request with the decision on it, and the snapshot that it was made with."""

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
    # Once it is judged, with what it took of rates.
    metered = call_request
    began = time.monotonic()
    try:
        judged = await _judge(runtime, call_request)
        figures.DECIDE.note(time.monotonic() - began)
        if isinstance(judged, SubmitResult):
            result = judged
        else:
            metered = judged.call_request
            result = await _start_call(runtime, judged, call_listener)
        if result.joined:
            limits.give_back(runtime, metered)
            if result.state == State.HELD:
                # Whoever was turned away before hears of it now.
                await _confirm(runtime, result.call_id, None)
        elif metered.warnings:
            result.warnings = tuple(metered.warnings)
        figures.SUBMIT.note(time.monotonic() - began)
        if telemetry.is_on:
            telemetry.note_call(result.call_id, result.state)
        return result
    except RecordUnavailable as error:
        error.call_id = call_request.call_id
        raise
    except AtLimit as at:
        return await _at_limit(runtime, at, call_listener)
    except QueueFull:
        limits.give_back(runtime, metered)
        raise
    except KeyTaken:
        limits.give_back(runtime, metered)
        if not pauses_s:
            sentence = _("The same is being asked for right now. Nothing was sent.")
            raise RecordUnavailable(sentence, call_id=call_request.call_id) from None
    # The same was opened elsewhere at this very moment: soon its row can be read.
    await asyncio.sleep(pauses_s[0])
    call_request = limits.unmetered(call_request)
    return await submit(runtime, call_request, call_listener=call_listener, pauses_s=pauses_s[1:])


def _start_call(
    runtime: Runtime, judged: Judged, call_listener: CallListener
) -> Awaitable[SubmitResult]:
    """Not a coroutine of its own: each costs every call."""
    if judged.needs_people:
        return _hold(runtime, judged.call_request, judged.decision)
    if judged.call_request.background or judged.tool.mode == Call.Mode.BACKGROUND:
        return _queue(runtime, judged.call_request, judged.decision)
    return _run(runtime, judged, call_listener)


async def _judge(runtime: Runtime, call_request: CallRequest) -> Judged | SubmitResult:
    """Checks the request step by step. Returns a result where one of them already has it: an
    earlier call, or a refusal."""
    call_request, differing = with_fixed_arguments(call_request)
    bearer, tool = call_request.bearer, call_request.tool
    is_limited = bearer.toolsets or bearer.reads_only
    # Before a key is looked for: what it stands for may be outside, too.
    if is_limited and (outside := why_outside(bearer, call_request.toolset, tool)):
        return await refuse(runtime, call_request, "scope", outside)
    if call_request.key and (known := await duplicates.find_by_key(runtime, call_request)):
        return await _earlier_result(runtime, call_request, known)
    if tool is None:
        return await refuse(runtime, call_request, UNKNOWN, no_such_tool())

    violations = (
        [*call_request.extra_violations] or differing or tool.shape.violations(call_request.parsed)
    )
    if violations:
        return await _refuse_invalid(runtime, call_request, tool, violations)

    if call_request.allow_duplicate:
        duplicate_of = await duplicates.find_repeated(runtime, call_request)
        call_request = call_request._replace(duplicate_of=duplicate_of)
    return await _judge_by_rules(runtime, call_request, tool)


async def _refuse_invalid(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool, violations: list[Violation]
) -> SubmitResult:
    """An agent that is denied the tool whatever the arguments learns nothing of them."""
    snapshot = await runtime.fresh()
    if is_denied(snapshot.rules, call_request.bearer, call_request.toolset, tool):
        without = call_request._replace(parsed={}, arguments=NO_ARGUMENTS)
        decision = await decide(runtime, snapshot, without, tool)
        return await refuse(runtime, call_request, "policy", decision.reason, decision=decision)
    sentence = violation_sentence(violations)
    return await refuse(runtime, call_request, "invalid", sentence, violations)


async def _judge_by_rules(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool
) -> Judged | SubmitResult:
    """Checks emergency stops, rules, limits and standing approvals, in this order."""
    snapshot = await runtime.fresh()
    freezes, agent_id = snapshot.freezes, call_request.bearer.agent_id
    if not freezes.is_empty and (frozen := freezes.over(agent_id, tool.server_id)):
        return await refuse(runtime, call_request, "frozen", frozen)

    decision = await decide(runtime, snapshot, call_request, tool)
    if decision.effect == Effect.DENY:
        return await refuse(runtime, call_request, "policy", decision.reason, decision=decision)
    if tool.connection.signs_in:
        credential = await _credential(runtime, call_request, tool)
        if credential is None:
            return await _missing(runtime, call_request, tool)
        call_request = call_request._replace(credential=credential)
    # None: whether a limit covers the call is not known yet.
    if snapshot.limits.limits and snapshot.limits.known.get((agent_id, tool.definition_id)) != ():
        call_request = await limits.meter(runtime, snapshot.limits, call_request, tool)
        if call_request.over:
            decision = over_limit(decision, call_request.over)
    if decision.effect == Effect.ASK and not (call_request.hold_for or call_request.over):
        call_request = _granted(call_request, tool, decision, snapshot)
    elif decision.effect == Effect.ALLOW and call_request.hold_for:
        decision = replace(decision, effect=Effect.ASK, reason=call_request.hold_for)
    judged = Judged(call_request, tool, decision, snapshot)
    if not call_request.may_hold and judged.needs_people:
        reason = needs_approval(decision)
        limits.give_back(runtime, call_request)
        return await refuse(runtime, call_request, "policy", reason, decision=decision)
    return judged


async def _credential(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool
) -> dict[str, Any] | None:
    credentials = runtime.call_runtime.engine.credentials
    owner = owner_for(call_request.bearer, tool.connection)
    return await credentials.facts(tool.connection, owner)


async def _missing(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool
) -> SubmitResult:
    """A call that no credential is there for is not even put to people."""
    credentials = runtime.call_runtime.engine.credentials
    owner = owner_for(call_request.bearer, tool.connection)
    missing = await credentials.missing(tool.connection, owner)
    result = await refuse(runtime, call_request, SIGN_IN, str(missing))
    assert result.answer is not None
    return replace(result, answer=replace(result.answer, consent_page=missing.page))


def _granted(
    call_request: CallRequest, tool: PublishedTool, decision: Decision, snapshot: Snapshot
) -> CallRequest:
    """Adds the standing approval that covers the call, if there is one."""
    arguments, bearer = call_request.arguments or NO_ARGUMENTS, call_request.bearer
    found = snapshot.grants.matching(
        subject(call_request, tool), decision, arguments, bearer.parties, bearer.inviters
    )
    return call_request._replace(grant=found) if found else call_request


def over_limit(decision: Decision, over: str) -> Decision:
    """People are asked about the limit, and about what rules ask for."""
    why = f"{over} {decision.reason}" if decision.effect == Effect.ASK else over
    return replace(decision, effect=Effect.ASK, reason=why)


async def _at_limit(runtime: Runtime, at: AtLimit, call_listener: CallListener) -> SubmitResult:
    """Refused, or put to people; of a flood of refusals only the first is recorded."""
    call_request, reached = at.call_request, at.reached
    if reached.limit.effect == LimitEffect.ASK and not reached.why:
        call_request = limits.put_to_people(call_request, reached)
        return await submit(runtime, call_request, call_listener=call_listener)
    limits.give_back(runtime, call_request)
    known = await runtime.limit_windows.refuse(
        reached,
        limits.blocked_call(call_request),
        partial(refuse, runtime, call_request, "limit", reached.sentence, reached=reached),
    )
    # A task is made of the call that stands for it.
    joined = call_request.as_task and known != call_request.call_id
    return replace(limit_refusal(known, reached), joined=joined)


async def _earlier_result(
    runtime: Runtime, call_request: CallRequest, known: SubmitResult
) -> SubmitResult:
    """The call that the agent's key stands for; refused if its tool or arguments differ."""
    if known.refusal:
        return await refuse(runtime, call_request, known.refusal, known.reason)
    return known


async def _hold(runtime: Runtime, call_request: CallRequest, decision: Decision) -> SubmitResult:
    """Waits for people; the same agent asking the same again joins what waits already."""
    if found := await duplicates.find_undelivered(
        runtime, call_request
    ) or await duplicates.find_decided(runtime, call_request):
        return found
    await find_room(runtime.call_runtime.pool, call_request.bearer.agent_id)
    if call_request.uses:
        call_request = limits.while_held(call_request)
    while True:
        made = make_new_call(call_request, State.HELD, decision)
        made.unconfirmed_s = NEVER_S
        lines = ((OPEN, made.line()), (ASK, approval_line(made.id, decision)))
        try:
            opened, _asked = await _write(runtime, call_request, *lines)
        except RecordUnavailable:
            # It may yet become durable. Nobody decides on it, since nobody confirms it.
            runtime.keep(until_found(partial(withdrawn, made.id)))
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
    written = (*lines, *task_lines(call_request)) if call_request.as_task else lines
    if call_request.uses:
        written = (*limits.lines(call_request), *written)
    began = time.monotonic()
    if key is None:
        answers = await journal.write(*written)
    else:
        taken, *answers = await journal.write((CLAIM_KEY, key.line(call_request.call_id)), *written)
        if taken is None or not KeyClaim(*taken).is_taken:
            raise KeyTaken
    figures.OPEN.note(time.monotonic() - began)
    if call_request.uses:
        reserved, *answers = answers
        limits.check_reserved(runtime, call_request, reserved)
    return answers[: len(lines)]


async def _queue(runtime: Runtime, call_request: CallRequest, decision: Decision) -> SubmitResult:
    if found := await duplicates.find_undelivered(runtime, call_request):
        return found
    await find_room(runtime.call_runtime.pool, call_request.bearer.agent_id)
    made = make_new_call(call_request, State.QUEUED, decision)
    start_within_s, made.start_within_s = made.start_within_s, UNCONFIRMED_S
    made.unconfirmed_s = NEVER_S
    try:
        *_used, opened = await _write(runtime, call_request, *_lines(call_request, made))
    except RecordUnavailable:
        # It may yet become durable. No worker takes it, since nobody confirms it.
        take_back(runtime, taken_back(made))
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
    lines = _opening_lines(judged, engine.owner)
    try:
        *_used, row = await _write(runtime, call_request, *lines)
    except RecordUnavailable:
        # It may yet become durable: then it must not stand there as if it had been sent.
        take_back(runtime, not_sent(call_request, _("The record was not in time.")))
        raise
    opened = _opened(row)
    if _is_used_up(call_request, opened):
        return await _ask_people(runtime, call_request, decision)
    if opened is None or not opened.is_open:
        return await _not_opened(runtime, call_request)
    if opened.names and isinstance(line := lines[-1][1], TemplateLine):
        line.template.learn(opened.names)
    sent = tool.with_results(decision.results) if decision.results else tool
    if opened.generation != snapshot.generation:
        judged_anew = await _judge_anew(runtime, call_request, tool)
        if isinstance(judged_anew, str):
            return await _stop(runtime, call_request, judged_anew)
        sent = judged_anew

    execution_request = _sending(call_request, sent)
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


def _opening_lines(judged: Judged, owner: str) -> list[Line]:
    call_request, tool, decision, snapshot = judged
    if call_request.grant is not None:
        return _lines(
            call_request, make_new_call(call_request, State.RUNNING, decision, owner=owner)
        )
    return [snapshot.openings.line(call_request, tool, decision, owner)]


def _lines(call_request: CallRequest, new_call: NewCall) -> list[Line]:
    lines: list[Line] = [(OPEN, new_call.line())]
    if call_request.grant is not None:
        lines.insert(0, (USE, _use(call_request.grant, new_call)))
    return lines


def _use(grant: StandingGrant, new_call: NewCall) -> dict[str, Any]:
    return grant.use(new_call.id, new_call.arguments, new_call.once, reserves=new_call.reserves)


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
    return await _hold(runtime, call_request._replace(grant=None), decision)


async def _judge_anew(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool
) -> PublishedTool | str:
    """Configuration moved between the decision and the record: the tool now, with what rules demand
    for its results, or why the call may no longer run."""
    snapshot = await runtime.settled()
    now = snapshot.catalogue.tool(tool.tool_id)
    if not snapshot.tokens.holds(call_request.bearer):
        return _("The token was revoked.")
    if now is None or now.definition_id != tool.definition_id or now.connection != tool.connection:
        return _("The tool changed at this moment. List the tools again.")
    toolset = snapshot.catalogue.toolset(call_request.toolset.slug)
    if toolset is None or call_request.bearer.agent_id not in toolset.agents:
        return _("The toolset is no longer this agent's.")
    if toolset.override_for(tool) != call_request.toolset.override_for(tool):
        return _("The tool changed at this moment. List the tools again.")
    if frozen := snapshot.freezes.over(call_request.bearer.agent_id, tool.server_id):
        return frozen
    decision = await decide(runtime, snapshot, call_request, now)
    if not _may_run(call_request, decision, snapshot):
        return _("Policy changed at this moment. Ask again.")
    return now.with_results(decision.results)


def _may_run(call_request: CallRequest, decision: Decision, snapshot: Snapshot) -> bool:
    if call_request.grant is None or decision.effect != Effect.ASK:
        return decision.effect == Effect.ALLOW
    return snapshot.grants.holds(call_request.grant, decision)


async def _stop(runtime: Runtime, call_request: CallRequest, why: str) -> SubmitResult:
    await runtime.call_runtime.journal.write((MOVE, not_sent(call_request, why)), within=None)
    answer = build_answer(call_request.call_id, State.FAILED, why, Executed.NO, None, None)
    return SubmitResult(call_request.call_id, State.FAILED, answer, reason=why)


def _sending(call_request: CallRequest, tool: PublishedTool) -> ExecutionRequest:
    exact = call_request.exact
    return ExecutionRequest(
        call_id=call_request.call_id,
        fence=1,
        tool=tool,
        arguments=call_request.arguments or NO_ARGUMENTS,
        background=False,
        claimed_at=time.monotonic(),
        options=call_request.options,
        responses=call_request.responses,
        revision=call_request.revision,
        agent_id=call_request.bearer.agent_id,
        # Not asked of a shared one: each function costs every call.
        credential_owner=owner_for(call_request.bearer, tool.connection)
        if tool.connection.credential_of
        else SHARED,
        costs=result_costs(limit for limit, _key in exact) if exact else (),
    )


async def decide(
    runtime: Runtime, snapshot: Snapshot, call_request: CallRequest, tool: PublishedTool
) -> Decision:
    """The decision of the rules; what was before is read only if one of them needs it."""
    asked = subject(call_request, tool)
    if snapshot.rules.backward:
        await lookups.look_back(runtime, snapshot.rules, asked, but=call_request.call_id)
    return snapshot.rules.decide(asked)
