"""A server reached by HTTP: which revision it speaks, its session, and calls of its tools."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from core.connection_pool import ConnectionPool
from core.kept_english import gettext as _
from core.outbound import AddressRefused
from registry.upstream import wire
from registry.upstream.session import input_requests
from registry.upstream.session.agreement import Agreement, base_headers, check_wanted
from registry.upstream.session.asking_sessions import AskingSessions
from registry.upstream.session.calling import CancelScope, TaskErrand, UpstreamCall
from registry.upstream.session.http_statuses import (
    RENEGOTIATE,
    SessionInvalid,
    meaning,
    not_greeted,
    refusal,
)
from registry.upstream.session.log_level import SET_LEVEL, logs
from registry.upstream.session.side_stream import SideStream
from registry.upstream.session.stdio import StdioServer
from registry.upstream.transport.http_request import (
    BadStatus,
    HttpRequest,
    deliver,
    exchange,
    fields,
    head,
    overhear,
)
from registry.upstream.transport.process import ignore
from registry.upstream.values import (
    CallReply,
    CancelledUpstream,
    Limits,
    Lost,
    NotGreeted,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    RefusedByServer,
    RpcErrorReply,
    Target,
    TimedOut,
    UnclearStatus,
    UpstreamError,
    describe_unknown,
)
from registry.upstream.wire import (
    ACKNOWLEDGED,
    BESIDE_CALLS,
    LEGACY,
    LISTEN,
    MODERN,
    OF_LISTS,
    WATCHED,
    WireMessage,
)

_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")
_PROBE_S = 15.0
# A session that was known so lately is taken to be known: a server can be another process after
# a fifth of a second.
_FRESH_S = 0.05
# The only earlier revision that has tasks.
OF_TASKS = "2025-11-25"
_ERRAND = Limits(connect_s=5, idle_s=5, total_s=5, max_bytes=64 * 1024)

Hear = Callable[[WireMessage], None]
T = TypeVar("T")

log = logging.getLogger(__name__)


class HttpServer:
    def __init__(
        self, target: Target, pool: ConnectionPool, ids: Iterator[int], words: tuple[str, ...] = ()
    ) -> None:
        self.target = target
        # What agents can be asked by a server that is told so once, when it is greeted.
        self._words = words or target.asks
        self._asking: AskingSessions[HttpServer] = AskingSessions()
        # Calls that go on over it.
        self.users = 0
        # Hears what belongs to no call.
        self.beside: Hear = ignore
        # Calls that may be asked something: of a question beside them nobody says whose it is.
        self._out: dict[int, tuple[Agreement, UpstreamCall, HttpRequest]] = {}
        self._pool = pool
        self._ids = ids
        self._agreement: Agreement | None = None
        self._opening = asyncio.Lock()
        # Sessions in which another process goes on with a task: not ended with this one.
        self._kept: set[str] = set()
        try:
            self._url = pool.guard.check_url(target.url)
        except AddressRefused as error:
            raise NotSent(str(error)) from error
        self._origin = pool.origin_of(self._url)
        self._side_stream = SideStream(pool, pool.origin_of(self._url), self._hear_beside)
        # Whose session the standing stream is beside.
        self._beside: Agreement | None = None
        self._base = base_headers(target)

    async def call(self, call: UpstreamCall) -> CallReply:
        agreement = self._agreement or await self._prepare(call.limits)
        if agreement.session and not self._is_fresh(agreement):
            agreement = await self._checked(agreement, call.limits)
        try:
            return await self._call(agreement, call)
        except SessionInvalid as invalid:
            call.resend_reason = str(invalid)
            agreement = await self._prepare(call.limits, instead_of=agreement)
        if agreement.modern or call.abilities == self._words:
            return await self._call_again(agreement, call)
        # It was of today when it was asked last.
        asking = await self.session_for(call, call.limits)
        if not isinstance(asking, HttpServer):
            return await asking.call(call)
        agreement = asking._agreement or await asking._prepare(call.limits)
        if agreement.session and not asking._is_fresh(agreement):
            agreement = await asking._checked(agreement, call.limits)
        return await asking._call_again(agreement, call)

    async def _call_again(self, agreement: Agreement, call: UpstreamCall) -> CallReply:
        """Sends the call once more, where the server's own words say that it took nothing."""
        try:
            return await self._call(agreement, call)
        except SessionInvalid as invalid:
            # Just greeted anew, it contradicts itself: its word is no longer worth a third send.
            said = f"{invalid} It had just been greeted anew, and it says so a second time."
            raise UnclearStatus(said, invalid.status) from None

    def _is_fresh(self, agreement: Agreement) -> bool:
        """The server has hardly been restarted since it knew the session."""
        heard_s = asyncio.get_running_loop().time() - agreement.known_at
        return heard_s < _FRESH_S or self._pool.has_kept(self._origin)

    async def _checked(self, agreement: Agreement, limits: Limits) -> Agreement:
        """Whether the server still knows the session is asked with what acts on nothing: many say
        that they do not with a status that would leave a call's outcome unknown."""
        try:
            await self._ask(agreement, "ping", b"", _ERRAND)
        except SessionInvalid:
            return await self._prepare(limits, instead_of=agreement)
        except UnclearStatus as error:
            if error.status in RENEGOTIATE:
                return await self._prepare(limits, instead_of=agreement)
        except (RpcErrorReply, OutcomeUnknown, RefusedByServer):
            # The call itself will tell.
            pass
        return agreement

    async def session_for(self, call: UpstreamCall, limits: Limits) -> "HttpServer | StdioServer":
        """The same server for what this call's agent can be asked: of an earlier revision, with a
        session of its own."""
        known = self.target.revision
        if known not in LEGACY:
            agreement = self._agreement or await self._prepare(limits)
            if agreement.modern:
                return self
            known = agreement.revision
        words, target = call.abilities, replace(self.target, revision=known)
        return await self._asking.find((words, call.asker), partial(self._same_for, words, target))

    async def for_task(self, session: str) -> "HttpServer":
        """The same server in the session that began a task, whichever process opened that."""
        if not session or (self._agreement and self._agreement.session == session):
            return self
        same = self._same_for(self._words, self.target)
        same._agreement = agreement = same._agreement_on(OF_TASKS, {}, session)
        same.keep(session)
        await same._hear_questions(agreement)
        return same

    def keep(self, session: str) -> None:
        """Leaves the session open at the server after `close`, for another process."""
        self._kept.add(session)

    def _same_for(self, words: tuple[str, ...], target: Target) -> "HttpServer":
        same = HttpServer(target, self._pool, self._ids, words)
        same.beside = self.beside
        return same

    async def ask(self, method: str, params: bytes, limits: Limits) -> dict[str, Any]:
        """A request that changes nothing."""
        agreement = self._agreement or await self._settle(limits)
        try:
            return await self._ask(agreement, method, params, limits)
        except SessionInvalid:
            pass
        except UnclearStatus as error:
            if error.status not in RENEGOTIATE:
                raise
        agreement = await self._settle(limits, instead_of=agreement)
        try:
            return await self._ask(agreement, method, params, limits)
        except SessionInvalid as invalid:
            raise NotSent(str(invalid)) from None

    async def about_task(self, errand: TaskErrand, limits: Limits) -> WireMessage:
        agreement = self._agreement or await self._settle(limits)
        try:
            return await self._about_task(agreement, errand, limits)
        except SessionInvalid:
            agreement = await self._settle(limits, instead_of=agreement)
        try:
            return await self._about_task(agreement, errand, limits)
        except SessionInvalid as invalid:
            raise NotSent(str(invalid)) from None

    async def _about_task(
        self, agreement: Agreement, errand: TaskErrand, limits: Limits
    ) -> WireMessage:
        id_ = next(self._ids)
        request = self._request(
            id_,
            errand.request(id_, modern=agreement.modern),
            agreement.head(errand.method, errand.task),
            limits,
        )
        if errand.call is not None:
            request.resume = agreement.resuming
            request.hear = partial(self._hear, agreement, errand.call, request)
            self._out[id_] = (agreement, errand.call, request)
        try:
            return await exchange(self._pool, request)
        except BadStatus as bad:
            raise self._meaning(bad, id_, agreement) from None
        finally:
            self._forget(request)

    async def listen_to_task(self, task: str, hear: Hear) -> None:
        """Runs until the server ends the stream of this task's updates."""
        agreement = self._agreement or await self._settle(Limits())
        if agreement.modern:
            await self._listen(agreement, {"taskIds": [task]}, hear)

    async def watch(self, uris: Sequence[str], hear: Hear) -> None:
        """Runs until the server ends the stream of these resources' updates."""
        agreement = self._agreement or await self._settle(Limits())
        if agreement.modern:
            await self._listen(agreement, {"resourceSubscriptions": list(uris)}, hear)
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(self._overhear(agreement, hear))
            for uri in uris:
                params = b'"uri":' + orjson.dumps(uri)
                await self._ask(agreement, "resources/subscribe", params, Limits())

    async def attend(self, opened: asyncio.Event) -> None:
        """Runs until the server ends the stream on which it announces list changes."""
        agreement = self._agreement or await self._settle(Limits())

        def hear(message: WireMessage) -> None:
            if message.method == ACKNOWLEDGED:
                opened.set()
            self.beside(message)

        if agreement.modern:
            await self._listen(agreement, OF_LISTS, hear)
        else:
            await self._overhear(agreement, self._hear_beside, opened)

    async def _listen(self, agreement: Agreement, wanted: dict[str, Any], hear: Hear) -> None:
        id_ = next(self._ids)
        body = wire.request(id_, LISTEN, wire.listening(wanted))
        request = self._request(id_, body, agreement.head(LISTEN), WATCHED)
        request.hear = hear
        message = await self._watched(exchange(self._pool, request))
        if message.error:
            raise RpcErrorReply(message.error)

    async def _overhear(
        self, agreement: Agreement, hear: Hear, opened: asyncio.Event | None = None
    ) -> None:
        request = self._request(0, b"", agreement.listening(), WATCHED)
        request.hear, request.opened = hear, opened
        await self._watched(overhear(self._pool, request))

    async def _watched(self, stream: Coroutine[Any, Any, T]) -> T:
        try:
            return await stream
        except BadStatus as bad:
            raise Lost(_("The server does not report changes: HTTP %d.") % bad.status) from None

    async def introduce(self, limits: Limits) -> tuple[str, dict[str, Any]]:
        """The revision, and what the server says of itself."""
        agreement = self._agreement
        # A session in use is kept: what it said at its opening holds as long as it lasts.
        if agreement is None or not (agreement.session and agreement.opening):
            agreement = await self._settle(limits, instead_of=agreement, fresh=True)
        return agreement.revision, agreement.opening

    async def close(self) -> None:
        await self._asking.close()
        self._side_stream.close()
        agreement, self._agreement = self._agreement, None
        if agreement and agreement.session and agreement.session not in self._kept:
            ending = head("DELETE", self._url, agreement.headers)
            await self._tell(self._request(0, b"", ending, _ERRAND))

    async def _prepare(self, limits: Limits, instead_of: Agreement | None = None) -> Agreement:
        try:
            return await self._settle(limits, instead_of=instead_of)
        except NotSent:
            raise
        except UpstreamError as error:
            raise not_greeted(error) from error

    async def _settle(
        self, limits: Limits, instead_of: Agreement | None = None, fresh: bool = False
    ) -> Agreement:
        async with self._opening:
            # Somebody else may have settled it while we waited.
            if self._agreement is instead_of or self._agreement is None:
                hint = "" if fresh or instead_of else self.target.revision
                self._agreement = await self._negotiate(hint, limits)
            return self._agreement

    async def _negotiate(self, hint: str, limits: Limits) -> Agreement:
        """Negotiates the revision by requests without effects, before the first call: the status of
        a call would not tell it."""
        limits = replace(limits, total_s=min(limits.total_s, _PROBE_S))
        agreement = await self._agreed(hint, limits)
        check_wanted(self.target, agreement.revision)
        return agreement

    async def _agreed(self, hint: str, limits: Limits) -> Agreement:
        if self.target.wanted in LEGACY:
            return await self._initialize(self.target.wanted, limits)
        if hint in LEGACY and not self.target.wanted:
            try:
                return await self._initialize(hint, limits)
            except UpstreamError:
                log.info("%s no longer greets as %s, probing", self._url.host, hint)
        return await self._probe(limits)

    def _modern(self, opening: dict[str, Any] | None = None) -> Agreement:
        headers = self._base | {"MCP-Protocol-Version": MODERN}
        return Agreement(MODERN, self._url, headers, opening or {})

    async def _probe(self, limits: Limits) -> Agreement:
        """Ask in the present way; whatever an older server makes of it, greet it in its own."""
        offered: Any = None
        try:
            opening = await self._ask(self._modern(), "server/discover", b"", limits)
        except (NotSent, RefusedByServer):
            raise
        except SessionInvalid as invalid:
            offered = invalid.supported
        except UpstreamError as error:
            offered = wire.supported(error.data) if isinstance(error, RpcErrorReply) else None
        else:
            offered = opening.get("supportedVersions")
            if isinstance(offered, list) and MODERN in offered:
                return self._modern(opening)
        if isinstance(offered, list) and MODERN in offered:
            # It refused, and names the revision that it was asked in: once more, as it says.
            return self._modern(await self._discover_again(limits))
        return await self._initialize(wire.best_legacy(offered), limits)

    async def _discover_again(self, limits: Limits) -> dict[str, Any]:
        try:
            return await self._ask(self._modern(), "server/discover", b"", limits)
        except SessionInvalid as invalid:
            names = _("It names that revision as one that it speaks.")
            raise NotSent(f"{invalid} {names}") from None

    async def _initialize(self, revision: str, limits: Limits) -> Agreement:
        id_ = next(self._ids)
        body = wire.request(
            id_, "initialize", orjson.dumps(wire.greeting(revision, self._words))[1:-1]
        )
        request = self._request(id_, body, head("POST", self._url, self._base), limits)
        try:
            message = await exchange(self._pool, request)
        except BadStatus as bad:
            raise _turned_away(refusal(bad, id_)) from None
        agreement = self._greeted(message, request)
        ready = wire.notification("notifications/initialized")
        status = await deliver(self._pool, self._request(0, ready, agreement.head(), limits))
        if status >= 300:
            raise NotGreeted(f"The server refused the greeting with HTTP {status}.", status=status)
        await self._hear_questions(agreement)
        return agreement

    async def _hear_questions(self, agreement: Agreement) -> None:
        if self._words and not self.target.asks:
            await self._listen_beside(agreement)

    def _greeted(self, message: WireMessage, request: HttpRequest) -> Agreement:
        if message.error:
            raise RpcErrorReply(message.error)
        opening = message.value or {}
        revision = opening.get("protocolVersion")
        if revision not in LEGACY:
            raise ProtocolError(describe_unknown(revision))
        if request.session and not _SESSION_ID.fullmatch(request.session):
            raise ProtocolError(_("The server's session id is not visible ASCII."))
        return self._agreement_on(revision, opening, request.session)

    def _agreement_on(self, revision: str, opening: dict[str, Any], session: str) -> Agreement:
        headers = self._base.copy()
        if revision >= "2025-06-18":
            headers["MCP-Protocol-Version"] = revision
        if session:
            headers["Mcp-Session-Id"] = session
        known_at = asyncio.get_running_loop().time()
        return Agreement(revision, self._url, headers, opening, session, known_at=known_at)

    async def _ask(
        self, agreement: Agreement, method: str, params: bytes, limits: Limits
    ) -> dict[str, Any]:
        id_ = next(self._ids)
        parts = [part for part in (params, wire.meta(agreement.modern, words=self._words)) if part]
        body = wire.request(id_, method, b",".join(parts))
        request = self._request(id_, body, agreement.head(method), limits)
        try:
            message = await exchange(self._pool, request)
        except BadStatus as bad:
            raise self._meaning(bad, id_, agreement) from None
        if message.error:
            raise RpcErrorReply(message.error)
        return message.value or {}

    def _meaning(
        self, bad: BadStatus, id_: int, agreement: Agreement
    ) -> UpstreamError | SessionInvalid:
        if bad.status in RENEGOTIATE and self._agreement is agreement:
            # Perhaps another server by now: it is greeted before the next request.
            self._agreement = None
        return meaning(bad, id_, revision=agreement.revision, session=agreement.session)

    def _call(self, agreement: Agreement, call: UpstreamCall) -> Coroutine[Any, Any, CallReply]:
        if agreement.modern or not call.on_log or not logs(agreement.opening):
            return self._send(agreement, call)
        return self._sent_at_level(agreement, call)

    async def _sent_at_level(self, agreement: Agreement, call: UpstreamCall) -> CallReply:
        tell = partial(self._set_level, agreement)
        async with agreement.loudness.enough(call.log_level, tell):
            return await self._send(agreement, call)

    async def _set_level(self, agreement: Agreement, level: str) -> None:
        await self._listen_beside(agreement)
        # Whatever it makes of it: the call itself does not depend on it.
        with contextlib.suppress(UpstreamError, SessionInvalid):
            await self._ask(agreement, SET_LEVEL, b'"level":"%b"' % level.encode(), _ERRAND)

    async def _listen_beside(self, agreement: Agreement) -> None:
        """Some servers ask, and log, on the stream beside their session only."""
        if agreement.session and self._beside is not agreement:
            self._beside = agreement
            await self._side_stream.open(agreement)

    async def _send(self, agreement: Agreement, call: UpstreamCall) -> CallReply:
        id_ = next(self._ids)
        request = self._call_request(agreement, call, id_)
        stop = None if agreement.modern else partial(self._stop, agreement, id_)
        try:
            with CancelScope(call.cancel, stop, call.limits.cancel_grace_s) as withdrawal:
                await call.note_send()
                self._out[id_] = (agreement, call, request)
                message = await exchange(self._pool, request)
                agreement.known_at = asyncio.get_running_loop().time()
                if call.as_task:
                    call.session = agreement.session
        except BadStatus as bad:
            raise self._meaning(bad, id_, agreement) from None
        except CancelledUpstream:
            if request.left:
                raise
            raise NotSent(_("The call was withdrawn before it was sent.")) from None
        except (TimedOut, asyncio.CancelledError):
            if request.left and not agreement.modern and not withdrawal.asked:
                self._pool.spawn(self._stop(agreement, id_))
            raise
        finally:
            self._forget(request)
        if message.error and withdrawal.asked:
            raise CancelledUpstream(acknowledged=True)
        return wire.reply(message)

    def _forget(self, request: HttpRequest) -> None:
        """Whatever it still asks, nothing waits for an answer any more."""
        self._out.pop(request.id, None)
        # It holds the request itself: without this, nothing of a call goes before the collector of
        # cycles comes by.
        request.hear = None
        for errand in request.errands:
            errand.cancel()

    def _call_request(self, agreement: Agreement, call: UpstreamCall, id_: int) -> HttpRequest:
        modern = agreement.modern
        meta = call.meta(id_, modern=modern)
        if call.method == wire.TOOLS_CALL:
            head, name = agreement.for_tool(call.name)
            if call.param_headers and modern:
                head += fields(call.param_headers)
            as_task = call.as_task and not modern
            body = wire.call(id_, name, call.arguments, meta, more=call.more, as_task=as_task)
        else:
            head = agreement.head(call.method, call.name)
            body = wire.call_request(id_, call.method, call.arguments, meta, more=call.more)
        request = self._request(id_, body, head, call.limits)
        request.resume = None if agreement.modern else agreement.resuming
        request.hear = partial(self._hear, agreement, call, request)
        return request

    def _request(self, id_: int, body: bytes, head: bytes, limits: Limits) -> HttpRequest:
        return HttpRequest(id=id_, origin=self._origin, head=head, body=body, limits=limits)

    def _hear(
        self, agreement: Agreement, call: UpstreamCall, request: HttpRequest, message: WireMessage
    ) -> None:
        if message.method in BESIDE_CALLS:
            self.beside(message)
        elif message.id is None:
            call.hear(message)
        elif not agreement.modern and input_requests.may_be_asked(call, message):
            errand = self._pool.spawn(self._answer(agreement, call, request, message))
            request.errands.append(errand)
        elif not agreement.modern:
            answer = self._request(0, wire.answer_to(message), agreement.head(), _ERRAND)
            self._pool.spawn(self._tell(answer))

    def _hear_beside(self, message: WireMessage) -> None:
        """Only with one call out it can be about none but that: over this session nobody is asked
        but one agent."""
        if message.method in BESIDE_CALLS:
            self.beside(message)
        elif len(self._out) == 1:
            self._hear(*next(iter(self._out.values())), message)
        elif self._agreement is not None and message.id is not None:
            body = wire.answer_to(message, of_no_call=bool(self._words))
            answer = self._request(0, body, self._agreement.head(), _ERRAND)
            self._pool.spawn(self._tell(answer))

    async def _answer(
        self, agreement: Agreement, call: UpstreamCall, request: HttpRequest, question: WireMessage
    ) -> None:
        with request.clock.stopped():
            body = await input_requests.reply_to(call, question)
        await self._tell(self._request(0, body, agreement.head(), _ERRAND))

    async def _stop(self, agreement: Agreement, id_: int) -> None:
        body = wire.cancelled(id_, "The caller withdrew the call.")
        await self._tell(self._request(0, body, agreement.head(), _ERRAND))

    async def _tell(self, request: HttpRequest) -> None:
        try:
            await deliver(self._pool, request)
        except UpstreamError as error:
            log.info("%s was not told: %s", self._url.host, error)


def _turned_away(error: UpstreamError) -> UpstreamError:
    """A greeting acts on nothing, so that no status leaves anything in doubt."""
    if isinstance(error, UnclearStatus) and error.status == 404:
        return NotGreeted("There is no MCP server at this URL (HTTP 404).", status=404)
    if isinstance(error, UnclearStatus):
        return NotGreeted(str(error), status=error.status)
    return error
