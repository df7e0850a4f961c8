"""Parameters and results of the upstream client: plain values and errors."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from core.abilities import InputAnswer
from core.kept_english import gettext as _


@dataclass(frozen=True, slots=True)
class Target:
    """One server with one version of its credential. `key` names its connections and processes."""

    key: str
    transport: Literal["http", "stdio", "api"]
    url: str = ""
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    # Already with the server's own credential; never with anything that an agent sent.
    headers: Mapping[str, str] = field(default_factory=dict)
    # What it spoke last time: a hint that saves a probe, not a promise.
    revision: str = ""
    # The one to speak, where an operator chose it; "": the newest that both sides know.
    wanted: str = ""
    # As far as was seen last time: by HTTP with SSE, as of 2024-11-05.
    by_events: bool = False
    cwd: str = ""
    # For discovery, which asks nothing back: what a client must be able to be asked, to be shown
    # all that there is. Words of core.abilities.
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_bytes` is for a whole reply, with the progress and comments of its stream."""

    connect_s: float = 5.0
    idle_s: float = 60.0
    total_s: float = 120.0
    max_bytes: int = 8 * 1024 * 1024
    cancel_grace_s: float = 10.0


USUAL = Limits()


@dataclass(frozen=True, slots=True)
class ServerListing:
    revision: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str
    tools: list[dict[str, Any]]
    # What must not be offered, as (name, why).
    left_out: tuple[tuple[str, str], ...] = ()
    # None: it could not be told, though the server says that it has some.
    resources: list[dict[str, Any]] | None = field(default_factory=list)
    templates: list[dict[str, Any]] | None = field(default_factory=list)
    prompts: list[dict[str, Any]] | None = field(default_factory=list)
    by_events: bool = False
    # The revisions that it names by itself, if it does.
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallReply:
    """`result` is the `result` member exactly as the server wrote it."""

    result: bytes
    is_error: bool
    kind: str


@dataclass(frozen=True, slots=True)
class ProgressReport:
    progress: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class TaskRef:
    """The task that a server made of a call: where its result can be requested. `modern`: by the
    extension of 2026-07-28, otherwise as in 2025-11-25."""

    id: str
    modern: bool
    poll_s: float
    # By which it says how far it is.
    token: int = 0
    # How long it took, by its server's own times; None: nothing that can be so was said.
    took_s: float | None = None
    # That began it: many servers of 2025-11-25 answer no other session about it. "": none.
    session: str = ""


@dataclass(frozen=True, slots=True)
class PausedCall:
    """A call whose server keeps nothing of it while it waits for answers: with these, anybody of us
    goes on. `asked`: what it asked and its own state, as in the result that asked."""

    round: int
    asked: dict[str, Any]


class InputChannel(Protocol):
    """The way to whoever asked for a call, for what its server wants to know. Requests stand by
    their keys, which are new in each round; None means that there will be no answers."""

    async def look(self, requests: Mapping[str, Any], round_: int) -> "Answers | None": ...

    async def wait(
        self, requests: Mapping[str, Any], round_: int, pause: PausedCall | None = None
    ) -> "Answers | None": ...


OnTask = Callable[[TaskRef], Awaitable[None]]
OnStatus = Callable[[str], None]
Answers = dict[str, InputAnswer]
OnProgress = Callable[[ProgressReport], None]
# The URI of a resource that changed.
OnUpdate = Callable[[str], None]
# The key of a target.
OnLists = Callable[[str], None]
OnLog = Callable[[dict[str, Any]], None]
# Why a call is sent again, and the number of this send.
OnResend = Callable[[str, int], Awaitable[None]]
# The name of a page that a server wants opened.
OnPage = Callable[[str], None]


class UpstreamError(Exception):
    """A call that brought no result; `str()` is a sentence for people."""

    # The page on which a user signs in at the server, or allows it more, where that is what lacks.
    consent_page = ""


class NotSent(UpstreamError):
    """Certain that the server did not take the call, so that repeating it is safe.

    `detail` is what a process wrote before it ended: for operators, not for agents.
    """

    def __init__(self, sentence: str, *, status: int | None = None, detail: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.detail = detail


class NotGreeted(NotSent):
    """The server turned away the request that opens a conversation, which acts on nothing."""

    # As RefusedByServer has it.
    challenge = ""


class RefusedByServer(UpstreamError):
    """The server refused by an HTTP status that says so. Whether it acted before, only it knows.

    `challenge`: its WWW-Authenticate, where it wants another credential and did not answer the
    request itself: by MCP (basic/authorization) it then looked at nothing but the credential.
    """

    def __init__(self, sentence: str, status: int, challenge: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.challenge = challenge
        # What the server had asked before, where it took the call and refused the answers.
        self.pause: PausedCall | None = None


_ANSWERED = _("The server answered with error %(code)s: %(message)s")


class RpcErrorReply(UpstreamError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")
        self.raw = error
        super().__init__(_ANSWERED % {"code": self.code, "message": self.message})


class OutcomeUnknown(UpstreamError):
    """The call was sent, or may have been; whether it took effect is not known."""


class UnclearStatus(OutcomeUnknown):
    """An HTTP status came that does not say whether the call was carried out."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class ProtocolError(OutcomeUnknown):
    """Something came back, but it is not MCP."""


class ResultTooLarge(OutcomeUnknown):
    pass


class TimedOut(OutcomeUnknown):
    def __init__(self, sentence: str, which: Literal["idle", "total"]) -> None:
        super().__init__(sentence)
        self.which = which


class Lost(OutcomeUnknown):
    """The connection or process ended after the call was sent and before its reply."""


class CancelledUpstream(OutcomeUnknown):
    """Cancelled on request. `acknowledged`: the server itself said that it stopped."""

    def __init__(self, *, acknowledged: bool) -> None:
        self.acknowledged = acknowledged
        super().__init__(
            _("The call was cancelled and the server confirmed it.")
            if acknowledged
            else _("The call was cancelled; the server has not said whether it stopped in time.")
        )


_ASKED = _("The server asked for input, which cannot be given here.")
_ASKED_FOR = _("The server asked for input (“%s”), which cannot be given here.")
_STOPPED = _("It confirmed that it stopped.")
_SILENT = _("It has not said whether it stopped.")
_UNANSWERED = _("The server asked for input and got none.")
_UNANSWERED_FOR = _("The server asked for input (“%s”) and got none.")
_WAITS = _("It does not go on by itself.")


class InputWanted(CancelledUpstream):
    """The server goes on only with an answer that nobody here can give, and was told to stop."""

    def __init__(self, wanted: str, *, acknowledged: bool) -> None:
        super().__init__(acknowledged=acknowledged)
        asked = _ASKED_FOR % wanted if wanted else _ASKED
        self.args = (f"{asked} {_STOPPED if acknowledged else _SILENT}",)


class Unanswered(InputWanted):
    """The server waits for nothing: it asked, and is asked again only with an answer."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted, acknowledged=True)
        asked = _UNANSWERED_FOR % wanted if wanted else _UNANSWERED
        self.args = (f"{asked} {_WAITS}",)


def describe_silence(seconds: float) -> str:
    return _("The server was silent for %(seconds)s seconds.") % {"seconds": f"{seconds:g}"}


def describe_overrun(seconds: float) -> str:
    return _("The call took longer than %(seconds)s seconds.") % {"seconds": f"{seconds:g}"}


def describe_size(most: int) -> str:
    return _("The server's reply is larger than %d bytes.") % most


def describe_unknown(revision: object) -> str:
    return _("The server speaks MCP %s, which is not known here.") % f"{revision!r:.40}"
