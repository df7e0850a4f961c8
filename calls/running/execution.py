"""Sending a call and writing down what came of it. Nothing else in the house reaches a server.

Whoever calls `execute` has made the call `running` and holds its fence: the intent is durable
before the first byte leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.conf import settings

from audit.services import SYSTEM
from calls.content.answers import Answer, build_answer
from calls.record.outcomes import again, cut_off, may_go_again, of_error, of_reply
from calls.record.states import Executed, State
from calls.record.transitions import LET_GO, NOTE_TASK, RESEND, Outcome, ending
from calls.running import completed_pages
from calls.running.input_relay import TELL, InputRelay
from calls.running.list_changes import ListChangeRelay
from calls.running.listeners import NO_LISTENER, CallEvents, CallListener
from calls.running.log_book import LogBook
from calls.running.outcome_writer import OutcomeWriter, PendingOutcome
from calls.running.progress import ProgressThrottle
from core import abilities
from core.errors import CountersignError, RecordUnavailable
from core.journal import GroupCommit
from core.live import Notifier
from registry.methods import METHODS
from registry.publishing.published_catalogue import CALL, PublishedTool, ServerConnection
from registry.upstream import (
    MODERN,
    CallReply,
    Limits,
    NotSent,
    OnTask,
    PausedCall,
    ProgressReport,
    Target,
    TaskRef,
    UpstreamCall,
    UpstreamError,
    Upstreams,
    param_headers,
    responses,
)

log = logging.getLogger(__name__)

# So long a server may take to let go of a call that was cancelled for our sake.
LET_GO_S = 2.0


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class ExecutionRequest:
    """Everything that is about to be sent, as it was rechecked."""

    call_id: UUID
    fence: int
    tool: PublishedTool
    arguments: bytes
    background: bool
    # An earlier attempt may have been executed.
    doubtful: bool = False
    # What its server made of it when it was sent, and how long ago: nothing is sent again.
    upstream_task: str = ""
    since_s: float = 0.0
    # What its agent's client can be asked, in words of core.abilities.
    abilities: tuple[str, ...] = ()
    # Whoever asked for it can follow a task: only then its server may make one of it.
    takes_tasks: bool = False
    # What it already answered, as JSON: for a server that keeps nothing between requests.
    responses: bytes = b""
    # What its agent speaks; "": not MCP.
    revision: str = ""
    # As which least important line its agent wants to hear of its server's log; "": not at all.
    log_level: str = ""
    # Where its agent may hear that a page is done with: by its key; "": nowhere.
    session: str = ""
    # The trace that it belongs to, for its server to go on with.
    trace: Mapping[str, str] = field(default_factory=dict)
    # Somebody asked for its end while nobody was there to hear it.
    is_cancelled: bool = False
    # On the monotonic clock, which goes on while a process is stopped: its lease began then.
    claimed_at: float = field(default_factory=time.monotonic)


@dataclass(slots=True, eq=False)
class InFlightCall:
    fence: int
    task: asyncio.Task[Any] | None
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    # The process stops: cancelled for its sake, and nobody else's.
    stopping: bool = False
    # Its server runs it as a task, or waits for nothing until its agent has answered, which the
    # row knows: somebody else may go on with it.
    is_task: bool = False
    # Its agent may have answered a question.
    nudge: asyncio.Event = field(default_factory=asyncio.Event)
    # It was asked something: it may have come back to another process.
    asked: bool = False
    # How it ended, while that is not written down yet.
    end: PendingOutcome | None = None
    on_unwritten: Callable[[], None] | None = None

    def let_go(self) -> None:
        """Stop; but what its server runs as a task is somebody else's now, and goes on."""
        if self.is_task and self.task is not None:
            self.stopping = True
            self.task.cancel()
        else:
            self.cancel.set()


def owner_name() -> str:
    """Names a process in leases, and never two alike."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid4().hex[:8]}"


class WatchFailed(CountersignError):
    """The server does not tell of changes now; says why."""


class Engine:
    """Sends calls from one event loop. `flights` are those sent and not yet written down."""

    def __init__(self, journal: GroupCommit, *, owner: str) -> None:
        self.owner = owner
        self.journal = journal
        self.notifier = Notifier()
        self.flights: dict[UUID, InFlightCall] = {}
        self.outcome_writer = OutcomeWriter(journal, self.flights, owner)
        self._lists = ListChangeRelay(journal)
        self._leaving = False
        self._empty = asyncio.Event()
        self._upstreams: Upstreams | None = None
        self._targets: dict[str, Target] = {}

    @property
    def upstreams(self) -> Upstreams:
        if self._upstreams is None:
            networks = settings.UPSTREAM_NETWORKS
            self._upstreams = Upstreams(networks=networks, on_lists=self._lists.heard)
        return self._upstreams

    async def aclose(self) -> None:
        if self._upstreams is not None:
            await self._upstreams.aclose()

    async def leave(self, seconds: float) -> None:
        """Nothing new is sent; what runs may end within `seconds`, and then is cut off."""
        self._leaving = True
        await self._landed(seconds)
        for flight in self.flights.values():
            if flight.is_task or not flight.cancel.is_set():
                flight.stopping = True
                flight.let_go()
        await self._landed(LET_GO_S)
        for flight in self.flights.values():
            if flight.task is not None:
                flight.task.cancel()
        await self._landed(LET_GO_S)

    async def _landed(self, seconds: float) -> None:
        if self.flights:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)

    def answered(self, call_id: str) -> None:
        """For the listener: a question of a call was answered, perhaps of one of ours."""
        for flown, flight in self.flights.items():
            if str(flown) == call_id:
                flight.nudge.set()

    async def execute(
        self, execution_request: ExecutionRequest, call_listener: CallListener = NO_LISTENER
    ) -> Answer | None:
        """None: the call goes back to the queue, and a worker will try again."""
        flight = InFlightCall(execution_request.fence, asyncio.current_task())
        flight.on_unwritten = call_listener.on_unwritten
        if execution_request.is_cancelled:
            flight.cancel.set()
        self.flights[execution_request.call_id] = flight
        try:
            outcome = await self._send(execution_request, flight, call_listener)
            return await self._write_down(execution_request, flight, outcome)
        finally:
            del self.flights[execution_request.call_id]
            if self._leaving and not self.flights:
                self._empty.set()

    async def watch(
        self, connection: ServerConnection, uris: Sequence[str], on_update: Callable[[str], None]
    ) -> None:
        """As long as the server tells of these resources. Raises Unwatched, with the reason."""
        try:
            await self.upstreams.watch(self._target(connection), uris, on_update)
        except* UpstreamError as errors:
            raise WatchFailed(str(errors.exceptions[0])) from errors

    async def _send(
        self, execution_request: ExecutionRequest, flight: InFlightCall, call_listener: CallListener
    ) -> Outcome:
        heard = self._heard(execution_request, call_listener)
        inputs = self._inputs(execution_request, flight, call_listener)
        try:
            self._refuse_to_send(execution_request, flight)
            going_on = (
                orjson.loads(execution_request.upstream_task)
                if execution_request.upstream_task
                else None
            )
            if going_on and "asked" not in going_on:
                reply = await self._follow(
                    execution_request, flight, heard.progress_throttle, inputs, TaskRef(**going_on)
                )
            else:
                pause = PausedCall(**going_on) if going_on else None
                reply = await self._ask(
                    execution_request, flight, call_listener, heard, inputs, pause
                )
        except UpstreamError as error:
            return _outcome(error, execution_request, flight)
        except asyncio.CancelledError:
            if flight.is_task:
                await self._hand_over(execution_request)
            else:
                await self._given_up(execution_request, flight)
            raise
        except Exception:
            log.exception("call %s: the upstream client failed", execution_request.call_id)
            return Outcome(State.UNKNOWN, "The gateway failed while sending.", Executed.UNKNOWN)
        finally:
            heard.close()
            flight.asked = inputs.asked
        return of_reply(reply)

    def _heard(
        self, execution_request: ExecutionRequest, call_listener: CallListener
    ) -> CallEvents:
        about = (execution_request.call_id, execution_request.fence, self.journal, self.notifier)
        # Unless its agent wants to hear them, nobody looks on while a short call runs, and logs
        # cost its server time.
        wanted = execution_request.background or bool(execution_request.log_level)
        return CallEvents(
            ProgressThrottle(*about), LogBook(*about) if wanted else None, call_listener
        )

    def _refuse_to_send(self, execution_request: ExecutionRequest, flight: InFlightCall) -> None:
        """Raises NotSent where it came too late."""
        if self._leaving and execution_request.background:
            flight.stopping = True
            if execution_request.upstream_task:
                # Long since sent: back in the queue it would be sent again.
                flight.is_task = True
                raise asyncio.CancelledError
            raise NotSent("The worker is stopping.")
        if time.monotonic() - execution_request.claimed_at > settings.LEASE_S:
            raise NotSent("Whoever was to send it was stopped for too long.")

    async def _ask(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
        heard: CallEvents,
        inputs: InputRelay,
        pause: PausedCall | None,
    ) -> CallReply:
        def progressed(said: ProgressReport) -> None:
            heard.progress(said.progress, said.total, said.message)

        on_task = self._on_task(execution_request, flight, call_listener)
        call = UpstreamCall(
            name=_named(execution_request),
            method=execution_request.tool.method,
            arguments=execution_request.arguments,
            limits=_limits(execution_request),
            on_progress=progressed,
            on_log=heard.line if heard.wants_log else None,
            log_level=execution_request.log_level,
            cancel=flight.cancel,
            param_headers=_param_headers(execution_request),
            idempotency_key=str(execution_request.call_id)
            if execution_request.tool.safe_to_repeat
            else "",
            takes_tasks=execution_request.takes_tasks and on_task is not None,
            on_task=on_task,
            on_status=heard.progress_throttle.say,
            asking=inputs,
            abilities=_relayed(execution_request),
            more=responses(execution_request.responses) if execution_request.responses else b"",
            as_task=_runs_as_task(execution_request.tool),
            asks_pages=execution_request.revision == MODERN,
            trace=execution_request.trace,
            on_page=partial(completed_pages.done, self.journal, execution_request.session)
            if execution_request.session
            else None,
            on_resend=partial(self._note_resend, execution_request),
        )
        target = self._target(execution_request.tool.connection)
        return await self.upstreams.call_tool(target, call, pause)

    async def _follow(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        progress_throttle: ProgressThrottle,
        inputs: InputRelay,
        ref: TaskRef,
    ) -> CallReply:
        flight.is_task = True
        call = UpstreamCall(
            name=_named(execution_request),
            arguments=execution_request.arguments,
            limits=_limits(execution_request),
            cancel=flight.cancel,
            on_status=progress_throttle.say,
            asking=inputs,
            abilities=_relayed(execution_request),
        )
        target = self._target(execution_request.tool.connection)
        return await self.upstreams.follow_task(target, ref, call)

    def _inputs(
        self, execution_request: ExecutionRequest, flight: InFlightCall, call_listener: CallListener
    ) -> InputRelay:
        return InputRelay(
            execution_request.call_id,
            execution_request.fence,
            _relayed(execution_request),
            self.journal,
            self.notifier,
            nudge=flight.nudge,
            on_ask=partial(call_listener.on_early_reply, "asked")
            if call_listener.on_early_reply
            else None,
            on_pause=partial(setattr, flight, "is_task"),
        )

    def _on_task(
        self, execution_request: ExecutionRequest, flight: InFlightCall, call_listener: CallListener
    ) -> OnTask | None:
        """Only a tool's call can become a task."""
        if execution_request.tool.method != CALL:
            return None
        return partial(self._note_task, execution_request, flight, call_listener)

    async def _note_task(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
        ref: TaskRef,
    ) -> None:
        line = {"id": execution_request.call_id, "fence": execution_request.fence}
        line["upstream_task"] = orjson.dumps(ref).decode()
        await self.journal.write((NOTE_TASK, line), within=None)
        flight.is_task = True
        if call_listener.on_early_reply is not None:
            call_listener.on_early_reply("task")

    async def _note_resend(
        self, execution_request: ExecutionRequest, reason: str, send: int
    ) -> None:
        """Every send is an entry, durable before its first byte leaves."""
        line = {
            "id": execution_request.call_id,
            "fence": execution_request.fence,
            "reason": reason,
            "send": send,
        }
        (row,) = await self.journal.write((RESEND, line))
        if row is None:
            raise RecordUnavailable("The call was given up meanwhile.")

    async def _hand_over(self, execution_request: ExecutionRequest) -> None:
        """The process stops, and the call goes on: whoever sweeps next takes it up."""
        line = {"id": execution_request.call_id, "fence": execution_request.fence}
        await asyncio.shield(self.journal.write((LET_GO, line), within=LET_GO_S))

    async def _given_up(self, execution_request: ExecutionRequest, flight: InFlightCall) -> None:
        """The process is stopping in mid-call: what became of it, nobody here will know."""
        sentence = "The gateway stopped while the call was running."
        outcome = Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
        await asyncio.shield(self._write_down(execution_request, flight, outcome))

    async def _write_down(
        self, execution_request: ExecutionRequest, flight: InFlightCall, outcome: Outcome
    ) -> Answer | None:
        line = ending(execution_request.call_id, execution_request.fence, outcome, SYSTEM)
        await self.outcome_writer.write(flight, line)
        if flight.asked or flight.is_task:
            self.journal.write_later((TELL, {"id": execution_request.call_id}))
        self._ring(execution_request)
        if outcome.state == State.QUEUED:
            return None
        return build_answer(
            execution_request.call_id,
            outcome.state,
            outcome.sentence,
            outcome.executed,
            outcome.kind,
            outcome.result,
        )

    def _ring(self, execution_request: ExecutionRequest) -> None:
        self.notifier.notify("calls")
        if execution_request.background:
            self.notifier.notify(f"call.{execution_request.call_id}", quiet_s=0)

    def _target(self, connection: ServerConnection) -> Target:
        target = self._targets.get(connection.key)
        if target is None:
            target = self._targets[connection.key] = Target(
                key=connection.key,
                transport=connection.transport,
                url=connection.url,
                argv=connection.argv,
                env=connection.env,
                headers=connection.headers,
                revision=connection.revision,
                by_events=connection.by_events,
            )
        return target


def _outcome(
    error: UpstreamError, execution_request: ExecutionRequest, flight: InFlightCall
) -> Outcome:
    if flight.stopping:
        safe = execution_request.tool.safe_to_repeat
        return cut_off(error, safe_to_repeat=safe, attempt=execution_request.fence)
    history = {
        "safe_to_repeat": execution_request.tool.safe_to_repeat,
        "doubtful": execution_request.doubtful,
    }
    outcome = of_error(error, **history, is_harmless=execution_request.tool.is_harmless)
    # An agent that waits for a short call hears of an unreachable server at once.
    waits = outcome.executed == Executed.NO and not execution_request.background
    if waits or flight.cancel.is_set() or not may_go_again(error, **history):
        return outcome
    return again(outcome, attempt=execution_request.fence)


def _limits(execution_request: ExecutionRequest) -> Limits:
    left_s = max(execution_request.tool.timeout_s - execution_request.since_s, LET_GO_S)
    return _limited(left_s, settings.RESULT_MAX_BYTES)


@lru_cache(maxsize=256)
def _limited(total_s: float, max_bytes: int) -> Limits:
    return Limits(total_s=total_s, max_bytes=max_bytes)


def _named(execution_request: ExecutionRequest) -> str:
    """What a header repeats, so that whoever stands between can route by it."""
    if execution_request.tool.method == CALL:
        return execution_request.tool.name
    if execution_request.tool.method not in METHODS:
        # What an extension repeats, nobody here knows.
        return ""
    params = orjson.loads(execution_request.arguments)
    return str(params.get("uri") or params.get("name") or "")


def _relayed(execution_request: ExecutionRequest) -> tuple[str, ...]:
    return abilities.relayed(execution_request.abilities, execution_request.tool.relays)


def _runs_as_task(tool: PublishedTool) -> bool:
    """Source: MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"."""
    execution = tool.content.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _param_headers(execution_request: ExecutionRequest) -> Mapping[str, str] | None:
    repeated = execution_request.tool.repeated
    return param_headers(repeated, orjson.loads(execution_request.arguments)) if repeated else None
