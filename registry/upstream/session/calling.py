"""One call on its way: what the caller wants to hear of it, and how it is called back."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any

from core.errors import RecordUnavailable
from core.kept_english import gettext as _
from registry.upstream import wire
from registry.upstream.values import (
    USUAL,
    CancelledUpstream,
    InputChannel,
    Limits,
    NotSent,
    OnLog,
    OnPage,
    OnProgress,
    OnResend,
    OnStatus,
    OnTask,
    OutcomeUnknown,
    ProgressReport,
)
from registry.upstream.wire import TOOLS_CALL, WireMessage

log = logging.getLogger(__name__)

# Most calls end sooner; only a longer one is worth a task that waits for its cancellation.
_WATCH_AFTER_S = 0.02
# Whoever greets a server for longer is asked again whether the call may still be sent.
_GREETED_S = 0.5


@dataclass(slots=True)
class UpstreamCall:
    # What a header repeats.
    name: str
    # One JSON object, checked before; of another method than tools/call, all its params.
    arguments: bytes
    limits: Limits = USUAL
    method: str = TOOLS_CALL
    param_headers: Mapping[str, str] | None = None
    # Of an HTTP API: the request that its definition holds, and whether it has a sign-in.
    request_plan: Mapping[str, Any] | None = None
    signs_in: bool = False
    on_progress: OnProgress | None = None
    on_log: OnLog | None = None
    # As which least important line of its server's log the caller wants to hear; "": none said.
    log_level: str = ""
    cancel: asyncio.Event | None = None
    # The same for each attempt of one call, for servers that heed it.
    idempotency_key: str = ""
    # The server may make a task of it; `as_task`: this tool runs as nothing else.
    takes_tasks: bool = False
    as_task: bool = False
    # Awaited before the task is followed; None: what a server makes of it, it stays.
    on_task: OnTask | None = None
    on_status: OnStatus | None = None
    # Awaited when the task has ended, where its server's times say how long it took.
    on_task_end: OnTask | None = None
    # The way to whoever asked for it, what can be asked there (words of core.abilities), and how
    # often it was.
    asking: InputChannel | None = None
    abilities: tuple[str, ...] = ()
    # Who is asked: a session in which a server may ask is of one agent alone.
    asker: str = ""
    rounds: Iterator[int] = field(default_factory=partial(count, 1))
    # As members of its `_meta`.
    trace: Mapping[str, str] = field(default_factory=dict)
    # Its agent knows no error that says to open a page first: it is asked to.
    asks_pages: bool = False
    # Gets the name of each page that its server wanted opened and then says to be done with, also
    # when the call has ended; and by what these names are noted meanwhile.
    on_page: OnPage | None = None
    note_page: Callable[[Any], None] | None = None
    # Beside its arguments: answers to what its server asked, as members of its params.
    more: bytes = b""
    # Awaited before the first send where it comes long after the call was made: raises NotSent.
    recheck: Callable[[], Awaitable[None]] | None = None
    made_at: float = field(default_factory=time.monotonic)
    # Awaited before each send but the first, with why it is sent again and which send it is.
    # Raises RecordUnavailable where that cannot be written down: then nothing is sent.
    on_resend: OnResend | None = None
    resend_reason: str = ""
    sends: int = 0
    # The server took an earlier send, and wants to be asked again.
    was_taken: bool = False
    # By which its server says how far it is, also after it made a task of it; 0: not sent yet.
    token: int = 0
    # Its credential can be renewed: a task is followed no further with one that is refused.
    renews: bool = False
    # Over which it was sent to become a task; "": its server has no sessions.
    session: str = ""

    def meta(self, id_: int, *, modern: bool) -> bytes:
        """The `_meta` of its request."""
        self.token = id_
        return wire.meta(
            modern,
            token=id_ if self.on_progress else None,
            log=(self.log_level or "info") if self.on_log else "",
            key=self.idempotency_key,
            tasks=self.takes_tasks,
            words=self.abilities,
            trace=self.trace,
        )

    async def note_send(self) -> None:
        """To be awaited before the first byte of each request for this call."""
        self.sends += 1
        if self.sends == 1:
            if self.recheck is not None and time.monotonic() - self.made_at > _GREETED_S:
                await self.recheck()
            return
        if self.on_resend is None:
            return
        try:
            await self.on_resend(self.resend_reason, self.sends)
        except RecordUnavailable as error:
            sentence = f"It was to be sent again, and was not. {error}"
            raise (OutcomeUnknown if self.was_taken else NotSent)(sentence) from error

    def hear(self, message: WireMessage) -> None:
        """Pass on a notification that belongs to this call; others are not for the caller."""
        params = message.params or {}
        if message.method == "notifications/progress" and params.get("progressToken") == self.token:
            if self.on_progress and (progress := _progress(params)):
                _tell(self.on_progress, progress)
        elif message.method == "notifications/message" and self.on_log:
            _tell(self.on_log, params)


@dataclass(frozen=True, slots=True)
class TaskErrand:
    """Asking about a task, fetching its result, answering what it asks, or cancelling it."""

    method: str
    task: str
    # Members of its params.
    more: bytes = b""
    # Hears what comes before the reply, and is asked.
    call: UpstreamCall | None = None

    def request(self, id_: int, *, modern: bool) -> bytes:
        return wire.about_task(id_, self.method, self.task, modern=modern, more=self.more)


class CancelScope:
    """Watches the caller's cancel event while a call is out.

    `tell` informs the server; a reply that still arrives within `grace_s` wins, after that the
    waiting task is interrupted and CancelledUpstream raised, as asyncio.timeout does it.
    """

    __slots__ = (
        *("_cancelling", "_event", "_grace_s", "_handle", "_task", "_tell", "_watcher"),
        *("asked", "cut"),
    )

    def __init__(
        self,
        event: asyncio.Event | None,
        tell: Callable[[], Awaitable[None]] | None,
        grace_s: float,
    ) -> None:
        self._event = event
        self._tell = tell
        self._grace_s = grace_s
        self._watcher: asyncio.Task[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._cancelling = 0
        self.asked = False
        self.cut = False

    def __enter__(self) -> "CancelScope":
        if self._event is None:
            return self
        if self._event.is_set():
            raise NotSent(_("The call was withdrawn before it was sent."))
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._handle = asyncio.get_running_loop().call_later(_WATCH_AFTER_S, self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._handle is None:
            return
        self._handle.cancel()
        if self._watcher:
            self._watcher.cancel()
        if not self.cut or self._task is None:
            return
        # Somebody else's cancellation of the task counts more than ours, and goes on.
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise CancelledUpstream(acknowledged=False) from None

    def _start(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        assert self._event is not None
        assert self._task is not None
        await self._event.wait()
        self.asked = True
        if self._tell:
            await self._tell()
            await asyncio.sleep(self._grace_s)
        self.cut = True
        self._task.cancel()


def _progress(params: dict[str, Any]) -> ProgressReport | None:
    done, message = _number(params.get("progress")), params.get("message")
    if done is None:
        return None
    said = message if isinstance(message, str) else ""
    return ProgressReport(progress=done, total=_number(params.get("total")), message=said)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _tell(listener: Callable[[Any], None], what: Any) -> None:
    try:
        listener(what)
    except Exception:
        # The call itself must not end in an unknown outcome over somebody's picture of it.
        log.exception("a listener to an upstream call failed")
