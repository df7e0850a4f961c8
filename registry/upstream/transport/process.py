"""One process of a server on stdio: its pipes, the calls that wait for it, and its end."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from core import die_with_parent
from core.kept_english import gettext as _
from core.system_errors import describe
from registry.upstream import wire
from registry.upstream.session.log_level import Loudness
from registry.upstream.transport.line_reader import LineReader, Overlong
from registry.upstream.transport.thinning import FEW, thinned
from registry.upstream.values import (
    Limits,
    Lost,
    NotSent,
    ProtocolError,
    ResultTooLarge,
    Target,
    TimedOut,
    UpstreamError,
    describe_overrun,
    describe_silence,
    describe_size,
)
from registry.upstream.wire import WireMessage

_INHERITED = ("PATH", "HOME", "LANG")
# What may wait for a child that does not read; more would be memory without end.
_UNREAD = 16 * 1024 * 1024
_STDERR = 64 * 1024
_FRAME = 4096
# How long each kind of asking to end is given: closed input, SIGTERM, SIGKILL.
_PATIENCE_S = 2.0
# A process that closes its output usually ends with it.
_EXIT_S = 0.5
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})')
_OF_NO_CALL = {*wire.BESIDE_CALLS, wire.UPDATED}


def ignore(message: WireMessage) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ReplyHandlers:
    """To whoever asked: for what the server says, and for what it asks in the middle."""

    hear: Callable[[WireMessage], None] = ignore
    may_ask: Callable[[WireMessage], bool] | None = None
    answer: Callable[[WireMessage], Awaitable[bytes]] | None = None
    # Of an earlier request whose progress comes here too, and the task that it became.
    token: int = 0
    task: str = ""


class Tail:
    """The end of what a server wrote to its standard error, over all its processes."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * _STDERR:
            del self._kept[:-_STDERR]

    def text(self, size: int = _STDERR) -> str:
        return bytes(self._kept[-size:]).decode(errors="replace")


@dataclass(slots=True)
class PendingRequest:
    reply: asyncio.Future[WireMessage]
    limits: Limits
    way: ReplyHandlers
    heard_at: float
    idle: asyncio.TimerHandle | None = None
    total: asyncio.TimerHandle | None = None
    # Answers to what the server asks meanwhile, on their way.
    errands: set[asyncio.Task[None]] = field(default_factory=set)
    left_s: float = 0.0


class ProcessClosed(NotSent):
    """The process takes nothing, or no more."""


class ServerProcess(asyncio.SubprocessProtocol):
    def __init__(self, stderr: Tail) -> None:
        self._loop = asyncio.get_running_loop()
        self._stderr = stderr
        self._lines = LineReader(Limits().max_bytes + _FRAME)
        self._waiting: dict[int, PendingRequest] = {}
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        # Hears what belongs to no call.
        self.ear: Callable[[WireMessage], None] | None = None
        # Somebody listens for what it says by itself.
        self.attended = False
        self.ended = False
        self.loudness = Loudness()
        self._silent = asyncio.Event()

    @classmethod
    async def start(cls, target: Target, stderr: Tail) -> "ServerProcess":
        env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        env |= target.env
        program = _program(target, env)
        try:
            _transport, child = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(stderr),
                *die_with_parent.command([program, *target.argv[1:]]),
                env=env,
                pass_fds=die_with_parent.lifelines(),
                cwd=target.cwd or None,
                start_new_session=True,
            )
        except OSError as error:
            said = _("The server's process cannot be started: %s.")
            raise NotSent(said % describe(error.errno or 0)) from error
        return child

    # What is sent

    async def ask(self, id_: int, line: bytes, limits: Limits, way: ReplyHandlers) -> WireMessage:
        """The reply to one request, among whatever else is asked at the same time."""
        self._lines.limit = max(self._lines.limit, limits.max_bytes + _FRAME)
        self.write(line)
        waiting = PendingRequest(self._loop.create_future(), limits, way, self._loop.time())
        self._waiting[id_] = waiting
        waiting.total = self._loop.call_later(limits.total_s, _end_total, waiting)
        waiting.idle = self._loop.call_later(limits.idle_s, self._end_idle, waiting)
        try:
            return await waiting.reply
        finally:
            waiting.total.cancel()
            waiting.idle.cancel()
            for errand in waiting.errands:
                errand.cancel()
            del self._waiting[id_]

    async def over(self) -> None:
        """Waits for the end of its output."""
        await self._silent.wait()

    def write(self, line: bytes) -> None:
        """Hand over one message; NotSent if none of it can have been taken."""
        if self.ended or self._transport is None:
            raise ProcessClosed("The server's process has ended.")
        pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        if pipe is None or pipe.is_closing():
            raise ProcessClosed("The server's process reads no input any more.")
        if pipe.get_write_buffer_size() + len(line) > _UNREAD:
            raise ProcessClosed("The server's process does not read its input.")
        # Raw line ends can only stand between tokens, and here they would end the message.
        if b"\n" in line or b"\r" in line:
            line = line.replace(b"\n", b" ").replace(b"\r", b" ")
        pipe.write(line + b"\n")

    def tell(self, line: bytes) -> None:
        """Like write, for messages that do not matter once the process is gone."""
        with contextlib.suppress(NotSent):
            self.write(line)

    # What comes back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr.add(data)
            return
        try:
            lines = self._lines.feed(data)
        except ResultTooLarge as error:
            self.ended = True
            self._fail_all(error)
            self._signal(signal.SIGKILL)
            return
        if len(lines) > FEW:
            lines = thinned(lines)
        for line in lines:
            if isinstance(line, Overlong):
                self._fail_overlong(line)
            else:
                self._take(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._leaving(_("The server's process closed its output before the reply."), _EXIT_S)

    def process_exited(self) -> None:
        assert self._transport is not None
        # Whatever it started itself must not go on without it.
        self._signal(signal.SIGKILL)
        # What it wrote last may still be in the pipe, and somebody else may hold the pipe open.
        self._leaving(_exit_sentence(self._transport.get_returncode()), _PATIENCE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._transport is not None
        self._over(_exit_sentence(self._transport.get_returncode()))
        self._transport.close()
        if not self._gone.done():
            self._gone.set_result(None)

    def _take(self, line: bytes) -> None:
        try:
            message = wire.read(line)
        except ProtocolError as error:
            self._misread(line, error)
            return
        if not message.method:
            self._answer(message, len(line))
        elif message.id is None:
            self._hear(message)
        elif waiting := self._asked_by(message):
            self._relay(waiting, message)
        else:
            unclear = any(_may_ask(one, message) for one in self._waiting.values())
            self.tell(wire.answer_to(message, of_no_call=unclear))

    def _answer(self, message: WireMessage, size: int) -> None:
        waiting = self._waiting.get(message.id) if isinstance(message.id, int) else None
        if message.id is None and len(self._waiting) == 1:
            # An error about a request whose id it could not read: there is only one.
            waiting = next(iter(self._waiting.values()))
        if waiting is None or waiting.reply.done():
            return
        if size > waiting.limits.max_bytes:
            _fail(waiting, _too_large(waiting))
        else:
            waiting.reply.set_result(message)

    def _hear(self, message: WireMessage) -> None:
        if message.method in _OF_NO_CALL:
            if self.ear is not None:
                self.ear(message)
            return
        params = message.params or {}
        token = params.get("progressToken") or _member(params, wire.SUBSCRIPTION)
        named = self._named(token) if isinstance(token, int) else None
        # Other notifications name no call; with one call out they can only be about it.
        if named is None and token is None and len(self._waiting) == 1:
            named = next(iter(self._waiting.values()))
        if named:
            named.heard_at = self._loop.time()
            named.way.hear(message)
        elif self.ear is not None:
            self.ear(message)

    def _named(self, token: int) -> PendingRequest | None:
        if token in self._waiting:
            return self._waiting[token]
        return next((one for one in self._waiting.values() if one.way.token == token), None)

    def _asked_by(self, question: WireMessage) -> PendingRequest | None:
        """Whose call it is about. Nothing says so; with several out, it would be a guess, and
        another agent's user might be asked."""
        if question.method == "ping":
            return None
        waiting = self._of_task(question)
        if waiting is None and len(self._waiting) == 1:
            waiting = next(iter(self._waiting.values()))
        return waiting if waiting and _may_ask(waiting, question) else None

    def _of_task(self, question: WireMessage) -> PendingRequest | None:
        related = _member(question.params or {}, wire.RELATED_TASK)
        task = related.get("taskId") if isinstance(related, dict) else None
        if not isinstance(task, str) or not task:
            return None
        return next((one for one in self._waiting.values() if one.way.task == task), None)

    def _relay(self, waiting: PendingRequest, question: WireMessage) -> None:
        errand = self._loop.create_task(self._answered(waiting, question), name="answer a server")
        waiting.errands.add(errand)
        errand.add_done_callback(waiting.errands.discard)

    async def _answered(self, waiting: PendingRequest, question: WireMessage) -> None:
        assert waiting.way.answer is not None
        assert waiting.total is not None
        # The server waits for us: its time stands still.
        if not waiting.total.cancelled():
            waiting.left_s = waiting.total.when() - self._loop.time()
            waiting.total.cancel()
        answer = await waiting.way.answer(question)
        waiting.heard_at = self._loop.time()
        if len(waiting.errands) == 1:
            waiting.total = self._loop.call_later(waiting.left_s, _end_total, waiting)
        self.tell(answer)

    def _misread(self, line: bytes, error: ProtocolError) -> None:
        """Many servers print to standard output by mistake; a spoilt reply names its call."""
        for id_ in _ID.findall(line[:256] + line[-256:]):
            if waiting := self._waiting.get(int(id_)):
                _fail(waiting, error)
                return
        self._stderr.add(b"[stdout] " + line[:1000] + b"\n")

    def _fail_overlong(self, line: Overlong) -> None:
        named = [self._waiting[int(i)] for i in _ID.findall(line.ends) if int(i) in self._waiting]
        # A reply without a readable id may be anybody's: none of them will get a better one.
        for waiting in named[:1] or list(self._waiting.values()):
            _fail(waiting, _too_large(waiting))

    def _end_idle(self, waiting: PendingRequest) -> None:
        left = waiting.heard_at + waiting.limits.idle_s - self._loop.time()
        if waiting.errands:
            left = waiting.limits.idle_s
        if left > 0:
            waiting.idle = self._loop.call_later(left, self._end_idle, waiting)
        else:
            _fail(waiting, TimedOut(describe_silence(waiting.limits.idle_s), "idle"))

    # The end

    async def stop(self) -> None:
        """Close its input, then ask, then kill; returns when the process is gone."""
        assert self._transport is not None
        if pipe := self._transport.get_pipe_transport(0):
            pipe.close()
        for demand in (None, signal.SIGTERM, signal.SIGKILL):
            if demand:
                self._signal(demand)
            await asyncio.wait([self._gone], timeout=_PATIENCE_S)
            if self._gone.done():
                return
        self._transport.close()

    def _leaving(self, how: str, within_s: float) -> None:
        """No more calls; those that wait may wait for what comes with the end."""
        self.ended = True
        self._loop.call_later(within_s, self._over, how)

    def _over(self, how: str) -> None:
        self.ended = True
        self._fail_all(Lost(how))

    def _fail_all(self, error: UpstreamError) -> None:
        self._silent.set()
        for waiting in self._waiting.values():
            _fail(waiting, error)

    def _signal(self, which: signal.Signals) -> None:
        assert self._transport is not None
        # It leads a group of its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), which)


def _program(target: Target, env: dict[str, str]) -> str:
    if not target.argv:
        raise NotSent(_("The server has no program to start."))
    if "\0" in "".join(target.argv):
        raise NotSent(_("The server's command has a NUL character."))
    found = shutil.which(target.argv[0], path=env.get("PATH"))
    if found is None:
        raise NotSent(_("There is no program “%s” that can be run.") % target.argv[0])
    return str(Path(found).absolute())


def _member(params: dict[str, Any], name: str) -> Any:
    """The value of a member of its `_meta`."""
    meta = params.get("_meta")
    return meta.get(name) if isinstance(meta, dict) else None


def _may_ask(waiting: PendingRequest, question: WireMessage) -> bool:
    return waiting.way.may_ask is not None and waiting.way.may_ask(question)


def _fail(waiting: PendingRequest, error: UpstreamError) -> None:
    if not waiting.reply.done():
        waiting.reply.set_exception(error)


def _end_total(waiting: PendingRequest) -> None:
    late = describe_overrun(waiting.limits.total_s)
    _fail(waiting, TimedOut(late, "total"))


def _too_large(waiting: PendingRequest) -> ResultTooLarge:
    return ResultTooLarge(describe_size(waiting.limits.max_bytes))


def _exit_sentence(code: int | None) -> str:
    if code is None:
        return _("The server's process ended before the reply.")
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            return _("The server's process was ended by %s before the reply.") % name
    return _("The server's process ended with code %d before the reply.") % code
