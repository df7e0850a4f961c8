"""What each revision and each form of a reply costs, beside the modern one in JSON.

`python -m benchmarks.forms [--seconds 2] [--rounds 3] [--connections 16]` asks for all of them in
turn, on the same processes, and prints medians of the rounds.

- json: the answer is one document.
- events: progress was asked for and the server tells none; the answer is a stream with one event.
- progress: the server tells three steps before its answer.
- task: the call is a worker's, and its client comes back for the task every 20 ms until it is done.

With `--poll 1` only tasks are asked for, whose clients come back once a second, as they are told;
what the processes take meanwhile when nothing happens is measured before and taken off.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.hot_path import META, load
from benchmarks.house import House, house
from benchmarks.load import Seen
from benchmarks.upstream import TELLS
from tests.processes import HOST

MODERN = "2026-07-28"
REVISIONS = (MODERN, "2025-11-25", "2025-06-18", "2025-03-26")
FORMS = ("json", "events", "progress")
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
SLOW_TOOL = "search_0"
PATH = "/mcp/desk/up"


@dataclass(frozen=True)
class Way:
    revision: str
    form: str
    request: str
    expected: str
    look: str = ""


@dataclass(frozen=True)
class Run:
    seen: Seen
    gateway_ms: float
    database_ms: float
    worker_ms: float


def written(token: str, revision: str, message: dict[str, Any], session: str = "") -> str:
    body = json.dumps(message, separators=(",", ":"))
    length = "LENGTH" if "TASK" in body else len(body)
    headers = [
        f"POST {PATH} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {revision}",
        f"Content-Length: {length}",
    ]
    if revision == MODERN:
        named = message["params"].get("taskId") or message["params"]["name"]
        headers += [f"Mcp-Method: {message['method']}", f"Mcp-Name: {named}"]
    if session:
        headers.append(f"Mcp-Session-Id: {session}")
    return "\r\n".join(headers) + "\r\n\r\n" + body


def begun(it: House, revision: str) -> str:
    """A session: what it costs is not counted."""
    if revision == MODERN:
        return ""
    hello = {"capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    message["params"] = {"protocolVersion": revision, **hello}
    asked = urllib.request.Request(
        f"http://{HOST}:{it.agents_port}{PATH}",
        json.dumps(message).encode(),
        {
            "Authorization": f"Bearer {it.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    with urllib.request.urlopen(asked) as response:
        return str(response.headers["Mcp-Session-Id"])


def ways(it: House) -> list[Way]:
    found = []
    for revision in REVISIONS:
        session = begun(it, revision)
        for form in FORMS:
            text = TELLS if form == "progress" else "hello"
            meta: dict[str, Any] = {**META} if revision == MODERN else {}
            meta |= {} if form == "json" else {"progressToken": "far"}
            params: dict[str, Any] = {"name": "echo", "arguments": {"text": text}}
            params |= {"_meta": meta} if meta else {}
            message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
            expected = '"progress":3' if form == "progress" else '"text":"hello"'
            found.append(
                Way(revision, form, written(it.token, revision, message, session), expected)
            )
    return [*found, as_task(it)]


def as_task(it: House) -> Way:
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": TASKS}
    asked = {"name": SLOW_TOOL, "arguments": {"query": "#NUMBER#"}, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": asked}
    get = {"jsonrpc": "2.0", "id": 8, "method": "tasks/get"}
    get["params"] = {"taskId": "TASK", "_meta": meta}
    request, look = (written(it.token, MODERN, message) for message in (call, get))
    return Way(MODERN, "task", request, '"status":"completed"', look)


def measured(it: House, way: Way, connections: int, seconds: float) -> Run:
    before = it.gateway_cpu(), it.database_cpu(), it.worker_cpu()
    seen = load(it.agents_port, way.request, way.expected, connections, seconds, way.look)
    after = it.gateway_cpu(), it.database_cpu(), it.worker_cpu()
    each = (1000 * (a - b) / seen.requests for a, b in zip(after, before, strict=True))
    return Run(seen, *each)


def alternated(it: House, connections: int, seconds: float, rounds: int) -> dict[Way, list[Run]]:
    them, found = ways(it), defaultdict(list)
    for way in them:
        measured(it, way, connections, 0.5)
    for _ in range(rounds):
        for way in them:
            found[way].append(measured(it, way, connections, seconds))
    return found


def polled(it: House, connections: int, seconds: float, poll_s: float) -> str:
    """CPU of a task in ms, of gateway, database and worker."""

    def spent() -> list[float]:
        return [it.gateway_cpu(), it.database_cpu(), it.worker_cpu()]

    way = as_task(it)
    measured(it, way, connections, 1)
    before, began = spent(), time.monotonic()
    time.sleep(seconds)
    idle = [(a - b) / (time.monotonic() - began) for a, b in zip(spent(), before, strict=True)]
    before, began = spent(), time.monotonic()
    seen = load(it.agents_port, way.request, way.expected, connections, seconds, way.look, poll_s)
    took = time.monotonic() - began
    each = [
        1000 * (a - b - took * rest) / seen.requests
        for a, b, rest in zip(spent(), before, idle, strict=True)
    ]
    return (
        f"{seen.requests} tasks, {seen.per_second:.1f} a second, half within {seen.p50_ms:.0f} ms: "
        f"CPU {' + '.join(f'{ms:.1f}' for ms in each)} = {sum(each):.1f} ms a task; nothing at "
        f"work: {' + '.join(f'{1000 * rest:.1f}' for rest in idle)} ms a second"
    )


def line(way: Way, runs: list[Run], modern: list[Run]) -> str:
    rate = median(run.seen.per_second for run in runs)
    p50 = median(run.seen.p50_ms for run in runs)
    ratio = median(
        run.seen.per_second / other.seen.per_second for run, other in zip(runs, modern, strict=True)
    )
    cpu = [median(ms) for ms in zip(*((r.gateway_ms, r.database_ms) for r in runs), strict=True)]
    worker = median(run.worker_ms for run in runs)
    cpu += [worker] if way.form == "task" else []
    parts = " + ".join(f"{ms:.3f}" for ms in cpu)
    return (
        f"{way.revision:<12}{way.form:<10}{rate:>8.0f}{p50:>9.2f}"
        f"{ratio:>8.0%}   {parts} = {sum(cpu):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--poll", type=float)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            work_long(it)
            if options.poll:
                print(polled(it, options.connections, options.seconds, options.poll))
                return
            found = alternated(it, options.connections, options.seconds, options.rounds)
    print(f"{'revision':<12}{'form':<10}{'calls/s':>8}{'p50 ms':>9}{'ratio':>8}   ", end="")
    print("CPU ms a call: gateway + database (+ worker)")
    modern = next(iter(found.values()))
    for way, runs in found.items():
        print(line(way, runs, modern))


def work_long(it: House) -> None:
    from registry.models import Tool

    Tool.objects.filter(name=SLOW_TOOL).update(mode=Tool.Mode.BACKGROUND)
    assert it.stack
    assert it.stack.worker


if __name__ == "__main__":
    main()
