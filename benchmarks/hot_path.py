"""What standing in the way costs: the server directly, and through Countersign with its record.

`python -m benchmarks.hot_path [--seconds 4] [--rounds 3]` alternates the two on the same
processes and prints medians of the rounds, and ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.house import House, house
from benchmarks.load import Seen

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
    port: int, request: str, expected: str, connections: int, seconds: float, look: str = ""
) -> Seen:
    order = {
        "port": port,
        "request": request,
        "expected": expected,
        "connections": connections,
        "seconds": seconds,
        "look": look,
    }
    argv = [sys.executable, "-m", "benchmarks.load"]
    asked = json.dumps(order)
    done = subprocess.run(argv, input=asked, text=True, stdout=subprocess.PIPE, check=True)
    seen = Seen(**json.loads(done.stdout))
    assert seen.wrong == 0, f"{seen.wrong} replies were wrong"
    return seen


class Sides:
    """The same request to both, in turn."""

    def __init__(self, house: House, method: str, params: dict[str, Any], expected: str) -> None:
        self.house, self.expected = house, expected
        self.direct = request("/mcp", house.token, method, params)
        # One server, unprefixed: the very same request.
        self.governed = request("/mcp/desk/up", house.token, method, params)

    def measure_direct(self, connections: int, seconds: float) -> Run:
        port = self.house.upstream_port
        return Run(load(port, self.direct, self.expected, connections, seconds), 0, 0)

    def measure_governed(self, connections: int, seconds: float) -> Run:
        gateway, database = self.house.gateway_cpu(), self.house.database_cpu()
        seen = load(self.house.agents_port, self.governed, self.expected, connections, seconds)
        return Run(
            seen,
            1000 * (self.house.gateway_cpu() - gateway) / seen.requests,
            1000 * (self.house.database_cpu() - database) / seen.requests,
        )

    def alternate(
        self, connections: int, seconds: float, rounds: int
    ) -> tuple[list[Run], list[Run]]:
        self.measure_governed(connections, 1)
        direct, governed = [], []
        for _ in range(rounds):
            direct.append(self.measure_direct(connections, seconds))
            governed.append(self.measure_governed(connections, seconds))
        return direct, governed


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
    direct, governed = sides.alternate(connections, seconds, rounds)
    print(line("direct", connections, direct))
    print(line("countersign", connections, governed))
    pairs = list(zip(direct, governed, strict=True))
    ratio = median(g.seen.per_second / d.seen.per_second for d, g in pairs)
    added = median(g.seen.p50_ms - d.seen.p50_ms for d, g in pairs)
    print(f"{'':<12}{'':>5}{ratio:>9.1%} of direct, {added:+.2f} ms at the median\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    heading = f"{'':<12}{'conn':>5}{'calls/s':>10}{'p50 ms':>9}{'p99 ms':>9}   "
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            print("tools/call of an echo, intent and outcome durable")
            print(heading + "CPU ms a call, gateway + database")
            call = Sides(
                it, "tools/call", {"name": "echo", "arguments": {"text": "hello"}}, "hello"
            )
            for connections in CONNECTIONS:
                report(call, connections, options.seconds, options.rounds)
            print("tools/list of 200 tools\n" + heading)
            report(Sides(it, "tools/list", {}, "search_198"), 16, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
