"""The meaning of an HTTP status other than 200 for the request that got it.

The request was written before the status came, so by itself no status says that the server took
nothing: it may have acted first.
"""

from typing import Any

from registry.upstream import wire
from registry.upstream.transport.http_request import BadStatus
from registry.upstream.values import (
    NotGreeted,
    NotSent,
    RefusedByServer,
    RpcErrorReply,
    UnclearStatus,
    UpstreamError,
)

# A server that answers with one of these says that it refuses, whatever it says beside it.
REFUSALS = {
    401: "it did not accept our credential",
    403: "it forbids it",
    429: "it asks to slow down",
    503: "it is not available now",
}
# With these a server of another revision, or without our session, may turn requests away.
RENEGOTIATE = (400, 404, 405, 410)
# MCP 2026-07-28: these come with 400, and may come without an id.
_MODERN_ERRORS = (wire.HEADER_MISMATCH, wire.MISSING_CAPABILITY)
# Their basic/transports, "Session Management": 404 says that the session was terminated.
_WITH_SESSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
_SAID_LENGTH = 200


class SessionInvalid(Exception):
    """By the words of its revision the server took nothing, and must be initialized again."""

    def __init__(self, reason: str, status: int, supported: Any = None) -> None:
        super().__init__(reason)
        self.status = status
        # What it speaks, if it says so.
        self.supported = supported


def meaning(
    bad: BadStatus, id_: int, *, revision: str, session: str
) -> UpstreamError | SessionInvalid:
    """The error that a status means for a request of this revision, in this session if any."""
    if revision == wire.MODERN and (supported := _supported(bad, id_)) is not None:
        said = f"HTTP {bad.status}, error {wire.UNSUPPORTED_REVISION}"
        reason = f"The server does not speak MCP {revision} ({said})."
        return SessionInvalid(reason, bad.status, supported)
    ended = bad.status == 404 and bool(session) and revision in _WITH_SESSIONS
    if ended and not _is_answer(bad, id_):
        return SessionInvalid("The server had ended its session (HTTP 404).", bad.status)
    return refusal(bad, id_)


def _supported(bad: BadStatus, id_: int) -> list[Any] | None:
    """The revisions that a server's own version error names; None if it is no such error."""
    error = bad.message.error if bad.message else None
    if bad.status != 400 or not error or error["code"] != wire.UNSUPPORTED_REVISION:
        return None
    if bad.message is None or bad.message.id not in (id_, None):
        return None
    supported = wire.supported(error.get("data"))
    return supported if isinstance(supported, list) else None


def _is_answer(bad: BadStatus, id_: int) -> bool:
    """Whether the server behind the transport answered this very request, with its own error or,
    against all sense, with a result: it took it."""
    message = bad.message
    if message is None:
        return False
    if message.id is None and message.error:
        return bad.status == 400 and message.error["code"] in _MODERN_ERRORS
    return message.id == id_


def refusal(bad: BadStatus, id_: int) -> UpstreamError:
    """The error to raise, if nothing more is to be tried."""
    said = _message(bad)
    if bad.status in REFUSALS:
        why = f"it says “{said}”" if said else REFUSALS[bad.status]
        challenge = "" if _is_answer(bad, id_) else bad.challenge
        return RefusedByServer(
            f"Refused by the server (HTTP {bad.status}): {why}.", bad.status, challenge
        )
    if bad.message is not None and bad.message.error and _is_answer(bad, id_):
        return RpcErrorReply(bad.message.error)
    beside = f": {said}" if said else ""
    return UnclearStatus(f"{_sentence(bad.status)}{beside}.", bad.status)


def not_greeted(error: UpstreamError) -> NotSent:
    """To raise where the conversation could not be opened: the call itself was not sent. With the
    status, if one came: it says whether to try again."""
    sentence = f"The server could not be greeted. {error}"
    if isinstance(error, RefusedByServer | UnclearStatus):
        turned_away = NotGreeted(sentence, status=error.status)
        turned_away.challenge = getattr(error, "challenge", "")
        return turned_away
    return NotSent(sentence)


def _message(bad: BadStatus) -> str:
    error = bad.message.error if bad.message else None
    return str(error["message"])[:_SAID_LENGTH].rstrip(". ") if error else ""


def _sentence(status: int) -> str:
    match status:
        case 300 | 301 | 302 | 303 | 307 | 308:
            return f"The server redirects elsewhere (HTTP {status}), which is not followed"
    return f"The server answered with HTTP {status}"
