"""Sending a call and writing down what came of it. Nothing else in the house reaches a server.

Whoever calls `execute` has made the call `running` and holds its fence: the intent is durable
before the first byte leaves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import orjson
from django.conf import settings

from audit.services import SYSTEM
from calls.content import received_results
from calls.content.answers import CONSENT_PAGE, LACKED_SCOPES, Answer, build_answer
from calls.freezes import STILL_FREE
from calls.record.call_options import NO_OPTIONS, CallOptions
from calls.record.outcomes import cut_off, may_go_again, of_error, of_reply, schedule_retry
from calls.record.refusal import of_state
from calls.record.states import Executed, State
from calls.record.transitions import LET_GO, NOTE_TASK, RESEND, Outcome, ending
from calls.running import completed_pages
from calls.running.cleaning import ServerWords, clean_outcome, clean_quickly, cleaned, words_of
from calls.running.credentials import RENEWED, CallCredentials
from calls.running.input_relay import TELL, InputRelay
from calls.running.list_changes import ListChangeRelay
from calls.running.listeners import NO_LISTENER, CallEvents, CallListener
from calls.running.outcome_writer import OutcomeWriter, PendingOutcome
from calls.running.send_spans import send_attributes
from core import abilities, figures, telemetry
from core.errors import CountersignError, RecordUnavailable
from core.events_in_time import set_within
from core.journal import GroupCommit
from core.live import Notifier
from policies.limits.costs import ResultCost
from registry.connections import SHARED
from registry.credentials import credential_store
from registry.credentials.credential_store import OpenCredential
from registry.methods import METHODS
from registry.models import CredentialOwner
from registry.openapi.operations import REQUEST
from registry.publishing.published_tools import CALL, PublishedTool, ServerConnection
from registry.upstream import (
    MODERN,
    CallReply,
    Limits,
    Lost,
    NotGreeted,
    NotSent,
    PausedCall,
    ProgressReport,
    RefusedByServer,
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
# A credential that is refused so soon after it was renewed is not renewed once more.
ACCEPTED_S = 5.0


class ExecutionRequest(NamedTuple):
    """One attempt at a call, rechecked and about to be sent."""

    call_id: UUID
    fence: int
    tool: PublishedTool
    arguments: bytes
    # A worker runs it, and no agent's request waits for it here.
    background: bool
    # When its lease began, on the monotonic clock, which goes on while a process is stopped.
    claimed_at: float
    # An earlier attempt may have been executed.
    doubtful: bool = False
    # The upstream task or input request to continue, as JSON, and the seconds since it was sent;
    # "": the call was not sent before.
    upstream_task: str = ""
    since_s: float = 0.0
    options: CallOptions = NO_OPTIONS
    # As in gateway/call_request.py.
    responses: bytes = b""
    # The MCP revision that the agent speaks; "": not MCP.
    revision: str = ""
    # The agent that the server may ask for input.
    agent_id: int | None = None
    # Whose credential it carries, where the server is signed in at.
    credential_owner: CredentialOwner = SHARED
    # People approved it: it goes on with that once its user has signed in, or allowed more.
    is_approved: bool = False
    # An earlier attempt was refused for want of scopes, after the server had all of it.
    lacked_scopes: bool = False
    # It was cancelled while no process ran it.
    is_cancelled: bool = False
    # What its result may say that it cost.
    costs: tuple[ResultCost, ...] = ()


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
    # Nobody is told anything before the record has it.
    is_patient: bool = True
    # As ExecutionRequest has it, as far as the call has come here.
    upstream_task: str = ""
    # The credential that was sent, where the server is signed in at.
    used: OpenCredential | None = None

    def let_go(self) -> None:
        """Stop; but what its server runs as a task is somebody else's now, and goes on."""
        if self.is_task and self.task is not None:
            self.stopping = True
            self.task.cancel()
        else:
            self.cancel.set()


@dataclass(slots=True)
class Renewal:
    """The last renewal of a call's credential, and how far the call had come then."""

    at: float = 0.0
    upstream_task: str = ""

    def is_due(self, upstream_task: str, *, is_task: bool) -> bool:
        """Once for each send, and for a task whenever the one before was accepted for a while."""
        now = time.monotonic()
        is_due = not self.at or upstream_task != self.upstream_task
        is_due = is_due or (is_task and now - self.at > ACCEPTED_S)
        self.at, self.upstream_task = now, upstream_task
        return is_due


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A call that has ended, which the record has not taken yet. `finish` waits until it has."""

    finish: Coroutine[Any, Any, None]


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
        self.credentials = CallCredentials()
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

    @property
    def server_keys(self) -> set[str]:
        """Keys of the servers that calls were sent to from this process."""
        return set(self._targets)

    @property
    def connection_count(self) -> int:
        """Open HTTP connections to servers."""
        return self._upstreams.connection_count if self._upstreams else 0

    async def close_stale(self, current: Set[str]) -> bool:
        """Closes what reaches servers by other keys than these; False where calls still run over
        some of it."""
        stale = self.server_keys - current
        for key in stale:
            # A call that still goes there makes it anew, for the next look.
            if not self.upstreams.is_used(key):
                self._targets.pop(key, None)
                await self.upstreams.close_target(key)
        return self.server_keys.isdisjoint(stale)

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
            await set_within(self._empty, seconds)

    def answered(self, call_id: str) -> None:
        """Wakes the call, if it runs here, since an input request was answered."""
        for flown, flight in self.flights.items():
            if str(flown) == call_id:
                flight.nudge.set()

    async def execute(
        self, execution_request: ExecutionRequest, call_listener: CallListener = NO_LISTENER
    ) -> Answer | Unwritten | None:
        """None: the call goes back to the queue, and a worker will try again. Only a short call,
        whose agent waits, is given back unwritten; `finish` is then the caller's to keep."""
        flight = InFlightCall(execution_request.fence, asyncio.current_task())
        flight.is_patient = execution_request.background
        if execution_request.is_cancelled:
            flight.cancel.set()
        self.flights[execution_request.call_id] = flight
        rest = None
        began = time.monotonic()
        try:
            send = self._send_in_span if telemetry.is_on else self._send
            outcome = await send(execution_request, flight, call_listener)
            figures.SEND.note(time.monotonic() - began)
            if execution_request.tool.result_rules is not None or execution_request.costs:
                cleaned_here = clean_quickly(outcome, execution_request)
                if cleaned_here is None:
                    cleaned_here = await self._clean(execution_request, flight, outcome)
                outcome = cleaned_here
            if flight.used is not None:
                outcome = _with_credential(outcome, flight.used, execution_request)
            began = time.monotonic()
            rest = await self._write(execution_request, flight, outcome)
            figures.OUTCOME.note(time.monotonic() - began)
        finally:
            if rest is None:
                self._land(execution_request)
        if rest is not None:
            return Unwritten(self._finish(execution_request, flight, rest))
        self._tell(execution_request, flight)
        return _answer(execution_request, outcome)

    async def _send_in_span(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
    ) -> Outcome:
        tool = execution_request.tool
        attributes = send_attributes(tool, execution_request.call_id)
        name, trace = f"{tool.method} {tool.name}", execution_request.options.trace
        with telemetry.opened("client", name, attributes, trace) as span:
            outcome = await self._send(execution_request, flight, call_listener)
            if outcome.state != State.SUCCEEDED:
                span.error = str(outcome.state)
            return outcome

    async def _finish(
        self, execution_request: ExecutionRequest, flight: InFlightCall, rest: asyncio.Future[None]
    ) -> None:
        flight.task = asyncio.current_task()
        try:
            # It is written down also where this process stops waiting for it.
            await asyncio.shield(rest)
            self._tell(execution_request, flight)
        finally:
            self._land(execution_request)

    def _land(self, execution_request: ExecutionRequest) -> None:
        del self.flights[execution_request.call_id]
        if self._leaving and not self.flights:
            self._empty.set()

    async def watch(
        self, connection: ServerConnection, uris: Sequence[str], on_update: Callable[[str], None]
    ) -> None:
        """Runs while the server sends updates of these resources. Raises WatchFailed, with the
        reason."""
        try:
            if connection.signs_in:
                kind = connection.credential_of
                owner = CredentialOwner(kind, 0) if kind else SHARED
                connection = _signed_in(
                    connection, await self.credentials.current(connection, owner)
                )
            await self.upstreams.watch(self._target(connection), uris, on_update)
        except* UpstreamError as errors:
            raise WatchFailed(str(errors.exceptions[0])) from errors

    async def _send(
        self, execution_request: ExecutionRequest, flight: InFlightCall, call_listener: CallListener
    ) -> Outcome:
        about = (execution_request.call_id, execution_request.fence, self.journal, self.notifier)
        # Unless its agent wants to hear them, nobody looks on while a short call runs, and logs
        # cost its server time.
        wants_log = execution_request.background or bool(execution_request.options.log_level)
        tool = execution_request.tool
        # Most tools have none, and a function that says so costs each of their calls.
        words = words_of(tool) if tool.result_rules is not None else None
        events = CallEvents(about, call_listener, wants_log=wants_log, words=words)
        inputs = self._inputs(execution_request, flight, call_listener, words)
        target = self._target(tool.connection)
        call = self._upstream_call(execution_request, flight, call_listener, events, inputs)
        try:
            self._refuse_to_send(execution_request, flight)
            if tool.connection.signs_in:
                reply = await self._send_signed_in(execution_request, flight, call)
            elif not execution_request.upstream_task:
                reply = await self.upstreams.call_tool(target, call)
            else:
                reply = await self._go_on(execution_request.upstream_task, flight, target, call)
            if words is not None and words.is_slow:
                await events.drain()
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
            events.close()
            flight.asked = inputs is not None and inputs.asked
        return of_reply(reply)

    async def _send_signed_in(
        self, execution_request: ExecutionRequest, flight: InFlightCall, call: UpstreamCall
    ) -> CallReply:
        """Sends the call with the credential that it is to carry; once more with a
        renewed one, where the server looked at nothing but the old one. What the server took before
        that goes on with the renewed one, and does not begin again."""
        used = await self._credential(
            execution_request.tool.connection, execution_request.credential_owner
        )
        flight.upstream_task, until = execution_request.upstream_task, _end_of(call.limits)
        renewal = Renewal()
        while True:
            call.renews = used.can_be_renewed
            try:
                return await self._send_with(used, execution_request, flight, call)
            except (RefusedByServer, NotGreeted) as error:
                if error.status not in (401, 403):
                    raise
                if isinstance(error, RefusedByServer) and error.pause is not None:
                    flight.upstream_task = orjson.dumps(error.pause).decode()
                used = await self._renewed(used, error, flight, renewal)
            call.resend_reason = RENEWED
            if flight.is_task:
                call.limits = replace(call.limits, total_s=max(until - time.monotonic(), LET_GO_S))

    async def _renewed(
        self,
        used: OpenCredential,
        error: RefusedByServer | NotGreeted,
        flight: InFlightCall,
        renewal: Renewal,
    ) -> OpenCredential:
        """Raises the refusal, with what to do about it, where nothing is to be tried any more."""
        try:
            if not renewal.is_due(flight.upstream_task, is_task=flight.is_task):
                raise await self.credentials.refused(used)
            return await self.credentials.renewed(used, error.status or 0, error.challenge)
        except credential_store.ScopesMissing as why:
            refusal = _refused(error, why)
            refusal.consent_page = why.page
            raise refusal from why
        except CountersignError as why:
            if flight.is_task:
                # It goes on there, and nobody can ask about it.
                raise Lost(f"{error} {why}") from why
            raise _refused(error, why) from why

    async def _credential(
        self, connection: ServerConnection, owner: CredentialOwner
    ) -> OpenCredential:
        """Raises NotSent."""
        try:
            return await self.credentials.current(connection, owner)
        except CountersignError as error:
            not_sent = NotSent(str(error))
            if isinstance(error, credential_store.CredentialMissing):
                not_sent.consent_page = error.page
            raise not_sent from error

    async def _send_with(
        self,
        credential: OpenCredential,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call: UpstreamCall,
    ) -> CallReply:
        flight.used = credential
        target = self._target(_signed_in(execution_request.tool.connection, credential))
        if not flight.upstream_task:
            return await self.upstreams.call_tool(target, call)
        return await self._go_on(flight.upstream_task, flight, target, call)

    async def _clean(
        self, execution_request: ExecutionRequest, flight: InFlightCall, outcome: Outcome
    ) -> Outcome:
        """Treats the reply as the operator chose for the tool's results."""
        try:
            return await cleaned(outcome, execution_request)
        except asyncio.CancelledError:
            # The process is stopping; what came back is written down all the same.
            flight.is_patient = True
            done = clean_outcome(outcome, execution_request)
            await asyncio.shield(self._write(execution_request, flight, done))
            self._tell(execution_request, flight)
            raise

    async def _go_on(
        self, upstream_task: str, flight: InFlightCall, target: Target, call: UpstreamCall
    ) -> CallReply:
        """Continues what was sent before: an upstream task, or an answered input request."""
        going_on = orjson.loads(upstream_task)
        if "asked" in going_on:
            return await self.upstreams.call_tool(target, call, PausedCall(**going_on))
        flight.is_task = True
        return await self.upstreams.follow_task(target, TaskRef(**going_on), call)

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

    def _upstream_call(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
        events: CallEvents,
        inputs: InputRelay | None,
    ) -> UpstreamCall:
        tool, options = execution_request.tool, execution_request.options
        # Only a tool's call can become a task.
        may_be_task = tool.method == CALL
        session = options.session
        return UpstreamCall(
            name=tool.name if may_be_task else _named(execution_request),
            method=tool.method,
            arguments=execution_request.arguments,
            limits=_limits(execution_request),
            on_progress=partial(_pass_on, events),
            on_log=events.line if events.wants_log else None,
            log_level=options.log_level,
            cancel=flight.cancel,
            param_headers=_param_headers(execution_request) if tool.shape.param_headers else None,
            request_plan=_request_plan(tool) if tool.connection.transport == "api" else None,
            signs_in=bool(tool.connection.signs_in),
            idempotency_key=str(execution_request.call_id) if tool.safe_to_repeat else "",
            takes_tasks=options.takes_tasks and may_be_task,
            on_task=partial(self._note_task, execution_request, flight, call_listener)
            if may_be_task
            else None,
            on_status=events.say,
            on_task_end=partial(self._write_task, execution_request),
            asking=inputs,
            abilities=inputs.words if inputs else (),
            asker=str(execution_request.agent_id or ""),
            more=responses(execution_request.responses) if execution_request.responses else b"",
            as_task=tool.shape.runs_as_task,
            asks_pages=execution_request.revision == MODERN,
            trace=telemetry.passed_on(options.trace) if telemetry.is_on else options.trace,
            on_page=partial(completed_pages.notify, self.journal, session) if session else None,
            recheck=partial(self._recheck, execution_request),
            on_resend=partial(self._note_resend, execution_request),
        )

    def _inputs(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
        cleaner: ServerWords | None,
    ) -> InputRelay | None:
        """None where its agent can be asked nothing."""
        declared = execution_request.options.abilities
        words = abilities.relayed(declared, execution_request.tool.relays) if declared else ()
        if not words:
            return None
        return InputRelay(
            execution_request.call_id,
            execution_request.fence,
            words,
            self.journal,
            self.notifier,
            nudge=flight.nudge,
            on_ask=partial(call_listener.on_early_reply, "asked")
            if call_listener.on_early_reply
            else None,
            on_pause=partial(setattr, flight, "is_task"),
            cleaner=cleaner,
        )

    async def _note_task(
        self,
        execution_request: ExecutionRequest,
        flight: InFlightCall,
        call_listener: CallListener,
        ref: TaskRef,
    ) -> None:
        await self._write_task(execution_request, ref)
        flight.is_task, flight.upstream_task = True, orjson.dumps(ref).decode()
        if call_listener.on_early_reply is not None:
            call_listener.on_early_reply("task")

    async def _write_task(self, execution_request: ExecutionRequest, ref: TaskRef) -> None:
        line = {"id": execution_request.call_id, "fence": execution_request.fence}
        line["upstream_task"] = orjson.dumps(ref).decode()
        await self.journal.write((NOTE_TASK, line), within=None)

    async def _recheck(self, execution_request: ExecutionRequest) -> None:
        """Its server took long to greet: an emergency stop may have begun meanwhile."""
        line = {"id": execution_request.call_id, "fence": execution_request.fence}
        try:
            (row,) = await self.journal.write((STILL_FREE, line))
        except RecordUnavailable as error:
            raise NotSent(str(error)) from error
        if row is None:
            raise NotSent("Emergency stop, or the call was given up, while its server was greeted.")

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
        flight.is_patient = True
        await asyncio.shield(self._write(execution_request, flight, outcome))
        self._tell(execution_request, flight)

    def _write(
        self, execution_request: ExecutionRequest, flight: InFlightCall, outcome: Outcome
    ) -> Coroutine[Any, Any, asyncio.Future[None] | None]:
        call_id = execution_request.call_id
        line = ending(call_id, execution_request.fence, outcome, SYSTEM)
        if outcome.sealed is not None:
            line[received_results.MEMBER] = outcome.sealed
        return self.outcome_writer.write(flight, line)

    def _tell(self, execution_request: ExecutionRequest, flight: InFlightCall) -> None:
        """Notifies waiters in other processes, and pages."""
        if flight.asked or flight.is_task:
            self.journal.write_later((TELL, {"id": execution_request.call_id}))
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
                wanted=connection.wanted,
                by_events=connection.by_events,
            )
        return target


def _end_of(limits: Limits) -> float:
    return time.monotonic() + limits.total_s


def _with_credential(
    outcome: Outcome, used: OpenCredential, execution_request: ExecutionRequest
) -> Outcome:
    """Its entry names the credential that was sent: it may be newer than when the call began."""
    is_owned = bool(execution_request.tool.connection.credential_of)
    owner = {"owner": credential_store.owner_name(used.row)} if is_owned else {}
    said = {"credential": owner | credential_store.facts_of(used.row)}
    return replace(outcome, details=(outcome.details or {}) | said)


def _signed_in(connection: ServerConnection, credential: OpenCredential) -> ServerConnection:
    return connection.with_credential(credential.row, credential.headers)


def _refused(
    error: RefusedByServer | NotGreeted, why: CountersignError
) -> RefusedByServer | NotGreeted:
    """The same refusal, with what to do about it."""
    sentence = f"{error} {why}"
    if isinstance(error, NotGreeted):
        return NotGreeted(sentence, status=error.status)
    return RefusedByServer(sentence, error.status)


def _outcome(
    error: UpstreamError, execution_request: ExecutionRequest, flight: InFlightCall
) -> Outcome:
    if flight.stopping:
        safe = execution_request.tool.safe_to_repeat
        return cut_off(error, safe_to_repeat=safe, attempt=execution_request.fence)
    tool = execution_request.tool
    history = {
        "safe_to_repeat": tool.safe_to_repeat,
        "doubtful": execution_request.doubtful,
    }
    outcome = of_error(error, **history, cancel_is_final=tool.cancel_is_final or tool.is_harmless)
    if error.consent_page:
        outcome = replace(outcome, details=_wanted_consent(error))
        if not flight.upstream_task and _goes_on_after(error, execution_request):
            # The server looked at nothing but the credential, as at a 401.
            outcome = replace(outcome, executed=Executed.NO)
            return schedule_retry(outcome, attempt=execution_request.fence)
    # An agent that waits for a short call hears of an unreachable server at once.
    waits = outcome.executed == Executed.NO and not execution_request.background
    if waits or flight.cancel.is_set() or not may_go_again(error, **history):
        return outcome
    return schedule_retry(outcome, attempt=execution_request.fence)


def _wanted_consent(error: UpstreamError) -> dict[str, Any]:
    sent = {LACKED_SCOPES: True} if isinstance(error, RefusedByServer) else {}
    return {CONSENT_PAGE: error.consent_page, **sent}


def _goes_on_after(error: UpstreamError, execution_request: ExecutionRequest) -> bool:
    """Whether the approved call waits for its user's consent. What the server had already is sent
    once more, and no more than that.

    Sources: MCP 2026-07-28, basic/authorization, "Step-Up Authorization Flow"; RFC 6750, 3.1.
    """
    if not execution_request.is_approved or execution_request.doubtful:
        return False
    return not (isinstance(error, RefusedByServer) and execution_request.lacked_scopes)


def _answer(execution_request: ExecutionRequest, outcome: Outcome) -> Answer | None:
    if outcome.state == State.QUEUED:
        return None
    why = None
    if outcome.result is None:
        why = of_state(outcome.state, outcome.executed, outcome.details)
    answer = build_answer(
        execution_request.call_id,
        outcome.state,
        outcome.sentence,
        outcome.executed,
        outcome.kind,
        outcome.result,
        why,
    )
    page = (outcome.details or {}).get(CONSENT_PAGE, "")
    return replace(answer, consent_page=page) if page else answer


def _pass_on(events: CallEvents, report: ProgressReport) -> None:
    events.progress(report.progress, report.total, report.message)


def _limits(execution_request: ExecutionRequest) -> Limits:
    left_s = max(execution_request.tool.timeout_s - execution_request.since_s, LET_GO_S)
    return _limited(left_s, settings.RESULT_MAX_BYTES)


@lru_cache(maxsize=256)
def _limited(total_s: float, max_bytes: int) -> Limits:
    return Limits(total_s=total_s, max_bytes=max_bytes)


def _named(execution_request: ExecutionRequest) -> str:
    """The value of Mcp-Name for methods other than tools/call, by which intermediaries route."""
    if execution_request.tool.method not in METHODS:
        # What an extension repeats, nobody here knows.
        return ""
    params = orjson.loads(execution_request.arguments)
    return str(params.get("uri") or params.get("name") or "")


def _request_plan(tool: PublishedTool) -> Mapping[str, Any] | None:
    """The request to an HTTP API, as the published definition holds it."""
    plan: Mapping[str, Any] | None = tool.content.get("_meta", {}).get(REQUEST)
    return plan


def _param_headers(execution_request: ExecutionRequest) -> Mapping[str, str]:
    declared = execution_request.tool.shape.param_headers
    return param_headers(declared, orjson.loads(execution_request.arguments))
