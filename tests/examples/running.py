"""Example servers as real processes, and a connection to one of them by the SDK's client."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent, Tool

NODE = shutil.which("node") or "there-is-no-node"
EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE = 20.0
Mode = Literal["auto", "legacy"]
T = TypeVar("T")


class Log:
    """What a process writes beside the protocol."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._grew = threading.Condition()

    def follow(self, stream: Any) -> None:
        for line in stream:
            with self._grew:
                self._lines.append(line)
                self._grew.notify_all()

    def wait_for(self, pattern: str) -> re.Match[str]:
        with self._grew:
            match = self._grew.wait_for(lambda: re.search(pattern, self.text), DEADLINE)
        assert match, f"{pattern!r} was not logged: {self.text}"
        return match

    def count(self, words: str) -> int:
        return self.text.count(words)

    @property
    def text(self) -> str:
        # The SDK breaks its lines at 80 columns.
        return re.sub(r"\s+", " ", "".join(self._lines))


@dataclass(frozen=True)
class Connection:
    """A client that is connected in a loop of its own, for tests that need no loop."""

    portal: BlockingPortal
    client: Client
    log: Log

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result: CallToolResult = self.portal.call(self.client.call_tool, tool, arguments)
        return result

    def error(self, tool: str, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert result.is_error, result
        return text_of(result)

    def run(self, function: Callable[[Client], Awaitable[T]]) -> T:
        return self.portal.call(function, self.client)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


@contextmanager
def over_stdio(name: str, *options: str, **environment: str) -> Iterator[Connection]:
    executable, *arguments = command(name)
    process = StdioServerParameters(
        command=executable, args=[*arguments, *options], env=environment or None
    )
    log = Log()
    with pipe_into(log) as errlog, start_blocking_portal() as portal:
        client = Client(stdio_client(process, errlog=errlog))
        with portal.wrap_async_context_manager(client):
            yield Connection(portal, client, log)


@contextmanager
def over_http(url: str, log: Log, mode: Mode = "auto") -> Iterator[Connection]:
    client = Client(url, mode=mode)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Connection(portal, client, log)


@contextmanager
def http_server(name: str, *options: str) -> Iterator[tuple[str, Log]]:
    """A free port is chosen by the system and read from what the process says."""
    log = Log()
    with pipe_into(log) as errlog:
        argv = [*command(name), "--http", "0", *options]
        process = subprocess.Popen(argv, stdout=errlog, stderr=errlog)
        try:
            port = log.wait_for(r"running on http://127\.0\.0\.1:(\d+)")[1]
            yield f"http://127.0.0.1:{port}/mcp", log
        finally:
            process.terminate()
            process.wait(DEADLINE)


def command(name: str) -> list[str]:
    in_typescript = EXAMPLES / "typescript" / f"{name}.ts"
    if in_typescript.exists():
        # Node.js before 22.18 runs it with this alone.
        return [NODE, "--experimental-strip-types", str(in_typescript)]
    return [sys.executable, str(EXAMPLES / f"{name}.py")]


@contextmanager
def pipe_into(log: Log) -> Iterator[Any]:
    """The writing end of a pipe, whose other end a thread reads into the log."""

    reading, writing = os.pipe()
    with os.fdopen(reading, errors="replace") as source:
        thread = threading.Thread(target=log.follow, args=[source])
        thread.start()
        with os.fdopen(writing, "w") as end:
            yield end
        thread.join(DEADLINE)
