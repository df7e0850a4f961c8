"""Whether more connections cost anybody their answers: calls a second that succeed, from 64 to
1,024 connections that call without a pause, in turn on the same processes.

python -m benchmarks.connections                   1,024 connections are served
python -m benchmarks.connections --most 256        further ones get 503, and come back
python -m benchmarks.connections --counts 8 32 --seconds 1 --rounds 1

It prints medians of the rounds, and the ratio to the fewest connections, round by round: a goodput
that does not fall is at 100 % or more, but for noise. A call that succeeds was recorded before it
left and before it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks.hot_path import request
from benchmarks.house import house
from tests.processes import HOST

COUNTS = (64, 128, 256, 512, 1024)
ARGUMENTS = {"name": "echo", "arguments": {"text": "hello"}}


@dataclass(frozen=True)
class Seen:
    succeeded: int
    refused: int
    broken: int
    wrong: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def goodput(self) -> float:
        return self.succeeded / self.seconds


class Caller:
    """One client: keeps its connection, and after a 503 comes back when it was told to."""

    def __init__(self, port: int, message: bytes, until: float) -> None:
        self._port, self._message, self._until = port, message, until
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []

    async def run(self) -> None:
        while time.perf_counter() < self._until:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._connected()
                continue
            self.counts["broken"] += 1

    async def _connected(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        try:
            while time.perf_counter() < self._until:
                began = time.perf_counter()
                writer.write(self._message)
                head, body = await _reply(reader)
                if head.startswith(b"HTTP/1.1 503 "):
                    self.counts["refused"] += 1
                    await asyncio.sleep(_retry_after(head))
                    return
                self._note(body, time.perf_counter() - began)
        finally:
            writer.close()

    def _note(self, body: bytes, took_s: float) -> None:
        if time.perf_counter() > self._until:
            # Of the seconds that are counted it used up none of its last ones.
            return
        self.counts["succeeded" if b"hello" in body else "wrong"] += 1
        self.times.append(took_s)


async def _reply(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).replace(b"Content-Length", b"content-length")
    length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
    return head, await reader.readexactly(length)


def _retry_after(head: bytes) -> float:
    return float(head.partition(b"retry-after: ")[2].partition(b"\r")[0] or b"1")


async def crowd(port: int, message: bytes, connections: int, seconds: float) -> Seen:
    callers = [Caller(port, message, time.perf_counter() + seconds) for _ in range(connections)]
    await asyncio.gather(*(caller.run() for caller in callers))
    counts = sum((caller.counts for caller in callers), Counter[str]())
    times = sorted(time_s for caller in callers for time_s in caller.times) or [0.0]
    return Seen(
        counts["succeeded"],
        counts["refused"],
        counts["broken"],
        counts["wrong"],
        seconds,
        1000 * times[len(times) // 2],
        1000 * times[int(len(times) * 0.99)],
    )


def measure(port: int, message: str, connections: int, seconds: float) -> Seen:
    """In a process beside the gateway's."""
    order = {"port": port, "message": message, "connections": connections, "seconds": seconds}
    argv = [sys.executable, "-m", "benchmarks.connections", "--as-client"]
    done = subprocess.run(
        argv, input=json.dumps(order), text=True, stdout=subprocess.PIPE, check=True
    )
    return Seen(**json.loads(done.stdout))


def as_client() -> None:
    order = json.load(sys.stdin)
    message = order["message"].encode()
    seen = crowd(order["port"], message, order["connections"], order["seconds"])
    json.dump(asdict(uvloop.run(seen)), sys.stdout)


def report(counts: list[int], rounds: list[dict[int, Seen]]) -> None:
    print("  conn   calls/s   ratio   p50 ms   p99 ms     503  broken")
    for count in counts:
        seen = [one[count] for one in rounds]

        def mid(name: str, seen: list[Seen] = seen) -> float:
            return float(median(getattr(one, name) for one in seen))

        ratio = median(one[count].goodput / max(one[counts[0]].goodput, 1e-9) for one in rounds)
        print(
            f"{count:>6}{mid('goodput'):>10.0f}{ratio:>8.0%}{mid('p50_ms'):>9.1f}"
            f"{mid('p99_ms'):>9.1f}{mid('refused'):>8.0f}{mid('broken'):>8.0f}"
        )
    wrong = sum(one.wrong for seen in rounds for one in seen.values())
    assert wrong == 0, f"{wrong} replies were wrong"


def run(options: Any) -> list[dict[int, Seen]]:
    if options.most:
        os.environ["COUNTERSIGN_CONNECTIONS"] = str(options.most)
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            message = request("/mcp/desk/up", it.token, "tools/call", ARGUMENTS)
            measure(it.agents_port, message, options.counts[0], 1)
            return [
                {
                    count: measure(it.agents_port, message, count, options.seconds)
                    for count in options.counts
                }
                for _ in range(options.rounds)
            ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=0, help="COUNTERSIGN_CONNECTIONS")
    parser.add_argument("--as-client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_client:
        as_client()
        return
    served = options.most or "4096, as by default"
    print(f"tools/call of an echo, intent and outcome durable; connections served: {served}")
    report(options.counts, run(options))


if __name__ == "__main__":
    main()
