"""What an HTTP status other than 200 says about the request that got it."""

from typing import Any

from registry.upstream import wire
from registry.upstream.exchange import BadStatus
from registry.upstream.values import Answered, Nonsense, NotSent, UpstreamError

# A refusal with one of these is certain to come before the tool: RFC 9110, 15.5.
_REFUSALS = {301, 302, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 411, 412, 413, 414, 415}
_REFUSALS |= {417, 421, 426, 428, 429, 431, 451}
# With these the status counts, whatever is said beside it.
_BY_STATUS = {401, 402, 403, 407, 429}
_MODERN_ERRORS = {wire.HEADER_MISMATCH, wire.MISSING_CAPABILITY, wire.UNSUPPORTED_REVISION}


class Unacquainted(Exception):
    """The server took nothing: it speaks another revision, or has forgotten the session."""

    def __init__(self, reason: UpstreamError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def meaning(bad: BadStatus, id_: int, *, modern: bool) -> UpstreamError | Unacquainted:
    """What a status other than 200 says about the request that got it."""
    reason = refusal(bad, id_)
    if bad.status not in (400, 404, 405):
        return reason
    error = bad.message.error if bad.message else None
    if modern:
        return reason if _is_modern(error, bad, id_) else Unacquainted(reason)
    # An error under our own id comes from the server behind the transport, who knows us.
    return reason if isinstance(reason, Answered) else Unacquainted(reason)


def _is_modern(error: dict[str, Any] | None, bad: BadStatus, id_: int) -> bool:
    if not error or error["code"] == wire.UNSUPPORTED_REVISION:
        return False
    return _is_about(error, bad, id_)


def _is_about(error: dict[str, Any], bad: BadStatus, id_: int) -> bool:
    """Whether the error is about our request, and not the transport's about something before it."""
    return error["code"] in _MODERN_ERRORS or (bad.message is not None and bad.message.id == id_)


def refusal(bad: BadStatus, id_: int) -> UpstreamError:
    """The error to raise, if nothing more is to be tried."""
    error = bad.message.error if bad.message else None
    if error and bad.status not in _BY_STATUS and _is_about(error, bad, id_):
        return Answered(error)
    if bad.status in _REFUSALS:
        said = f": {error['message'][:200].rstrip('.')}" if error else ""
        return NotSent(f"{_sentence(bad.status)}{said}.", status=bad.status)
    return Nonsense(f"The server answered with HTTP {bad.status}.")


def _sentence(status: int) -> str:
    match status:
        case 301 | 302 | 307 | 308:
            return f"The server redirects elsewhere (HTTP {status}), which is not followed"
        case 401:
            return "The server did not accept our credential (HTTP 401)"
        case 403:
            return "The server forbids it (HTTP 403)"
        case 404:
            return "There is no MCP server at this URL (HTTP 404)"
        case 429:
            return "The server asks to slow down (HTTP 429)"
    return f"The server refused the request with HTTP {status}"
