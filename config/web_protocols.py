"""Daphne's protocols, with what they lack: close codes that servers send, a time for heads, and an
end of answers that fail in the middle."""

from __future__ import annotations

from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from twisted.internet import reactor as twisted_reactor
from twisted.web import http

GOING_AWAY = 1001
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# Typed as a module of functions, which it is not.
reactor: Any = twisted_reactor
# Only in part typed.
HTTPChannel: Any = http.HTTPChannel


class WebSocket(WebSocketProtocol):  # type: ignore[misc]
    def serverClose(self, code: int | None = None) -> None:
        # `sendClose` refuses the codes that RFC 6455 keeps for servers (1001, 1011 to 1013): it is
        # made for what applications may send.
        self.sendCloseFrame(code=1000 if code is None else code)

    def go_away(self) -> None:
        """Pages open their sockets again, at the next process."""
        if self.state == self.STATE_OPEN:
            self.serverClose(GOING_AWAY)
        elif self.state == self.STATE_CONNECTING:
            # Nothing was promised to it yet.
            self.dropConnection(abort=True)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose client has so long for a head that it began; Twisted alone begins to wait
    anew with every byte. One that says nothing is closed as between two requests."""

    _head_timer: Any = None

    def dataReceived(self, data: bytes) -> None:
        super().dataReceived(data)
        # Between requests, and in a head, it reads lines.
        if self.line_mode and self._head_timer is None:
            self._watch_head()

    def allHeadersReceived(self) -> None:
        self._forget_head()
        super().allHeadersReceived()

    def connectionLost(self, reason: Any) -> None:
        self._forget_head()
        super().connectionLost(reason)

    def _watch_head(self) -> None:
        self._head_timer = reactor.callLater(settings.HEAD_WITHIN_S, self._give_up)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.write(TOO_SLOW)
        self.loseConnection()


class Request(WebRequest):  # type: ignore[misc]
    def handle_exception(self, exception: Exception) -> None:
        """An answer that began is cut off: its client sees that it is not whole. Daphne would try
        to begin another one, and by that error look after no connection any more."""
        if not self._response_started:
            super().handle_exception(exception)
        elif self.channel is not None:
            self.channel.loseConnection()


class Factory(HTTPFactory):  # type: ignore[misc]
    protocol = Channel

    def buildProtocol(self, addr: Any) -> Any:
        made = super().buildProtocol(addr)
        made.requestFactory = Request
        return made
