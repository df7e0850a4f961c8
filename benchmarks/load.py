"""A load of one request, repeated over so many connections; as lean as Python allows.

`python -m benchmarks.load` reads its order as JSON from standard input and prints what it saw.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from itertools import count
from typing import cast

import uvloop


@dataclass(frozen=True)
class Seen:
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    wrong: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


# How soon a client looks again for a task that is not done.
POLL_S = 0.02
NUMBER = b"#NUMBER#"
_numbers = count(1)
CHUNKED = b"transfer-encoding: chunked"
LAST_CHUNK = b"\r\n0\r\n\r\n"


class Client(asyncio.Protocol):
    """One keep-alive connection: asks, reads to the end of the reply, asks again.

    `look`: the request that comes back for a task, with TASK for its id and LENGTH for its body's.
    """

    def __init__(
        self, request: bytes, expected: bytes, times: list[float], look: str, poll_s: float
    ) -> None:
        self._request, self._expected, self._times = request, expected, times
        self._look, self._poll_s = look, poll_s
        self._buffer, self._length = b"", -1
        self._next = b""
        self.wrong = 0
        self.until = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def begin(self, until: float) -> None:
        self.until = until
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        request = self._request
        if self._look:
            # Tasks that ask for the same are the same.
            request = request.replace(NUMBER, b"%08d" % next(_numbers))
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._length < 0 and not self._head():
            return
        if self._is_whole():
            self._replied()

    def _is_whole(self) -> bool:
        if self._length:
            return len(self._buffer) >= self._length
        return self._buffer.endswith(LAST_CHUNK)

    def _head(self) -> bool:
        head, end, _ = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        head = head.lower()
        if CHUNKED in head:
            self._length = 0
            return True
        _, _, length = head.partition(b"content-length:")
        self._length = len(head) + 4 + int(length.partition(b"\r")[0])
        return True

    def _replied(self) -> None:
        if self._look and self._is_going_on():
            return
        now = time.perf_counter()
        self._times.append(now - self._began)
        self.wrong += self._expected not in self._buffer
        self._buffer, self._length = b"", -1
        if now < self.until:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)

    def _is_going_on(self) -> bool:
        """A task that was made is looked for, and one that is not done is looked for again."""
        reply, loop = self._buffer, asyncio.get_running_loop()
        made = b'"resultType":"task"' in reply
        if made:
            task = reply.partition(b'"taskId":"')[2].partition(b'"')[0].decode()
            head, end, body = self._look.replace("TASK", task).partition("\r\n\r\n")
            self._next = (head.replace("LENGTH", str(len(body))) + end + body).encode()
        if not made and b'"status":"working"' not in reply:
            return False
        self._buffer, self._length = b"", -1
        # Who comes back every 20 ms does so at once; who takes its time does from the first.
        at_once = made and self._poll_s == POLL_S
        loop.call_later(0 if at_once else self._poll_s, self._transport.write, self._next)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("closed in the middle"))


async def load(
    port: int,
    request: bytes,
    expected: bytes,
    *,
    connections: int,
    seconds: float,
    look: str = "",
    poll_s: float = POLL_S,
) -> Seen:
    times: list[float] = []
    loop = asyncio.get_running_loop()

    def made() -> Client:
        return Client(request, expected, times, look, poll_s)

    clients = [
        (await loop.create_connection(made, "127.0.0.1", port))[1] for _ in range(connections)
    ]
    began = time.perf_counter()
    for client in clients:
        client.begin(began + seconds)
    await asyncio.gather(*(client.done for client in clients))
    took = time.perf_counter() - began
    times.sort()
    return Seen(
        requests=len(times),
        seconds=took,
        p50_ms=1000 * times[len(times) // 2],
        p99_ms=1000 * times[int(len(times) * 0.99)],
        wrong=sum(client.wrong for client in clients),
    )


if __name__ == "__main__":
    order = json.load(sys.stdin)
    seen = uvloop.run(
        load(
            order["port"],
            order["request"].encode(),
            order["expected"].encode(),
            connections=order["connections"],
            seconds=order["seconds"],
            look=order["look"],
            poll_s=order["poll_s"],
        )
    )
    json.dump(asdict(seen), sys.stdout)
