"""The one door. Every call, from whichever surface, comes to be here and nowhere else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from approvals.grants import USE
from approvals.services import ASK, asking
from audit.services import SYSTEM
from calls import dispatch
from calls.answers import answered
from calls.execution import Sending
from calls.hands import Hands
from calls.heard import Ear
from calls.listed import LIST
from calls.models import Call
from calls.opening import Opening
from calls.refusal import Again, Refusal, of_policy
from calls.repeats import ONCE
from calls.room import find_room
from calls.states import Executed, State
from calls.transitions import MOVE, OPEN, Move, Outcome, ending
from core.errors import RecordUnavailable, RecordUnsure
from core.journal import Line
from core.pipeline import Row
from gateway import earlier, lookups, running, wording
from gateway.asked import NO_ARGUMENTS, Ask, Submitted, fitted, is_guarded, once, subject
from gateway.opening import opening
from gateway.runtime import Runtime, Snapshot
from policies.decide import Decision
from policies.models import Effect
from registry.published import PublishedTool, Violation

# Until the same, which another process opens, can be read.
PAUSES_S = (0.0, 0.05, 0.2, 0.5)


class Taken(Exception):
    """What was asked for is another call, or is becoming one."""


async def submit(runtime: Runtime, ask: Ask, *, ear: Ear | None = None) -> Submitted:
    """Raises RecordUnavailable, with nothing sent, when the record cannot be written in time,
    and QueueFull, with nothing recorded, when too much waits already."""
    for pause_s in PAUSES_S:
        try:
            return await _submit(runtime, ask, ear or Ear())
        except Taken:
            # The same was opened elsewhere at this very moment: soon its row can be read.
            await asyncio.sleep(pause_s)
    raise RecordUnavailable(_("The same is being asked for right now. Nothing was sent."))


async def _submit(runtime: Runtime, ask: Ask, ear: Ear) -> Submitted:
    ask, differing = fitted(ask)
    if ask.key and (known := await earlier.first(runtime, ask)):
        return await _known(runtime, ask, known)
    tool = ask.tool
    if tool is None:
        return await _refuse(runtime, ask, "unknown_tool", _("There is no such tool."))

    violations = [*ask.wrong] or differing or tool.violations(ask.parsed)
    if violations:
        return await _refuse(runtime, ask, "invalid", _sentence(violations), violations)

    if ask.again:
        ask = replace(ask, repeats=await earlier.repeated(runtime, ask))
    snapshot = await runtime.fresh()
    frozen = snapshot.freezes.over(ask.bearer.agent_id, tool.server_id)
    if frozen:
        return await _refuse(runtime, ask, "frozen", frozen)
    decision = await decided(runtime, snapshot, ask, tool)
    if decision.effect == Effect.ASK and not ask.hold_for:
        ask = _granted(ask, tool, decision, snapshot)
    match decision.effect:
        case Effect.DENY:
            return await _refuse(runtime, ask, "policy", decision.reason, decision=decision)
        case Effect.ASK if ask.at_once and ask.grant is None:
            return await _refuse(runtime, ask, "policy", _at_once(decision), decision=decision)
        case Effect.ASK if ask.grant is None:
            return await _hold(runtime, ask, decision)
        case _ if ask.hold_for:
            asked = replace(decision, effect=Effect.ASK, reason=ask.hold_for)
            return await _hold(runtime, ask, asked)
        case _ if ask.background or tool.mode == Call.Mode.BACKGROUND:
            return await _queue(runtime, ask, decision)
        case _:
            return await _run(runtime, ask, tool, decision, snapshot, ear)


def _granted(ask: Ask, tool: PublishedTool, decision: Decision, snapshot: Snapshot) -> Ask:
    """The same, with the grant that answers for people, if there is one."""
    found = snapshot.grants.matching(subject(ask, tool), decision, ask.arguments or NO_ARGUMENTS)
    return replace(ask, grant=found) if found else ask


async def _refuse(
    runtime: Runtime,
    ask: Ask,
    refusal: str,
    reason: str,
    violations: list[Violation] | None = None,
    decision: Decision | None = None,
) -> Submitted:
    made = opening(ask, State.REFUSED, decision, reason=reason)
    # Of what its agent is told as an error there is no task.
    listed = [] if refusal in ("unknown_tool", "key") else _listed(ask)
    await runtime.hands.journal.write((OPEN, made.line()), *listed)
    runtime.hands.engine.bell.ring("calls")
    why = _why(refusal, decision)
    answer = answered(made.id, State.REFUSED, reason, Executed.NO, None, None, why)
    return Submitted(made.id, State.REFUSED, answer, False, refusal, reason, violations or [])


def _why(refusal: str, decision: Decision | None) -> Refusal:
    if decision is not None:
        return of_policy(decision.told, decision.instead, conditional=decision.conditional)
    return Refusal(refusal, Again.LATER if refusal == "frozen" else Again.CHANGED)


def _at_once(decision: Decision) -> str:
    said = _("This waits for no person: a rule has to allow it. %(why)s")
    return said % {"why": decision.reason}


async def _known(runtime: Runtime, ask: Ask, known: Submitted) -> Submitted:
    """What the agent's key stands for; refused if that is something else."""
    if known.refusal:
        return await _refuse(runtime, ask, known.refusal, known.reason)
    return known


async def _hold(runtime: Runtime, ask: Ask, decision: Decision) -> Submitted:
    """Waits for people; the same agent asking the same again joins what waits already."""
    if found := await earlier.guarded(runtime, ask) or await earlier.decided(runtime, ask):
        return found
    await find_room(runtime.hands.pool, ask.bearer.agent_id)
    while True:
        made = opening(ask, State.HELD, decision)
        lines = ((OPEN, made.line()), (ASK, asking(made.id, decision)))
        try:
            opened, _asked = await _write(runtime, ask, *lines)
        except RecordUnsure as error:
            raise RecordUnsure(wording.MAY_WAIT) from error
        if opened is not None and opened[1]:
            runtime.hands.engine.bell.ring("queue", quiet_s=0)
            runtime.hands.engine.bell.ring("calls")
            return Submitted(made.id, State.HELD, reason=decision.reason)
        waiting = await asyncio.to_thread(earlier.join_held, ask)
        if waiting is not None:
            return Submitted(waiting, State.HELD, joined=True, reason=decision.reason)


async def _write(runtime: Runtime, ask: Ask, *lines: Line) -> list[Row | None]:
    """A call's first lines, and with them its key: raises Taken if that is another call's."""
    key, journal = once(ask), runtime.hands.journal
    written = (*lines, *_listed(ask))
    if key is None:
        return (await journal.write(*written))[: len(lines)]
    taken, *answers = await journal.write((ONCE, key.line(ask.call_id)), *written)
    if not (taken and taken[1]):
        raise Taken
    return answers[: len(lines)]


def _listed(ask: Ask) -> list[Line]:
    if not ask.as_task:
        return []
    return [(LIST, {"id": ask.call_id, "agent_id": ask.bearer.agent_id})]


async def _queue(runtime: Runtime, ask: Ask, decision: Decision) -> Submitted:
    if found := await earlier.guarded(runtime, ask):
        return found
    await find_room(runtime.hands.pool, ask.bearer.agent_id)
    made = opening(ask, State.QUEUED, decision)
    try:
        answers = await _write(runtime, ask, *_lines(ask, made))
    except RecordUnsure as error:
        # A worker may be quicker than this, so nobody is told that nothing was sent.
        runtime.hands.journal.write_later((MOVE, _taken_back(made)))
        raise RecordUnsure(wording.UNSURE) from error
    if _is_used_up(ask, answers):
        return await _ask_people(runtime, ask, decision)
    runtime.hands.engine.bell.ring("calls")
    await asyncio.to_thread(dispatch.ring, made.id)
    return Submitted(made.id, State.QUEUED, reason=decision.reason)


async def _run(
    runtime: Runtime,
    ask: Ask,
    tool: PublishedTool,
    decision: Decision,
    snapshot: Snapshot,
    ear: Ear,
) -> Submitted:
    """Opened and sent in one commit, here and now."""
    # What is guarded in the usual way, the record itself compares while it opens it.
    if (ask.grant or not is_guarded(ask)) and (found := await earlier.guarded(runtime, ask)):
        return found
    hands = runtime.hands
    try:
        answers = await _write(runtime, ask, *_running(ask, tool, decision, snapshot, hands))
    except RecordUnavailable:
        # It may yet become durable: then it must not stand there as if it had been sent.
        hands.journal.write_later((MOVE, _not_sent(ask, _("The record was not in time."))))
        raise
    if _is_used_up(ask, answers):
        return await _ask_people(runtime, ask, decision)
    opened = answers[-1]
    if opened is None or not opened[1]:
        return await _not_opened(runtime, ask)
    if opened[2] != snapshot.generation:
        why = await _changed(runtime, ask, tool)
        if why:
            return await _stop(runtime, ask, why)
    answer, turned = await running.run(runtime, _sending(ask, tool), ear, ask.may_turn)
    if turned is not None:
        return Submitted(ask.call_id, State.RUNNING, reason=decision.reason, turned=turned)
    # No answer yet: it is tried again, by a worker.
    state = State.QUEUED if answer is None else answer.state
    return Submitted(ask.call_id, state, answer, reason=decision.reason)


async def _not_opened(runtime: Runtime, ask: Ask) -> Submitted:
    """The same may have run before, and nobody knows that the agent heard of it."""
    found = await earlier.guarded(runtime, ask)
    if found is None:
        raise Taken
    return found


def _running(
    ask: Ask, tool: PublishedTool, decision: Decision, snapshot: Snapshot, hands: Hands
) -> list[Line]:
    owner = hands.engine.owner
    if ask.grant is not None:
        return _lines(ask, opening(ask, State.RUNNING, decision, owner=owner))
    return [(OPEN, snapshot.openings.line(ask, tool, decision, owner))]


def _lines(ask: Ask, opening: Opening) -> list[Line]:
    lines: list[Line] = [(OPEN, opening.line())]
    if ask.grant is not None:
        lines.insert(0, (USE, ask.grant.use(opening.id, opening.arguments, opening.once)))
    return lines


def _is_used_up(ask: Ask, answers: list[Row | None]) -> bool:
    """Others used the grant meanwhile, or somebody took it back: nothing was opened."""
    return ask.grant is not None and not (answers[-1] and answers[-1][1])


async def _ask_people(runtime: Runtime, ask: Ask, decision: Decision) -> Submitted:
    if ask.grant is not None:
        (await runtime.fresh()).grants.note(ask.grant)
    return await _hold(runtime, replace(ask, grant=None), decision)


async def _changed(runtime: Runtime, ask: Ask, tool: PublishedTool) -> str:
    """Configuration moved between the decision and the record: does the decision still hold?"""
    snapshot = await runtime.newest()
    now = snapshot.catalogue.tool(tool.tool_id)
    if not snapshot.tokens.holds(ask.bearer):
        return _("The token was revoked.")
    if now is None or now.definition_id != tool.definition_id or now.connection != tool.connection:
        return _("The tool changed at this moment. List the tools again.")
    if frozen := snapshot.freezes.over(ask.bearer.agent_id, tool.server_id):
        return frozen
    if not _may_run(ask, await decided(runtime, snapshot, ask, tool), snapshot):
        return _("Policy changed at this moment. Ask again.")
    return ""


def _may_run(ask: Ask, decision: Decision, snapshot: Snapshot) -> bool:
    if ask.grant is None or decision.effect != Effect.ASK:
        return decision.effect == Effect.ALLOW
    return snapshot.grants.holds(ask.grant, decision)


async def _stop(runtime: Runtime, ask: Ask, why: str) -> Submitted:
    await runtime.hands.journal.write((MOVE, _not_sent(ask, why)), within=None)
    answer = answered(ask.call_id, State.FAILED, why, Executed.NO, None, None)
    return Submitted(ask.call_id, State.FAILED, answer, reason=why)


def _not_sent(ask: Ask, why: str) -> dict[str, Any]:
    sentence = _("Not executed: %(why)s") % {"why": why}
    return ending(ask.call_id, 1, Outcome(State.FAILED, sentence, Executed.NO), SYSTEM)


def _taken_back(opening: Opening) -> dict[str, Any]:
    sentence = _("Its agent could not be told in time that it was recorded.")
    move = Move(opening.id, State.QUEUED, State.CANCELLED, SYSTEM, sentence, outcome=sentence)
    move.executed = Executed.NO
    return move.line()


def _sending(ask: Ask, tool: PublishedTool) -> Sending:
    return Sending(
        call_id=ask.call_id,
        fence=1,
        tool=tool,
        arguments=ask.arguments or NO_ARGUMENTS,
        background=False,
        abilities=ask.abilities,
        takes_tasks=ask.takes_tasks,
        responses=ask.responses,
        revision=ask.revision,
        log_level=ask.log_level,
        session=ask.session,
        trace=ask.trace,
    )


async def decided(runtime: Runtime, snapshot: Snapshot, ask: Ask, tool: PublishedTool) -> Decision:
    """What rules say; the call's history is read only if one of them asks for it."""
    asked = subject(ask, tool)
    if snapshot.rules.looks_back(asked):
        asked.history = await lookups.history(runtime, asked, but=ask.call_id)
    return snapshot.rules.decide(asked)


def _sentence(violations: list[Violation]) -> str:
    first = violations[0]
    more = len(violations) - 1
    sentence = _("The arguments do not fit the schema: %(path)s: %(expected)s") % {
        "path": first.path or "/",
        "expected": first.expected,
    }
    return sentence + (_(" (and %(n)d more)") % {"n": more} if more else "")
