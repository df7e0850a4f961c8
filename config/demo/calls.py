"""Writes planned calls by the statements that write every call, all triggers on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.utils import timezone

from accounts.models import Agent, User
from approvals.models import Approval, Vote
from approvals.services import ASK, approval_line
from audit.models import Entry
from audit.services import SYSTEM, entry, record_all
from calls.models import Call
from calls.record.new_call import NewCall
from calls.record.statements import call_digest, statement
from calls.record.states import Executed, State
from calls.record.transitions import MOVE, OPEN, Move, Outcome, ending
from config.demo.month import PlannedCall, PlannedDecision, PlannedOutcome
from config.first_run import TOOLSET
from core.ids import uuid7_floor
from core.journal import Statement
from policies.decide import Decision, RuleBook, Subject
from policies.models import Effect
from registry.publishing.published_tools import PublishedTool

SECONDS_TO_VOTE = 40.0
# Calls of one statement.
TOGETHER = 500
OUTCOMES = {
    PlannedOutcome.SUCCEEDED: (State.SUCCEEDED, "", Executed.YES),
    PlannedOutcome.TOOL_ERROR: (State.TOOL_ERROR, "", Executed.YES),
    PlannedOutcome.FAILED: (State.FAILED, "The server refused the connection.", Executed.NO),
    PlannedOutcome.TIMED_OUT: (
        State.TIMED_OUT,
        "The server did not answer in time.",
        Executed.UNKNOWN,
    ),
    PlannedOutcome.UNKNOWN: (
        State.UNKNOWN,
        "The connection ended after the request was sent: it may have been executed.",
        Executed.UNKNOWN,
    ),
}
CLOSED = {
    PlannedDecision.EXPIRED: (State.EXPIRED, SYSTEM, "Nobody decided in time."),
    PlannedDecision.WITHDRAWN: (State.WITHDRAWN, SYSTEM, "Withdrawn by its agent."),
}
REASONS = {
    True: ("", "", "Looks right.", "Checked against the booking.", "Ana is waiting for it.", ""),
    False: (
        "The amount is not the one in the ledger.",
        "Wrong passenger: this booking was cancelled.",
        "Please do not promise a date.",
        "Not before the board has agreed.",
    ),
}


@dataclass
class Moments:
    """When things happened, for afterwards: rows are written with the time of writing."""

    moves: list[tuple[UUID, int, datetime]] = field(default_factory=list)
    votes: list[tuple[UUID, int, datetime]] = field(default_factory=list)
    # Asked, decided, sent, finished and to be decided by.
    calls: list[tuple[UUID, datetime, Any, Any, Any, Any]] = field(default_factory=list)


@dataclass
class DemoCall:
    plan: PlannedCall
    id: UUID
    new: NewCall
    decision: Decision
    voters: list[User]

    @property
    def is_held(self) -> bool:
        return self.new.state == State.HELD

    @property
    def is_pending(self) -> bool:
        return self.is_held and self.plan.verdict == PlannedDecision.PENDING

    @property
    def is_approved(self) -> bool:
        return self.is_held and self.plan.verdict == PlannedDecision.APPROVED

    @property
    def key(self) -> tuple[int, int | None, bytes]:
        return self.new.agent_id, self.new.tool_id, self.new.arguments


class CallFiller:
    def __init__(
        self,
        agents: Mapping[str, Agent],
        tools: Mapping[str, PublishedTool],
        book: RuleBook,
        approvers: Sequence[User],
    ) -> None:
        self.agents, self.tools, self.book, self.approvers = agents, tools, book, approvers
        self.groups = {
            agent.owner_id: frozenset(agent.owner.groups.values_list("name", flat=True))
            for agent in agents.values()
        }
        self.dice = Random(3)  # noqa: S311 no secret
        self.moments = Moments()

    def fill(self, planned: Iterable[PlannedCall]) -> Moments:
        waiting = [self._prepare(plan) for plan in planned]
        while waiting:
            # What an agent asks for while the very same is pending joins it, and is no call.
            now: dict[Any, DemoCall] = {}
            later = []
            for call in waiting:
                if call.key in now:
                    later.append(call)
                else:
                    now[call.key] = call
            together = list(now.values())
            for first in range(0, len(together), TOGETHER):
                self._write(together[first : first + TOGETHER])
            pending = {
                one.key for one in now.values() if one.plan.verdict == PlannedDecision.PENDING
            }
            waiting = [one for one in later if not (one.is_held and one.key in pending)]
        return self.moments

    def _prepare(self, plan: PlannedCall) -> DemoCall:
        agent, tool = self.agents[plan.job.agent], self.tools[plan.job.tool]
        arguments = orjson.dumps(plan.arguments)
        decision = self.book.decide(self._subject(agent, tool, plan, len(arguments)))
        new = _new_call(agent, tool, arguments, decision, plan)
        able = [one for one in self.approvers if one.pk != agent.owner_id]
        self.dice.shuffle(able)
        return DemoCall(plan, new.id, new, decision, able[: _votes_of(plan.verdict, decision)])

    def _subject(self, agent: Agent, tool: PublishedTool, plan: PlannedCall, size: int) -> Subject:
        return Subject(
            agent_id=agent.pk,
            agent=agent.name,
            groups=self.groups[agent.owner_id],
            definition_id=tool.definition_id,
            server=tool.server_slug,
            tool=tool.name,
            hints=tool.hints,
            owner=agent.owner.username,
            arguments=plan.arguments,
            size=size,
            exposed=tool.exposed_name,
            at=plan.at,
        )

    def _write(self, calls: Sequence[DemoCall]) -> None:
        _execute(OPEN, [_line_to_open(call) for call in calls])
        held = [call for call in calls if call.is_held]
        _execute(ASK, [approval_line(call.id, call.decision) for call in held])
        self._decide(held)
        approved = [call for call in held if call.is_approved]
        queued = [*approved, *(call for call in calls if call.new.state == State.QUEUED)]
        _execute(MOVE, [_to(call, State.APPROVED, State.QUEUED).line() for call in approved])
        _execute(MOVE, [_to(call, State.QUEUED, State.RUNNING).line() for call in queued])
        ran = [*queued, *(call for call in calls if call.new.state == State.RUNNING)]
        _execute(MOVE, [_end(call) for call in ran])
        for call in calls:
            self._note(call)

    def _decide(self, held: Sequence[DemoCall]) -> None:
        votes = {call.id: list(self._votes(call)) for call in held}
        Vote.objects.bulk_create(vote for given in votes.values() for vote in given)
        record_all(_vote_entry(vote, call) for call in held for vote in votes[call.id])
        decided = [call for call in held if call.plan.verdict != PlannedDecision.PENDING]
        for call in decided:
            _close(call, votes[call.id])
        _execute(MOVE, [_decision(call, votes[call.id]).line() for call in decided])

    def _votes(self, call: DemoCall) -> Iterator[Vote]:
        approve = call.plan.verdict != PlannedDecision.DENIED
        for person in call.voters:
            yield Vote(
                approval_id=call.id,
                person=person,
                approve=approve,
                reason=self.dice.choice(REASONS[approve]),
                seen_digest=call_digest(call.new.statement),
            )

    def _note(self, call: DemoCall) -> None:
        plan = call.plan
        moves, at = [plan.at], plan.at
        decided = sent = finished = None
        if call.is_held and plan.verdict != PlannedDecision.PENDING:
            decided = at = at + timedelta(seconds=plan.decided_s)
            moves.append(at)
        if call.is_held:
            self._note_votes(call, decided or at + timedelta(seconds=SECONDS_TO_VOTE))
        if call.is_approved:
            moves.append(at)
        if call.is_approved or call.new.state == State.QUEUED:
            at += timedelta(milliseconds=self.dice.randint(15, 400))
            moves.append(at)
        if call.is_approved or call.new.state in (State.QUEUED, State.RUNNING):
            sent, finished = at, at + timedelta(seconds=plan.ran_s)
            moves.append(finished)
        elif len(moves) > 1 or call.new.state == State.REFUSED:
            finished = at
        within = timedelta(seconds=call.new.decide_within_s or 3600)
        until = plan.at + within if call.is_held else None
        self.moments.calls.append((call.id, plan.at, decided, sent, finished, until))
        self.moments.moves += [(call.id, seq, when) for seq, when in enumerate(moves, start=1)]

    def _note_votes(self, call: DemoCall, last: datetime) -> None:
        # The last one decides; the others voted before.
        for place, person in enumerate(reversed(call.voters)):
            ago = timedelta(seconds=place * min(SECONDS_TO_VOTE, call.plan.decided_s / 3))
            self.moments.votes.append((call.id, person.pk, last - ago))


def _votes_of(verdict: PlannedDecision, decision: Decision) -> int:
    threshold = decision.thresholds[0]
    match verdict:
        case PlannedDecision.APPROVED:
            return threshold.approve
        case PlannedDecision.DENIED:
            return threshold.deny
        case PlannedDecision.PENDING:
            return threshold.approve - 1
        case _:
            return 0


def _new_call(
    agent: Agent, tool: PublishedTool, arguments: bytes, decision: Decision, plan: PlannedCall
) -> NewCall:
    state = _first_state(decision, tool)
    is_bound = state in (State.HELD, State.QUEUED)
    return NewCall(
        id=_id(plan.at),
        agent_id=agent.pk,
        agent=agent.name,
        token_id=None,
        person_id=agent.owner_id,
        person=agent.owner.username,
        toolset=TOOLSET,
        server_id=tool.server_id,
        server=tool.server_slug,
        tool_id=tool.tool_id,
        definition_id=tool.definition_id,
        definition_digest=tool.digest,
        tool_name=tool.exposed_name,
        arguments=arguments,
        origin=Call.Origin.MCP,
        mode=Call.Mode.INLINE if state == State.RUNNING else Call.Mode.BACKGROUND,
        effect=decision.effect,
        rule_id=decision.rule_id,
        rule=decision.rule,
        reason=decision.reason,
        state=state,
        outcome=decision.reason if state == State.REFUSED else "",
        revision="2026-07-28",
        client=f"{agent.name} 1.4",
        statement=_statement(agent, tool, arguments) if is_bound else "",
        decide_within_s=decision.decide_within_s,
        details={"refusal": "policy"} if state == State.REFUSED else {},
    )


def _statement(agent: Agent, tool: PublishedTool, arguments: bytes) -> str:
    person = (agent.owner_id, agent.owner.username)
    return statement(agent=(agent.pk, agent.name), person=person, tool=tool, arguments=arguments)


def _first_state(decision: Decision, tool: PublishedTool) -> State:
    if decision.effect == Effect.DENY:
        return State.REFUSED
    if decision.effect == Effect.ASK:
        return State.HELD
    return State.QUEUED if tool.server_slug == "reports" else State.RUNNING


def _id(at: datetime) -> UUID:
    """An id whose time is that moment."""
    return UUID(int=uuid7_floor(at).int | int.from_bytes(os.urandom(7), "big"))


def _line_to_open(call: DemoCall) -> dict[str, Any]:
    line = call.new.line()
    if call.plan.verdict == PlannedDecision.EXPIRED and call.is_held:
        # Else nothing would let it expire.
        line["decide_in_s"] = 0.0
    return line


def _to(call: DemoCall, source: State, target: State) -> Move:
    return Move(call.id, source, target, SYSTEM)


def _end(call: DemoCall) -> dict[str, Any]:
    state, said, executed = OUTCOMES[call.plan.fate]
    text = call.plan.text if state == State.SUCCEEDED else "There is no such thing."
    content: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if state == State.TOOL_ERROR:
        content["isError"] = True
    came = state in (State.SUCCEEDED, State.TOOL_ERROR)
    outcome = Outcome(state, said, executed, orjson.dumps(content) if came else None)
    return ending(call.id, 1, outcome, SYSTEM)


def _vote_entry(vote: Vote, call: DemoCall) -> Entry:
    new = call.new
    return entry(
        "approval.voted",
        actor=vote.person.actor,
        reason=vote.reason,
        call_id=new.id,
        agent=(new.agent_id, new.agent),
        tool=new.tool_name,
        approve=vote.approve,
        seen_digest=vote.seen_digest,
        step_up="",
        proof="",
    )


def _close(call: DemoCall, votes: Sequence[Vote]) -> None:
    state = Approval.State(call.plan.verdict.value)
    Approval.objects.filter(pk=call.id).update(
        state=state,
        decided_by=votes[-1].person if votes else None,
        decided_at=timezone.now(),
    )


def _decision(call: DemoCall, votes: Sequence[Vote]) -> Move:
    if not votes:
        target, actor, sentence = CLOSED[call.plan.verdict]
        return Move(call.id, State.HELD, target, actor, sentence, outcome=sentence)
    names = " and ".join(vote.person.username for vote in votes)
    approve = votes[-1].approve
    said = " ".join(
        [f"{'Approved' if approve else 'Denied'} by {names}."]
        + [vote.reason for vote in votes if vote.reason]
    )
    return Move(
        call.id,
        State.HELD,
        State.APPROVED if approve else State.DENIED,
        votes[-1].person.actor,
        said,
        outcome=None if approve else said,
        details={"decided_by": [vote.person_id for vote in votes]},
    )


def _execute(statement: Statement, lines: Sequence[Mapping[str, Any]]) -> None:
    """Many lines at once, as the journal writes them."""
    if not lines:
        return
    ids = sorted(str(line["id"]) for line in lines)
    bounds = [ids[0], ids[-1]] if statement.bounded else []
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, [orjson.dumps(lines).decode(), *bounds])
        done = cursor.rowcount
    assert done == len(lines), (statement.name, done, len(lines))
