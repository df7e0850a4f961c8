"""The console's process: daphne, which ends only when what it was asked is answered.

python -m config.web --host 127.0.0.1 --port 8000
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from functools import partial
from typing import Any

import daphne.server
from django.conf import settings
from twisted.internet import reactor as twisted_reactor

from config import telemetry
from config.asgi import application
from config.older_database import keep_position, require_database
from config.ports import arguments, asked_for
from config.readiness import say_ready
from config.web_protocols import Factory, WebSocket
from core.process import set_role
from gateway.http.endpoint import app as agents
from gateway.subscriptions import streams

# Typed as a module of functions, which it is not.
reactor: Any = twisted_reactor


class WebProcess(daphne.server.Server):  # type: ignore[misc]
    """Asked to stop, it accepts nothing more, answers what it was asked, and then stops."""

    leaving = False
    port: Any = None

    def accept(self, sock: socket.socket) -> None:
        self.ws_factory.protocol = WebSocket
        self.port = reactor.adoptStreamPort(sock.fileno(), sock.family, Factory(self))
        sock.close()
        say_ready()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if self.leaving and scope["type"] == "http":
            # Its client asks the next process.
            protocol.responseHeaders.setRawHeaders(b"connection", [b"close"])
            protocol.channel.persistent = False
        return super().create_application(protocol, scope)

    def leave(self) -> None:
        if self.leaving:
            reactor.stop()
            return
        self.leaving = True
        self.port.stopListening()
        # It serves agents too.
        streams.end_all()
        agents.shorten_waits()
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocket):
                protocol.go_away()
        self._stop_when_idle(time.monotonic() + settings.STOP_WITHIN_S)

    def _stop_when_idle(self, until: float) -> None:
        if any(map(_is_asked, self.connections.values())) and time.monotonic() < until:
            reactor.callLater(0.05, self._stop_when_idle, until)
        else:
            reactor.stop()


def _is_asked(details: dict[str, Any]) -> bool:
    running = details.get("application_instance")
    return running is not None and not running.done()


def main() -> None:
    set_role("web")
    require_database()
    telemetry.start()
    keep_position()
    sock = asked_for(arguments())
    options = {"signal_handlers": False, "verbosity": 0, "server_name": ""}
    # It wants an address and would open it by itself; ours is open.
    server = WebProcess(application, endpoints=["ours"], **options)
    server.endpoints = []
    server.ready_callable = partial(server.accept, sock)
    loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.leave)
    server.run()


if __name__ == "__main__":
    main()
