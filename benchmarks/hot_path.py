"""What standing in the way costs: the server directly, and through Countersign with its record.

`python -m benchmarks.hot_path [--seconds 4] [--rounds 3]` alternates the two on the same
processes and prints medians of the rounds, and ratios. Between them stands the floor: the same
record and the same connections with nothing governed (benchmarks/floor.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.house import House, beside, cpu_seconds, house
from benchmarks.load import POLL_S, Seen
from config.embedded.valkey import free_port
from tests.processes import HOST

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CONNECTIONS = (1, 16, 64)


@dataclass
class Run:
    seen: Seen
    gateway_ms: float
    database_ms: float


def request(path: str, token: str, method: str, params: dict[str, Any]) -> str:
    params = {**params, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    # Without spaces, as the clients of both official SDKs write it.
    body = json.dumps(message, separators=(",", ":"))
    headers = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        f"Mcp-Method: {method}",
        f"Content-Length: {len(body)}",
    ]
    if name := params.get("name"):
        headers.append(f"Mcp-Name: {name}")
    return "\r\n".join(headers) + "\r\n\r\n" + body


def load(
    port: int,
    request: str,
    expected: str,
    connections: int,
    seconds: float,
    look: str = "",
    poll_s: float = POLL_S,
) -> Seen:
    order = {
        "port": port,
        "request": request,
        "expected": expected,
        "connections": connections,
        "seconds": seconds,
        "look": look,
        "poll_s": poll_s,
    }
    argv = [sys.executable, "-m", "benchmarks.load"]
    asked = json.dumps(order)
    done = subprocess.run(argv, input=asked, text=True, stdout=subprocess.PIPE, check=True)
    seen = Seen(**json.loads(done.stdout))
    assert seen.wrong == 0, f"{seen.wrong} replies were wrong"
    return seen


@dataclass
class Side:
    """Where the request is sent, and whose CPU time it costs; 0: nobody's that counts."""

    name: str
    port: int
    request: str
    pid: int = 0


class Sides:
    """The same request to each, in turn; first and last are the server itself and Countersign."""

    def __init__(
        self,
        house: House,
        method: str,
        params: dict[str, Any],
        expected: str,
        floor: tuple[int, int] | None = None,
    ) -> None:
        self.house, self.expected = house, expected
        direct = request("/mcp", house.token, method, params)
        # One server, unprefixed: the very same request.
        governed = request("/mcp/desk/up", house.token, method, params)
        self.sides = [Side("direct", house.upstream_port, direct)]
        if floor is not None:
            self.sides.append(Side("floor", floor[0], governed, floor[1]))
        self.sides.append(Side("countersign", house.agents_port, governed, house.gateway_pid))

    def measure(self, side: Side, connections: int, seconds: float) -> Run:
        gateway, database = cpu_seconds(side.pid), self.house.database_cpu()
        seen = load(side.port, side.request, self.expected, connections, seconds)
        if not side.pid:
            return Run(seen, 0, 0)
        return Run(
            seen,
            1000 * (cpu_seconds(side.pid) - gateway) / seen.requests,
            1000 * (self.house.database_cpu() - database) / seen.requests,
        )

    def measure_governed(self, connections: int, seconds: float) -> Run:
        return self.measure(self.sides[-1], connections, seconds)

    def alternate(self, connections: int, seconds: float, rounds: int) -> dict[str, list[Run]]:
        for side in self.sides[1:]:
            self.measure(side, connections, 1)
        runs: dict[str, list[Run]] = {side.name: [] for side in self.sides}
        for _ in range(rounds):
            for side in self.sides:
                runs[side.name].append(self.measure(side, connections, seconds))
        return runs


def line(name: str, connections: int, runs: list[Run]) -> str:
    def mid(get: Any) -> float:
        return float(median(get(run) for run in runs))

    gateway, database = mid(lambda r: r.gateway_ms), mid(lambda r: r.database_ms)
    cpu = f"{gateway:.3f} + {database:.3f} = {gateway + database:.3f}" if gateway else ""
    return (
        f"{name:<12}{connections:>5}{mid(lambda r: r.seen.per_second):>10.0f}"
        f"{mid(lambda r: r.seen.p50_ms):>9.2f}{mid(lambda r: r.seen.p99_ms):>9.2f}   {cpu}"
    )


def report(sides: Sides, connections: int, seconds: float, rounds: int) -> None:
    runs = sides.alternate(connections, seconds, rounds)
    for name, ran in runs.items():
        print(line(name, connections, ran))
        if name == "direct":
            continue
        pairs = list(zip(runs["direct"], ran, strict=True))
        ratio = median(g.seen.per_second / d.seen.per_second for d, g in pairs)
        added = median(g.seen.p50_ms - d.seen.p50_ms for d, g in pairs)
        print(f"{'':<12}{'':>5}{ratio:>9.1%} of direct, {added:+.2f} ms at the median")
    print()


@contextmanager
def floor(house: House) -> Iterator[tuple[int, int]]:
    """Its port and its process."""
    port = free_port()
    argv = ["-m", "benchmarks.floor", str(port), f"http://{HOST}:{house.upstream_port}/mcp"]
    with beside(argv, port, house.data / "floor.log") as process:
        yield port, process.pid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    heading = f"{'':<12}{'conn':>5}{'calls/s':>10}{'p50 ms':>9}{'p99 ms':>9}   "
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it, floor(it) as bare:
            print("tools/call of an echo, intent and outcome durable")
            print(heading + "CPU ms a call, gateway + database")
            call = Sides(
                it, "tools/call", {"name": "echo", "arguments": {"text": "hello"}}, "hello", bare
            )
            for connections in CONNECTIONS:
                report(call, connections, options.seconds, options.rounds)
            print("tools/list of 200 tools\n" + heading)
            report(Sides(it, "tools/list", {}, "search_197"), 16, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
