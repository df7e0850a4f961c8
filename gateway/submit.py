"""The one door. Every call, from whichever surface, comes to be here and nowhere else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils.translation import gettext as _

from accounts.tokens import Bearer
from approvals.grants import USE, StandingGrant
from approvals.services import ASK, asking
from audit.services import SYSTEM, Actor, record
from calls import dispatch
from calls.answers import Answer, answered
from calls.execution import Sending
from calls.models import Call
from calls.opening import Opening, digest
from calls.progress import OnStep
from calls.room import find_room
from calls.statements import statement
from calls.states import Executed, State
from calls.transitions import MOVE, OPEN, Move, Outcome, ending
from core.errors import RecordUnavailable, RecordUnsure
from core.ids import uuid7
from core.journal import Line, Row
from gateway import lookups
from gateway.runtime import Runtime, Snapshot
from policies.decide import Decision, Subject
from policies.models import Effect
from registry.published import PublishedTool, PublishedToolset, Violation

NO_ARGUMENTS = b"{}"
NAME_MAX = 200
_UNSURE = (
    "Whether the call was recorded is not known. It is taken back as soon as possible, and until "
    "then it may have been executed: look before you ask again."
)


@dataclass(frozen=True, slots=True)
class Ask:
    """What an agent asks for, parsed and not yet judged. `tool` is None for an unknown one."""

    bearer: Bearer
    toolset: PublishedToolset
    tool: PublishedTool | None
    tool_name: str
    arguments: bytes
    parsed: Any
    origin: str
    revision: str = ""
    client: str = ""
    request_key: str = ""
    # Set by surfaces that may not run calls themselves, such as commands that end at once.
    background: bool = False
    # Why people are to decide even where rules would allow it.
    hold_for: str = ""
    # A person's yes in advance, which lets it run where rules ask.
    grant: StandingGrant | None = None
    # Known beforehand, so that whoever asks can cancel while it is still being answered.
    call_id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True)
class Submitted:
    """`answer` once the call has ended.

    `refusal`: "", "unknown_tool", "invalid", "frozen" or "policy".
    """

    call_id: UUID
    state: State
    answer: Answer | None = None
    joined: bool = False
    refusal: str = ""
    reason: str = ""
    violations: list[Violation] = field(default_factory=list)


async def submit(runtime: Runtime, ask: Ask, *, on_step: OnStep | None = None) -> Submitted:
    """Raises RecordUnavailable, with nothing sent, when the record cannot be written in time,
    and QueueFull, with nothing recorded, when too much waits already."""
    tool = ask.tool
    if tool is None:
        return await _refuse(runtime, ask, "unknown_tool", _("There is no such tool."))

    violations = tool.violations(ask.parsed)
    if violations:
        return await _refuse(runtime, ask, "invalid", _sentence(violations), violations)

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
        case Effect.ASK if ask.grant is None:
            return await _hold(runtime, ask, decision)
        case _ if ask.hold_for:
            asked = replace(decision, effect=Effect.ASK, reason=ask.hold_for)
            return await _hold(runtime, ask, asked)
        case _ if ask.background or tool.mode == Call.Mode.BACKGROUND:
            return await _queue(runtime, ask, decision)
        case _:
            return await _run(runtime, ask, tool, decision, snapshot, on_step)


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
    opening = _opening(ask, State.REFUSED, decision, reason=reason)
    await runtime.hands.journal.write((OPEN, opening.line()))
    runtime.hands.engine.bell.ring("calls")
    answer = answered(opening.id, State.REFUSED, reason, Executed.NO, None, None)
    return Submitted(opening.id, State.REFUSED, answer, False, refusal, reason, violations or [])


async def _hold(runtime: Runtime, ask: Ask, decision: Decision) -> Submitted:
    """Waits for people; the same agent asking the same again joins what waits already."""
    await find_room(runtime.hands.pool, ask.bearer.agent_id)
    while True:
        opening = _opening(ask, State.HELD, decision)
        line = asking(opening.id, decision)
        opened, _asked = await runtime.hands.journal.write((OPEN, opening.line()), (ASK, line))
        if opened is not None and opened[1]:
            runtime.hands.engine.bell.ring("queue", quiet_s=0)
            runtime.hands.engine.bell.ring("calls")
            return Submitted(opening.id, State.HELD, reason=decision.reason)
        waiting = await asyncio.to_thread(_join, ask, opening.arguments)
        if waiting is not None:
            return Submitted(waiting, State.HELD, joined=True, reason=decision.reason)


def _join(ask: Ask, arguments: bytes) -> UUID | None:
    """The call that waits already; None if it was decided in this very moment."""
    assert ask.tool is not None
    try:
        call = Call.objects.filter(
            agent_id=ask.bearer.agent_id,
            tool_id=ask.tool.tool_id,
            arguments_digest=digest(arguments),
            state=State.HELD,
        ).first()
        if call is None:
            return None
        record(
            "call.joined",
            actor=Actor("agent", ask.bearer.agent_id, ask.bearer.agent_name),
            call_id=call.pk,
            agent=(ask.bearer.agent_id, ask.bearer.agent_name),
            server=ask.tool.server_slug,
            tool=call.tool_name,
        )
        return call.pk
    finally:
        connection.close()


async def _queue(runtime: Runtime, ask: Ask, decision: Decision) -> Submitted:
    await find_room(runtime.hands.pool, ask.bearer.agent_id)
    opening = _opening(ask, State.QUEUED, decision)
    try:
        answers = await runtime.hands.journal.write(*_lines(ask, opening))
    except RecordUnsure as error:
        # A worker may be quicker than this, so nobody is told that nothing was sent.
        runtime.hands.journal.write_later((MOVE, _taken_back(opening)))
        raise RecordUnsure(_UNSURE) from error
    if _is_used_up(ask, answers):
        return await _ask_people(runtime, ask, decision)
    runtime.hands.engine.bell.ring("calls")
    await asyncio.to_thread(dispatch.ring, opening.id)
    return Submitted(opening.id, State.QUEUED, reason=decision.reason)


async def _run(
    runtime: Runtime,
    ask: Ask,
    tool: PublishedTool,
    decision: Decision,
    snapshot: Snapshot,
    on_step: OnStep | None,
) -> Submitted:
    """Opened and sent in one commit, here and now."""
    hands = runtime.hands
    opening = _opening(ask, State.RUNNING, decision, owner=hands.engine.owner)
    try:
        answers = await hands.journal.write(*_lines(ask, opening))
    except RecordUnavailable:
        # It may yet become durable: then it must not stand there as if it had been sent.
        hands.journal.write_later((MOVE, _not_sent(opening, _("The record was not in time."))))
        raise
    if _is_used_up(ask, answers):
        return await _ask_people(runtime, ask, decision)
    opened = answers[-1]
    if opened is not None and opened[2] != snapshot.generation:
        why = await _changed(runtime, ask, tool)
        if why:
            return await _stop(runtime, opening, why)
    answer = await hands.engine.execute(_sending(opening, tool), on_step)
    # No answer yet: it is tried again, by a worker.
    state = State.QUEUED if answer is None else answer.state
    return Submitted(opening.id, state, answer, reason=decision.reason)


def _lines(ask: Ask, opening: Opening) -> list[Line]:
    lines: list[Line] = [(OPEN, opening.line())]
    if ask.grant is not None:
        lines.insert(0, (USE, ask.grant.use(opening.id, opening.arguments)))
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


async def _stop(runtime: Runtime, opening: Opening, why: str) -> Submitted:
    await runtime.hands.journal.write((MOVE, _not_sent(opening, why)), within=None)
    answer = answered(opening.id, State.FAILED, why, Executed.NO, None, None)
    return Submitted(opening.id, State.FAILED, answer, reason=why)


def _not_sent(opening: Opening, why: str) -> dict[str, Any]:
    sentence = _("Not executed: %(why)s") % {"why": why}
    return ending(opening.id, 1, Outcome(State.FAILED, sentence, Executed.NO), SYSTEM)


def _taken_back(opening: Opening) -> dict[str, Any]:
    sentence = _("Its agent could not be told in time that it was recorded.")
    move = Move(opening.id, State.QUEUED, State.CANCELLED, SYSTEM, sentence, outcome=sentence)
    move.executed = Executed.NO
    return move.line()


def _sending(opening: Opening, tool: PublishedTool) -> Sending:
    return Sending(
        call_id=opening.id,
        fence=1,
        tool=tool,
        arguments=opening.arguments,
        background=False,
    )


async def decided(runtime: Runtime, snapshot: Snapshot, ask: Ask, tool: PublishedTool) -> Decision:
    """What rules say; the call's history is read only if one of them asks for it."""
    asked = subject(ask, tool)
    if snapshot.rules.looks_back(asked):
        asked.history = await lookups.history(runtime, asked, but=ask.call_id)
    return snapshot.rules.decide(asked)


def subject(ask: Ask, tool: PublishedTool) -> Subject:
    return Subject(
        agent_id=ask.bearer.agent_id,
        agent=ask.bearer.agent_name,
        groups=ask.bearer.groups,
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=ask.bearer.person_name,
        arguments=ask.parsed,
        size=len(ask.arguments),
        exposed=tool.exposed_name,
        tags=tool.tags,
    )


def _opening(
    ask: Ask, state: State, decision: Decision | None, *, reason: str = "", owner: str = ""
) -> Opening:
    tool = ask.tool
    inline = state == State.RUNNING
    return Opening(
        id=ask.call_id,
        agent_id=ask.bearer.agent_id,
        agent=ask.bearer.agent_name,
        token_id=ask.bearer.token_id or None,
        person_id=ask.bearer.person_id,
        person=ask.bearer.person_name,
        toolset=ask.toolset.slug,
        server_id=tool.server_id if tool else None,
        server=tool.server_slug if tool else "",
        tool_id=tool.tool_id if tool else None,
        definition_id=tool.definition_id if tool else None,
        definition_digest=tool.digest if tool else "",
        tool_name=_storable(tool.exposed_name if tool else ask.tool_name)[:NAME_MAX],
        arguments=ask.arguments or NO_ARGUMENTS,
        origin=ask.origin,
        mode=Call.Mode.INLINE if inline else Call.Mode.BACKGROUND,
        effect=decision.effect if decision else "",
        rule_id=decision.rule_id if decision else None,
        rule=decision.rule if decision else "",
        reason=reason or _reason(ask, decision),
        state=state,
        outcome=reason if state == State.REFUSED else "",
        revision=ask.revision,
        client=_storable(ask.client)[:NAME_MAX],
        request_key=ask.request_key,
        lease_owner=owner,
        details=_details(ask, decision),
        grant_id=ask.grant.id if ask.grant else None,
        statement=_statement(ask) if state in (State.HELD, State.QUEUED) else "",
        decide_within_s=decision.decide_within_s if decision else None,
        start_within_s=decision.start_within_s if decision else None,
    )


def _details(ask: Ask, decision: Decision | None) -> dict[str, Any]:
    details: dict[str, Any] = {"would": decision.would} if decision and decision.would else {}
    if ask.grant is not None:
        details |= {"grant": ask.grant.id, "granted_by": ask.grant.owner}
    return details


def _reason(ask: Ask, decision: Decision | None) -> str:
    if ask.grant is not None:
        said = _("Granted by %(who)s in advance (grant %(id)d).")
        return said % {"who": ask.grant.owner, "id": ask.grant.id}
    return decision.reason if decision else ""


def _statement(ask: Ask) -> str:
    assert ask.tool is not None
    return statement(
        agent=(ask.bearer.agent_id, ask.bearer.agent_name),
        person=(ask.bearer.person_id, ask.bearer.person_name),
        tool=ask.tool,
        arguments=ask.arguments or NO_ARGUMENTS,
    )


def _storable(text: str) -> str:
    """What an agent says of itself, fit for a text column."""
    return text.replace("\0", "�").encode(errors="replace").decode()


def _sentence(violations: list[Violation]) -> str:
    first = violations[0]
    more = len(violations) - 1
    sentence = _("The arguments do not fit the schema: %(path)s: %(expected)s") % {
        "path": first.path or "/",
        "expected": first.expected,
    }
    return sentence + (_(" (and %(n)d more)") % {"n": more} if more else "")
