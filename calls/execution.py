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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.conf import settings

from audit.services import SYSTEM
from calls.answers import Answer, answered
from calls.outcomes import again, cut_off, may_go_again, of_error, of_reply
from calls.progress import Meter, OnStep
from calls.states import Executed, State
from calls.transitions import MOVE, Outcome, ending
from core.journal import Journal
from core.live import Bell
from registry.published import Connection, PublishedTool
from registry.upstream import (
    InvalidAnnotation,
    Limits,
    NotSent,
    Progress,
    Target,
    UpstreamError,
    Upstreams,
    declared_params,
    param_headers,
)

log = logging.getLogger(__name__)

# So long a server may take to let go of a call that was cancelled for our sake.
LET_GO_S = 2.0


@dataclass(frozen=True, slots=True)
class Sending:
    """Everything that is about to be sent, as it was rechecked."""

    call_id: UUID
    fence: int
    tool: PublishedTool
    arguments: bytes
    background: bool
    # An earlier attempt may have been executed.
    doubtful: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    fence: int
    task: asyncio.Task[Any] | None
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    # The process stops: cancelled for its sake, and nobody else's.
    stopping: bool = False


def owner_name() -> str:
    """Names a process in leases, and never two alike."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid4().hex[:8]}"


class Engine:
    """Sends calls from one event loop. `flights` are those sent and not yet written down."""

    def __init__(self, journal: Journal, *, owner: str) -> None:
        self.owner = owner
        self.journal = journal
        self.bell = Bell()
        self.flights: dict[UUID, Flight] = {}
        self._leaving = False
        self._empty = asyncio.Event()
        self._upstreams: Upstreams | None = None
        self._targets: dict[str, Target] = {}
        # By definition: which arguments it wants repeated in headers.
        self._repeated: dict[int, Mapping[tuple[str, ...], str]] = {}

    @property
    def upstreams(self) -> Upstreams:
        if self._upstreams is None:
            self._upstreams = Upstreams(networks=settings.UPSTREAM_NETWORKS)
        return self._upstreams

    async def aclose(self) -> None:
        if self._upstreams is not None:
            await self._upstreams.aclose()

    async def leave(self, seconds: float) -> None:
        """Nothing new is sent; what runs may end within `seconds`, and then is cut off."""
        self._leaving = True
        await self._landed(seconds)
        for flight in self.flights.values():
            if not flight.cancel.is_set():
                flight.stopping = True
                flight.cancel.set()
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

    async def execute(self, sending: Sending, on_step: OnStep | None = None) -> Answer | None:
        """None: the call goes back to the queue, and a worker will try again."""
        flight = Flight(sending.fence, asyncio.current_task())
        self.flights[sending.call_id] = flight
        try:
            outcome = await self._send(sending, flight, on_step)
            return await self._write_down(sending, outcome)
        finally:
            del self.flights[sending.call_id]
            if self._leaving and not self.flights:
                self._empty.set()

    async def _send(self, sending: Sending, flight: Flight, on_step: OnStep | None) -> Outcome:
        meter = Meter(sending.call_id, sending.fence, self.journal, self.bell)

        def progressed(said: Progress) -> None:
            step = meter.step(said.progress, said.total, said.message)
            if step is not None and on_step is not None:
                on_step(step)

        try:
            if self._leaving and sending.background:
                flight.stopping = True
                raise NotSent("The worker is stopping.")
            reply = await self.upstreams.call_tool(
                self._target(sending.tool.connection),
                name=sending.tool.name,
                arguments=sending.arguments,
                limits=Limits(total_s=sending.tool.timeout_s, max_bytes=settings.RESULT_MAX_BYTES),
                on_progress=progressed,
                cancel=flight.cancel,
                param_headers=self._param_headers(sending),
                idempotency_key=str(sending.call_id) if sending.tool.safe_to_repeat else "",
            )
        except UpstreamError as error:
            return _outcome(error, sending, flight)
        except asyncio.CancelledError:
            await self._given_up(sending)
            raise
        except Exception:
            log.exception("call %s: the upstream client failed", sending.call_id)
            return Outcome(State.UNKNOWN, "The gateway failed while sending.", Executed.UNKNOWN)
        finally:
            meter.close()
        return of_reply(reply)

    async def _given_up(self, sending: Sending) -> None:
        """The process is stopping in mid-call: what became of it, nobody here will know."""
        sentence = "The gateway stopped while the call was running."
        outcome = Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
        await asyncio.shield(self._write_down(sending, outcome))

    async def _write_down(self, sending: Sending, outcome: Outcome) -> Answer | None:
        line = ending(sending.call_id, sending.fence, outcome, SYSTEM)
        (row,) = await self.journal.write((MOVE, line), within=None)
        if row is None:
            log.warning("call %s: ended elsewhere, our outcome came too late", sending.call_id)
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

    def _param_headers(self, sending: Sending) -> Mapping[str, str] | None:
        tool = sending.tool
        repeated = self._repeated.get(tool.definition_id)
        if repeated is None:
            repeated = self._repeated[tool.definition_id] = _repeated(tool.content["inputSchema"])
        return param_headers(repeated, orjson.loads(sending.arguments)) if repeated else None

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


def _repeated(schema: Mapping[str, Any]) -> Mapping[tuple[str, ...], str]:
    try:
        return declared_params(schema)
    except InvalidAnnotation:
        # Of a server that speaks a revision without these headers.
        return {}
