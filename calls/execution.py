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
from calls import pages
from calls.answers import Answer, answered
from calls.heard import DEAF, Ear, Heard
from calls.inputs import TELL, Inputs
from calls.lists import Lists
from calls.logs import LogBook
from calls.outcomes import again, cut_off, may_go_again, of_error, of_reply
from calls.progress import Meter
from calls.safekeeping import End, Safekeeping
from calls.states import Executed, State
from calls.transitions import LET_GO, NOTE_TASK, Outcome, ending
from core import abilities
from core.errors import CountersignError
from core.journal import Journal
from core.live import Bell
from registry.methods import METHODS
from registry.published import CALL, Connection, PublishedTool
from registry.upstream import (
    MODERN,
    Call,
    Limits,
    NotSent,
    OnTask,
    Pause,
    Progress,
    Reply,
    Target,
    TaskRef,
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
class Sending:
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
    # On the monotonic clock, which goes on while a process is stopped: its lease began then.
    claimed_at: float = field(default_factory=time.monotonic)


@dataclass(slots=True, eq=False)
class Flight:
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
    end: End | None = None

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


class Unwatched(CountersignError):
    """The server does not tell of changes now; says why."""


class Engine:
    """Sends calls from one event loop. `flights` are those sent and not yet written down."""

    def __init__(self, journal: Journal, *, owner: str) -> None:
        self.owner = owner
        self.journal = journal
        self.bell = Bell()
        self.flights: dict[UUID, Flight] = {}
        self.safekeeping = Safekeeping(journal, self.flights, owner)
        self._lists = Lists(journal)
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

    async def execute(self, sending: Sending, ear: Ear = DEAF) -> Answer | None:
        """None: the call goes back to the queue, and a worker will try again."""
        flight = Flight(sending.fence, asyncio.current_task())
        self.flights[sending.call_id] = flight
        try:
            outcome = await self._send(sending, flight, ear)
            return await self._write_down(sending, flight, outcome)
        finally:
            del self.flights[sending.call_id]
            if self._leaving and not self.flights:
                self._empty.set()

    async def watch(
        self, connection: Connection, uris: Sequence[str], on_update: Callable[[str], None]
    ) -> None:
        """As long as the server tells of these resources. Raises Unwatched, with the reason."""
        try:
            await self.upstreams.watch(self._target(connection), uris, on_update)
        except* UpstreamError as errors:
            raise Unwatched(str(errors.exceptions[0])) from errors

    async def _send(self, sending: Sending, flight: Flight, ear: Ear) -> Outcome:
        heard = self._heard(sending, ear)
        inputs = self._inputs(sending, flight, ear)
        try:
            self._refuse_to_send(sending, flight)
            going_on = orjson.loads(sending.upstream_task) if sending.upstream_task else None
            if going_on and "asked" not in going_on:
                reply = await self._follow(
                    sending, flight, heard.meter, inputs, TaskRef(**going_on)
                )
            else:
                pause = Pause(**going_on) if going_on else None
                reply = await self._ask(sending, flight, ear, heard, inputs, pause)
        except UpstreamError as error:
            return _outcome(error, sending, flight)
        except asyncio.CancelledError:
            if flight.is_task:
                await self._hand_over(sending)
            else:
                await self._given_up(sending, flight)
            raise
        except Exception:
            log.exception("call %s: the upstream client failed", sending.call_id)
            return Outcome(State.UNKNOWN, "The gateway failed while sending.", Executed.UNKNOWN)
        finally:
            heard.close()
            flight.asked = inputs.asked
        return of_reply(reply)

    def _heard(self, sending: Sending, ear: Ear) -> Heard:
        about = (sending.call_id, sending.fence, self.journal, self.bell)
        # Unless its agent wants to hear them, nobody looks on while a short call runs, and logs
        # cost its server time.
        wanted = sending.background or bool(sending.log_level)
        return Heard(Meter(*about), LogBook(*about) if wanted else None, ear)

    def _refuse_to_send(self, sending: Sending, flight: Flight) -> None:
        """Raises NotSent where it came too late."""
        if self._leaving and sending.background:
            flight.stopping = True
            if sending.upstream_task:
                # Long since sent: back in the queue it would be sent again.
                flight.is_task = True
                raise asyncio.CancelledError
            raise NotSent("The worker is stopping.")
        if time.monotonic() - sending.claimed_at > settings.LEASE_S:
            raise NotSent("Whoever was to send it was stopped for too long.")

    async def _ask(
        self,
        sending: Sending,
        flight: Flight,
        ear: Ear,
        heard: Heard,
        inputs: Inputs,
        pause: Pause | None,
    ) -> Reply:
        def progressed(said: Progress) -> None:
            heard.progress(said.progress, said.total, said.message)

        on_task = self._on_task(sending, flight, ear)
        call = Call(
            name=_named(sending),
            method=sending.tool.method,
            arguments=sending.arguments,
            limits=_limits(sending),
            on_progress=progressed,
            on_log=heard.line if heard.wants_log else None,
            log_level=sending.log_level,
            cancel=flight.cancel,
            param_headers=_param_headers(sending),
            idempotency_key=str(sending.call_id) if sending.tool.safe_to_repeat else "",
            takes_tasks=sending.takes_tasks and on_task is not None,
            on_task=on_task,
            on_status=heard.meter.say,
            asking=inputs,
            abilities=_relayed(sending),
            more=responses(sending.responses) if sending.responses else b"",
            as_task=_runs_as_task(sending.tool),
            asks_pages=sending.revision == MODERN,
            trace=sending.trace,
            on_page=partial(pages.done, self.journal, sending.session) if sending.session else None,
        )
        target = self._target(sending.tool.connection)
        return await self.upstreams.call_tool(target, call, pause)

    async def _follow(
        self, sending: Sending, flight: Flight, meter: Meter, inputs: Inputs, ref: TaskRef
    ) -> Reply:
        flight.is_task = True
        call = Call(
            name=_named(sending),
            arguments=sending.arguments,
            limits=_limits(sending),
            cancel=flight.cancel,
            on_status=meter.say,
            asking=inputs,
            abilities=_relayed(sending),
        )
        target = self._target(sending.tool.connection)
        return await self.upstreams.follow_task(target, ref, call)

    def _inputs(self, sending: Sending, flight: Flight, ear: Ear) -> Inputs:
        return Inputs(
            sending.call_id,
            sending.fence,
            _relayed(sending),
            self.journal,
            self.bell,
            nudge=flight.nudge,
            on_ask=partial(ear.on_turn, "asked") if ear.on_turn else None,
            on_pause=partial(setattr, flight, "is_task"),
        )

    def _on_task(self, sending: Sending, flight: Flight, ear: Ear) -> OnTask | None:
        """Only a tool's call can become a task."""
        if sending.tool.method != CALL:
            return None
        return partial(self._note_task, sending, flight, ear)

    async def _note_task(self, sending: Sending, flight: Flight, ear: Ear, ref: TaskRef) -> None:
        line = {"id": sending.call_id, "fence": sending.fence}
        line["upstream_task"] = orjson.dumps(ref).decode()
        await self.journal.write((NOTE_TASK, line), within=None)
        flight.is_task = True
        if ear.on_turn is not None:
            ear.on_turn("task")

    async def _hand_over(self, sending: Sending) -> None:
        """The process stops, and the call goes on: whoever sweeps next takes it up."""
        line = {"id": sending.call_id, "fence": sending.fence}
        await asyncio.shield(self.journal.write((LET_GO, line), within=LET_GO_S))

    async def _given_up(self, sending: Sending, flight: Flight) -> None:
        """The process is stopping in mid-call: what became of it, nobody here will know."""
        sentence = "The gateway stopped while the call was running."
        outcome = Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
        await asyncio.shield(self._write_down(sending, flight, outcome))

    async def _write_down(
        self, sending: Sending, flight: Flight, outcome: Outcome
    ) -> Answer | None:
        line = ending(sending.call_id, sending.fence, outcome, SYSTEM)
        await self.safekeeping.write(flight, line)
        if flight.asked or flight.is_task:
            self.journal.write_later((TELL, {"id": sending.call_id}))
        self._ring(sending)
        if outcome.state == State.QUEUED:
            return None
        return answered(
            sending.call_id,
            outcome.state,
            outcome.sentence,
            outcome.executed,
            outcome.kind,
            outcome.result,
        )

    def _ring(self, sending: Sending) -> None:
        self.bell.ring("calls")
        if sending.background:
            self.bell.ring(f"call.{sending.call_id}", quiet_s=0)

    def _target(self, connection: Connection) -> Target:
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


def _outcome(error: UpstreamError, sending: Sending, flight: Flight) -> Outcome:
    if flight.stopping:
        safe = sending.tool.safe_to_repeat
        return cut_off(error, safe_to_repeat=safe, attempt=sending.fence)
    history = {"safe_to_repeat": sending.tool.safe_to_repeat, "doubtful": sending.doubtful}
    outcome = of_error(error, **history)
    # An agent that waits for a short call hears of an unreachable server at once.
    waits = outcome.executed == Executed.NO and not sending.background
    if waits or flight.cancel.is_set() or not may_go_again(error, **history):
        return outcome
    return again(outcome, attempt=sending.fence)


def _limits(sending: Sending) -> Limits:
    left_s = max(sending.tool.timeout_s - sending.since_s, LET_GO_S)
    return _limited(left_s, settings.RESULT_MAX_BYTES)


@lru_cache(maxsize=256)
def _limited(total_s: float, max_bytes: int) -> Limits:
    return Limits(total_s=total_s, max_bytes=max_bytes)


def _named(sending: Sending) -> str:
    """What a header repeats, so that whoever stands between can route by it."""
    if sending.tool.method == CALL:
        return sending.tool.name
    if sending.tool.method not in METHODS:
        # What an extension repeats, nobody here knows.
        return ""
    params = orjson.loads(sending.arguments)
    return str(params.get("uri") or params.get("name") or "")


def _relayed(sending: Sending) -> tuple[str, ...]:
    return abilities.relayed(sending.abilities, sending.tool.relays)


def _runs_as_task(tool: PublishedTool) -> bool:
    """Source: MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"."""
    execution = tool.content.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _param_headers(sending: Sending) -> Mapping[str, str] | None:
    repeated = sending.tool.repeated
    return param_headers(repeated, orjson.loads(sending.arguments)) if repeated else None
