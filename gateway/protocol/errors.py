"""How a request ends that never becomes a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from calls.queue.queue_limits import QueueFull
from calls.record.refusal import RefusalDetails as NoCall
from calls.record.refusal import RetryAdvice
from core.errors import RecordUnavailable
from gateway.protocol.revisions import INVALID_PARAMS, INVALID_REQUEST

Header = tuple[bytes, bytes]

RETRY_SOON: Header = (b"retry-after", b"1")
# A queue is not worked off in a second.
RETRY_LATER: Header = (b"retry-after", b"5")
_CHALLENGE: Header = (b"www-authenticate", b"Bearer")
# Sent where the rest of a request will not be read.
CLOSE: Header = (b"connection", b"close")


class RpcError(Exception):
    """An HTTP status and a JSON-RPC error that says what was wrong and what would be right."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int | None = None,
        data: dict[str, Any] | None = None,
        headers: tuple[Header, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        # Outside JSON-RPC's reserved range, the HTTP status says it best.
        self.code = status if code is None else code
        self.data = data
        self.headers = headers
        # Of the request that is refused, once one was understood.
        self.id = b"null"

    def body(self, request_id: bytes = b"") -> bytes:
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (
            request_id or self.id,
            orjson.dumps(error),
        )


def unauthorized() -> RpcError:
    """The one answer for absent, wrong, expired and revoked: it teaches a thief nothing."""
    message = "A valid agent token is needed: Authorization: Bearer csa_…"
    return RpcError(401, message, headers=(_CHALLENGE, CLOSE))


def invalid_request(message: str) -> RpcError:
    return RpcError(400, message, code=INVALID_REQUEST)


def invalid_params(message: str, told: Mapping[str, Any] | None = None) -> RpcError:
    """`told`: of a call that is in the record all the same."""
    data = None if told is None else {"refusal": told}
    return RpcError(400, message, code=INVALID_PARAMS, data=data)


def full(error: QueueFull) -> RpcError:
    told = _passing("limit", str(error), after_s=5)
    return RpcError(429 if error.own else 503, str(error), data=told, headers=(RETRY_LATER,))


def unavailable(error: RecordUnavailable) -> RpcError:
    told = _passing("unavailable", str(error), after_s=1)
    if error.call_id is not None:
        told["call"] = str(error.call_id)
    return RpcError(503, str(error), data=told, headers=(RETRY_SOON,))


def too_many_connections() -> RpcError:
    message = (
        "This process already serves as many connections as it may. Try again in a second, best on "
        "connections that you have."
    )
    told = _passing("limit", message, after_s=1)
    return RpcError(503, message, data=told, headers=(RETRY_SOON, CLOSE))


def _passing(kind: str, reason: str, *, after_s: int) -> dict[str, Any]:
    told = NoCall(kind, RetryAdvice.LATER).told(reason)
    return {"refusal": {**told, "after_s": after_s}}
