"""Servers that run calls as tasks and clients that follow them, of both eras, as processes."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.embedded.valkey import free_port
from tests.clients import environment_of
from tests.conformance.servers.running import ARGV as OF_THE_SUITE
from tests.flows.servers import MODULES, NODE, Server
from tests.processes import HOST, ROOT, Running

Json = dict[str, Any]
HERE = Path(__file__).parent / "tasking"
OLD_PYTHON = str(environment_of("sqlite") / "bin" / "python")
FASTMCP = str(environment_of("fastmcp") / "bin" / "python")
MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass(frozen=True)
class TaskServer:
    argv: list[str]
    revision: str
    # Tools and their arguments: goes in four steps, asks for something, lasts.
    steps: tuple[str, Json] = ("count", {"seconds": 8})
    asks: tuple[str, Json] = ("greet", {})
    lasts: tuple[str, Json] = ("count", {"seconds": 600})
    # What each step says, the question, and what it says of the answer.
    said: tuple[str, ...] = ("Step 1", "Step 2", "Step 3", "Step 4")
    question: str = "What is your name?"
    answered: str = "Hello, Ann!"
    # The option before its port.
    port: str = ""
    # No call of these is the same as another.
    differs: str = "seconds"

    def asked(self, kind: str, number: int) -> tuple[str, Json]:
        tool, arguments = getattr(self, kind)
        if self.differs in arguments:
            given = arguments[self.differs]
            other = given + number / 1000 if isinstance(given, int) else f"{given} {number}"
            arguments = {**arguments, self.differs: other}
        return tool, arguments


OF_SUITE: dict[str, Any] = {
    "revision": MODERN,
    "steps": ("slow_compute", {"seconds": 8}),
    "asks": ("confirm_delete", {"filename": "a.txt"}),
    "lasts": ("slow_compute", {"seconds": 600}),
    "question": "Delete it?",
    "answered": "confirm_delete is done.",
    "port": "--http",
}
RESEARCH = "simulate-research-query"
SERVERS = {
    "fastmcp": TaskServer([FASTMCP, str(HERE / "fastmcp_server.py")], MODERN),
    "python-1": TaskServer([OLD_PYTHON, str(HERE / "python_1_server.py")], LEGACY),
    # Server Everything, of the protocol's own people.
    "typescript-1": TaskServer(
        [NODE, str(MODULES / "server-everything" / "dist" / "index.js"), "streamableHttp"],
        LEGACY,
        steps=(RESEARCH, {"topic": "ferries"}),
        asks=(RESEARCH, {"topic": "python", "ambiguous": True}),
        lasts=(RESEARCH, {"topic": "ships"}),
        said=(
            "Gathering sources...",
            "Analyzing content...",
            "Synthesizing findings...",
            "Generating report...",
        ),
        question="could have multiple interpretations",
        answered="(snake)",
        differs="topic",
    ),
    "python-2": TaskServer(OF_THE_SUITE["python-2"], **OF_SUITE),
    "typescript-2": TaskServer(OF_THE_SUITE["typescript-2"], **OF_SUITE),
}
CLIENTS: dict[str, tuple[list[str], str]] = {
    "fastmcp": ([FASTMCP, str(HERE / "fastmcp_client.py")], MODERN),
    "python-1": ([OLD_PYTHON, str(HERE / "python_1_client.py")], LEGACY),
    "typescript-1": ([NODE, str(HERE / "typescript_1_client.mjs")], LEGACY),
    "typescript-2": ([NODE, str(HERE / "typescript_2_client.mjs")], MODERN),
    "typescript-2-legacy": ([NODE, str(HERE / "typescript_2_client.mjs")], LEGACY),
}


@contextmanager
def running_servers(folder: Path) -> Iterator[dict[str, Server]]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with ExitStack() as stack:
        servers = {}
        for slug, it in SERVERS.items():
            port = free_port()
            env = {**os.environ, "PYTHONPATH": path, "PORT": str(port), "PYTHONUNBUFFERED": "1"}
            argv = [*it.argv, *filter(None, [it.port]), str(port)]
            process = Running(argv, env=env, log=folder / f"{slug}.log", ready=_listens)
            stack.callback(process.kill)
            servers[slug] = Server(slug, url=f"http://{HOST}:{port}/mcp", process=process)
        yield servers


def _listens(process: Running) -> bool:
    said = process.text()
    return "running on" in said or "listening on port" in said


@dataclass
class Following:
    """One client's program that follows one task."""

    process: asyncio.subprocess.Process
    said: list[Json] = field(default_factory=list)

    async def until(self, kind: str) -> Json:
        while not (found := [one for one in self.said if one["type"] == kind]):
            assert self.process.stdout
            line = await self.process.stdout.readline()
            assert line, f"the client ended after {self.said}"
            self.said.append(json.loads(line))
        return found[-1]

    async def cancel(self) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"cancel\n")
        await self.process.stdin.drain()

    def messages(self) -> list[str]:
        """What it saw of how far the task is, in order and each once."""
        said = [one.get("message") for one in self.said if one["type"] == "status"]
        return list(dict.fromkeys(filter(None, said)))


@asynccontextmanager
async def following(
    client: str, url: str, token: str, tool: str, arguments: Json
) -> AsyncIterator[Following]:
    argv, revision = CLIENTS[client]
    mode = "auto" if revision == MODERN else "legacy"
    given = [*argv, url, token, tool, json.dumps(arguments), *([mode] if "mjs" in argv[1] else [])]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*given, stdin=pipe, stdout=pipe, limit=2**24)
    try:
        yield Following(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
