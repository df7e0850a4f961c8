"""A thousand browser tabs that cost next to nothing: what is measured is the product.

They read bytes, look for the times that were said in them, and answer pings.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import SplitResult, urlsplit

SAID = re.compile(rb"at (\d+\.\d{4})")
UPGRADE = """GET {path} HTTP/1.1\r
Host: {host}\r
Origin: http://{host}\r
Cookie: {cookie}\r
Upgrade: websocket\r
Connection: Upgrade\r
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
Sec-WebSocket-Version: 13\r
\r
"""
TEXT, PING, PONG = 0x81, 0x89, 0x8A
# "Masked" by zeros: the payload stays as it is.
MASK = bytes(4)


class Tab(asyncio.Protocol):
    def __init__(self, hello: bytes) -> None:
        self._hello = hello
        self._tail = b""
        self.is_open = asyncio.get_running_loop().create_future()
        # Said at → read so much later.
        self.seen: dict[bytes, float] = {}
        self.bytes = 0
        # When the queue rang.
        self.rings: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self.bytes += len(data)
        if not self.is_open.done():
            assert data.startswith(b"HTTP/1.1 101"), data[:200]
            self.is_open.set_result(None)
        elif data[0] == PING:
            self._send(PONG, data[2 : 2 + (data[1] & 0x7F)])
        if b'"changed": "queue"' in data:
            self.rings.append(now)
        for at in SAID.findall(self._tail + data):
            self.seen.setdefault(at, now - float(at))
        self._tail = data[-20:]

    def say(self, text: str) -> None:
        self._send(TEXT, text.encode())

    def _send(self, kind: int, payload: bytes) -> None:
        self.transport.write(bytes([kind, 0x80 | len(payload)]) + MASK + payload)


@asynccontextmanager
async def opened(url: str, cookies: list[str]) -> AsyncIterator[list[Tab]]:
    """One tab for each cookie."""
    parts = urlsplit(url)
    tabs: list[Tab] = []
    for n in range(0, len(cookies), 50):
        tabs += await asyncio.gather(*(_open(parts, cookie) for cookie in cookies[n : n + 50]))
    yield tabs
    for tab in tabs:
        tab.transport.abort()


async def _open(parts: SplitResult, cookie: str) -> Tab:
    hello = UPGRADE.format(path=parts.path, host=parts.netloc, cookie=cookie).encode()
    loop = asyncio.get_running_loop()
    assert parts.hostname
    assert parts.port
    _transport, tab = await loop.create_connection(lambda: Tab(hello), parts.hostname, parts.port)
    await tab.is_open
    return tab


def delays(tabs: list[Tab]) -> list[float]:
    return [delay for tab in tabs for delay in tab.seen.values()]
