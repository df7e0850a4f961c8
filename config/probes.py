"""Probes and `/metrics` of the processes that serve nothing else (worker, beat and sealer), and of
several agents' endpoints that share one port.

Each has a port of its own where `COUNTERSIGN_PROBES` names the first of them. A thread answers,
with an event loop of its own, also while the process waits for what hangs.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from django.conf import settings

from audit.demo import is_demo
from config import process_figures
from config.health import find_fault_after
from config.metrics import metrics_first
from config.ports import listen
from core.process import role, set_role
from gateway.http import health
from gateway.protocol import reply_stream

log = logging.getLogger(__name__)

# Behind the first port.
PLACES = {"worker": 0, "beat": 1, "seal": 2}
# Of the first of several agents' endpoints.
AGENTS_PLACE = 3


def serve_probes(name: str, find_fault: Callable[[], str], *, place: int | None = None) -> None:
    """Names this process. `find_fault` says why it is not ready, where the database answers."""
    set_role(name)
    process_figures.set_find_fault(find_fault)
    if settings.PROBES is None:
        return
    host, first = settings.PROBES
    port = first + (PLACES[name] if place is None else place)
    try:
        # The next process begins before this one has ended.
        sock = listen(host, port, shared=True)
    except OSError as error:
        log.error("No probes at port %s: %s", port, error.strerror)
        return
    threading.Thread(target=_serve, args=(sock, find_fault), name="probes", daemon=True).start()


def _serve(sock: socket.socket, find_fault: Callable[[], str]) -> None:
    config = uvicorn.Config(
        metrics_first(_probes(find_fault), with_record=False),
        interface="asgi3",
        ws="none",
        lifespan="off",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        log_level="warning",
        limit_concurrency=32,
    )
    try:
        uvicorn.Server(config).run([sock])
    except Exception:
        log.exception("The probes of %s ended.", role())


def _probes(find_fault: Callable[[], str]) -> Any:
    what_is_wrong = find_fault_after(find_fault)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] in health.PATHS:
            await health.respond(scope, send, what_is_wrong, is_demo)
        else:
            await reply_stream.respond(send, 404, b"")

    return answer
