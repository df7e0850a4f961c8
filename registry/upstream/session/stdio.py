"""A server that runs as our own child: started when needed, started again within a budget."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from core.kept_english import gettext as _
from registry.upstream import wire
from registry.upstream.session import input_requests
from registry.upstream.session.agreement import check_wanted
from registry.upstream.session.asking_sessions import AskingSessions
from registry.upstream.session.calling import CancelScope, TaskErrand, UpstreamCall
from registry.upstream.session.log_level import SET_LEVEL, logs
from registry.upstream.transport.process import (
    ProcessClosed,
    ReplyHandlers,
    ServerProcess,
    Tail,
    ignore,
)
from registry.upstream.values import (
    CallReply,
    CancelledUpstream,
    Limits,
    Lost,
    NotSent,
    ProtocolError,
    RpcErrorReply,
    Target,
    TimedOut,
    UpstreamError,
    describe_unknown,
)
from registry.upstream.wire import ATTENDED, LEGACY, LISTEN, MODERN, OF_LISTS, WATCHED, WireMessage

_STARTS, _WITHIN_S = 5, 60.0
# A server may take its time to start, and an older one need not answer what it does not know.
_PROBE_S = 10.0
_GREETING_S = 30.0
_LAST_WORDS = 600
_ERRAND = Limits(idle_s=5, total_s=5)

log = logging.getLogger(__name__)

_ENDED_OFTEN = _(
    "The server's process ended %(times)d times within %(seconds)s seconds and is left alone for a "
    "while."
)


class StdioServer:
    def __init__(self, target: Target, ids: Iterator[int], words: tuple[str, ...] = ()) -> None:
        self.target = target
        # What agents can be asked by a server that is told so once, when it is greeted.
        self._words = words or target.asks
        self._asking: AskingSessions[StdioServer] = AskingSessions()
        # Calls that go on over it.
        self.users = 0
        # Hears what belongs to no call.
        self.beside: Callable[[WireMessage], None] = ignore
        self._ids = ids
        self._stderr = Tail()
        # The process there is, and the same once it has been greeted.
        self._child: ServerProcess | None = None
        self._ready: ServerProcess | None = None
        self._starting = asyncio.Lock()
        self._starts: deque[float] = deque(maxlen=_STARTS)
        self._revision = target.revision
        self._opening: dict[str, Any] = {}
        self._closed = False

    async def call(self, call: UpstreamCall) -> CallReply:
        child = self._live_process() or await self._prepare()
        if self._revision == MODERN or not call.on_log or not logs(self._opening):
            return await self._sent(child, call)
        async with child.loudness.enough(call.log_level, partial(self._set_level, child)):
            return await self._sent(child, call)

    async def _set_level(self, child: ServerProcess, level: str) -> None:
        params = b'"level":"%b"' % level.encode()
        # Whatever it makes of it: the call itself does not depend on it.
        with contextlib.suppress(UpstreamError):
            await self._ask(child, SET_LEVEL, params, _ERRAND, modern=False)

    async def _sent(self, child: ServerProcess, call: UpstreamCall) -> CallReply:
        id_ = next(self._ids)
        line = self._line(call, id_)
        handlers = ReplyHandlers(
            call.hear,
            partial(input_requests.may_be_asked, call),
            partial(input_requests.reply_to, call),
        )
        with CancelScope(
            call.cancel, partial(self._stop, child, id_), call.limits.cancel_grace_s
        ) as withdrawal:
            await call.note_send()
            try:
                message = await child.ask(id_, line, call.limits, handlers)
            except (TimedOut, asyncio.CancelledError):
                if not withdrawal.asked:
                    await self._stop(child, id_)
                raise
        if message.error and withdrawal.asked:
            raise CancelledUpstream(acknowledged=True)
        return wire.reply(message)

    async def session_for(self, call: UpstreamCall, limits: Limits) -> "StdioServer":
        """The same server for what this call's agent can be asked: of an earlier revision, a
        process of its own."""
        if self.target.revision not in LEGACY:
            if self._live_process() is None:
                await self._prepare()
            if self._revision == MODERN:
                return self
        key = call.abilities, call.asker
        return await self._asking.find(key, partial(self._same_for, call.abilities))

    async def for_task(self, session: str) -> "StdioServer":
        """This one: its tasks are of its process."""
        return self

    def keep(self, session: str) -> None:
        """There are no sessions here."""

    def _same_for(self, words: tuple[str, ...]) -> "StdioServer":
        target = replace(self.target, revision=self._revision)
        same = StdioServer(target, self._ids, words)
        same.beside = self.beside
        return same

    async def ask(self, method: str, params: bytes, limits: Limits) -> dict[str, Any]:
        """A request that changes nothing."""
        child = self._live_process() or await self._prepare()
        return await self._ask(child, method, params, limits, modern=self._revision == MODERN)

    async def about_task(self, errand: TaskErrand, limits: Limits) -> WireMessage:
        child = self._live_process() or await self._prepare()
        id_ = next(self._ids)
        line = errand.request(id_, modern=self._revision == MODERN)
        return await child.ask(id_, line, limits, _of_errand(errand))

    async def listen_to_task(self, task: str, hear: Callable[[WireMessage], None]) -> None:
        """Runs while the process sends updates of this task."""
        child = self._live_process() or await self._prepare()
        if self._revision == MODERN:
            await self._listen(child, {"taskIds": [task]}, WATCHED, hear)

    async def watch(self, uris: Sequence[str], hear: Callable[[WireMessage], None]) -> None:
        """Runs while the process lives that sends updates of these resources: one without calls."""
        child = self._live_process() or await self._prepare()
        child.ear, child.attended = hear, True
        if self._revision == MODERN:
            await self._listen(child, {"resourceSubscriptions": list(uris)}, WATCHED)
            return
        for uri in uris:
            params = b'"uri":' + orjson.dumps(uri)
            await self._ask(child, "resources/subscribe", params, Limits(), modern=False)
        await child.over()

    async def attend(self, opened: asyncio.Event) -> None:
        """Runs while the process lives, which announces list changes by itself."""
        child = self._live_process() or await self._prepare()
        child.attended = True
        opened.set()
        if self._revision == MODERN:
            await self._listen(child, OF_LISTS, ATTENDED)
        else:
            await child.over()

    async def _listen(
        self,
        child: ServerProcess,
        wanted: dict[str, Any],
        limits: Limits,
        hear: Callable[[WireMessage], None] = ignore,
    ) -> None:
        id_ = next(self._ids)
        line = wire.request(id_, LISTEN, wire.listening(wanted))
        try:
            message = await child.ask(id_, line, limits, ReplyHandlers(hear))
        except asyncio.CancelledError:
            await self._stop(child, id_)
            raise
        if message.error:
            raise RpcErrorReply(message.error)

    async def introduce(self, limits: Limits) -> tuple[str, dict[str, Any]]:
        """The revision, and what the server says of itself."""
        if self._live_process() is None:
            await self._prepare()
        return self._revision, self._opening

    def stderr(self) -> str:
        return self._stderr.text()

    async def close(self) -> None:
        await self._asking.close()
        self._closed = True
        if self._child:
            await self._child.stop()
        # A start that was under way has seen by now that it is not wanted.
        async with self._starting:
            if self._child:
                await self._child.stop()

    def _live_process(self) -> ServerProcess | None:
        return self._ready if self._ready and not self._ready.ended else None

    async def _prepare(self) -> ServerProcess:
        async with self._starting:
            if running := self._live_process():
                return running
            try:
                ready = await self._start()
                check_wanted(self.target, self._revision)
                self._ready = ready
                ready.ear = self.beside
            except UpstreamError as error:
                # What kept it from being started says so itself.
                if isinstance(error, NotSent) and not isinstance(error, ProcessClosed):
                    raise
                raise NotSent(
                    _("The server did not start. %s") % error, detail=self._last_words()
                ) from error
            return ready

    async def _start(self) -> ServerProcess:
        child = await self._spawn()
        if self.target.wanted in LEGACY:
            return await self._initialize(child, self.target.wanted)
        if self._revision in LEGACY and not self.target.wanted:
            try:
                return await self._initialize(child, self._revision)
            except (RpcErrorReply, ProtocolError):
                log.info("%s no longer greets as %s, probing", self.target.key, self._revision)
        revision = await self._probe(child)
        if revision == MODERN:
            self._revision = MODERN
            return child
        # Some leave when asked something that they do not know.
        if child.ended:
            child = await self._spawn()
        try:
            return await self._initialize(child, revision)
        except RpcErrorReply as error:
            # It was only too slow to answer the probe: by now it does.
            offered = wire.supported(error.data)
            if not isinstance(offered, list) or MODERN not in offered:
                raise
            if await self._probe(child) != MODERN:
                raise
        self._revision = MODERN
        return child

    async def _spawn(self) -> ServerProcess:
        if self._child:
            await self._child.stop()
        self._refuse_if_closed()
        now = time.monotonic()
        if len(self._starts) == _STARTS and now - self._starts[0] < _WITHIN_S:
            said = _ENDED_OFTEN % {"times": _STARTS, "seconds": f"{_WITHIN_S:g}"}
            raise NotSent(said, detail=self._last_words())
        self._starts.append(now)
        self._child = await ServerProcess.start(self.target, self._stderr)
        # Whoever closed meanwhile has seen no child yet, and stops this one.
        self._refuse_if_closed()
        return self._child

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise NotSent(_("The server was removed."))

    async def _probe(self, child: ServerProcess) -> str:
        """The revision to speak. Whatever an older server makes of the question, it is older."""
        limits = Limits(idle_s=_PROBE_S, total_s=_PROBE_S)
        try:
            opening = await self._ask(child, "server/discover", b"", limits, modern=True)
        except RpcErrorReply as error:
            return wire.best_legacy(wire.supported(error.data))
        except (Lost, TimedOut, ProtocolError, ProcessClosed):
            return LEGACY[0]
        offered = opening.get("supportedVersions")
        if not isinstance(offered, list) or MODERN not in offered:
            return wire.best_legacy(offered)
        self._opening = opening
        return MODERN

    async def _initialize(self, child: ServerProcess, revision: str) -> ServerProcess:
        limits = Limits(idle_s=_GREETING_S, total_s=_GREETING_S)
        params = orjson.dumps(wire.greeting(revision, self._words))[1:-1]
        opening = await self._ask(child, "initialize", params, limits, modern=False)
        settled = opening.get("protocolVersion")
        if settled not in LEGACY:
            raise ProtocolError(describe_unknown(settled))
        child.write(wire.notification("notifications/initialized"))
        self._revision, self._opening = settled, opening
        return child

    async def _ask(
        self, child: ServerProcess, method: str, params: bytes, limits: Limits, *, modern: bool
    ) -> dict[str, Any]:
        id_ = next(self._ids)
        parts = [part for part in (params, wire.meta(modern, words=self._words)) if part]
        line = wire.request(id_, method, b",".join(parts))
        message = await child.ask(id_, line, limits, ReplyHandlers())
        if message.error:
            raise RpcErrorReply(message.error)
        return message.value or {}

    def _line(self, call: UpstreamCall, id_: int) -> bytes:
        modern = self._revision == MODERN
        meta = call.meta(id_, modern=modern)
        if call.method == wire.TOOLS_CALL:
            name, as_task = orjson.dumps(call.name), call.as_task and not modern
            return wire.call(id_, name, call.arguments, meta, more=call.more, as_task=as_task)
        return wire.call_request(id_, call.method, call.arguments, meta, more=call.more)

    async def _stop(self, child: ServerProcess, id_: int) -> None:
        child.tell(wire.cancelled(id_, "The caller withdrew the call."))

    def _last_words(self) -> str:
        return self._stderr.text(_LAST_WORDS)


def _of_errand(errand: TaskErrand) -> ReplyHandlers:
    call = errand.call
    if call is None:
        return ReplyHandlers()
    return ReplyHandlers(
        call.hear,
        partial(input_requests.may_be_asked, call),
        partial(input_requests.reply_to, call),
        token=call.token,
        task=errand.task,
    )
