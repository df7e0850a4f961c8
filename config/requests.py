"""Around every HTTP request: its id, and a line in the access log where one is wanted."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings

from config.metrics import PATH
from core.client_address import address_from
from core.request_ids import HEADER, HandledRequest, current, id_from
from gateway.http import health

log = logging.getLogger("countersign.access")

# Asked every few seconds, by machines.
UNLOGGED = health.PATHS | {PATH}


def with_request_ids(app: Any) -> Any:
    async def identified(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        request = HandledRequest(id_from(scope["headers"]))
        began, status = time.monotonic(), 0
        current.set(request)

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (HEADER, request.request_id)]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await app(scope, receive, answer)
        finally:
            if settings.ACCESS_LOG and scope["path"] not in UNLOGGED:
                _log(scope, status, time.monotonic() - began)
            request.response_complete = True

    return identified


def _log(scope: Any, status: int, seconds: float) -> None:
    """Without the query, which may be about somebody."""
    facts = {
        "method": scope["method"],
        "path": scope["path"],
        # 0: the client left before it was answered.
        "status": status,
        "ms": round(1000 * seconds, 1),
        "client": _client(scope),
    }
    log.info("%(method)s %(path)s %(status)s %(ms)s ms, %(client)s", facts, extra={"http": facts})


def _client(scope: Any) -> str:
    headers = dict(scope["headers"])
    forwarded_for, forwarded = (
        headers.get(name, b"").decode("latin-1") for name in (b"x-forwarded-for", b"forwarded")
    )
    peer = (scope.get("client") or [""])[0]
    return address_from(str(peer), forwarded_for, forwarded)
