"""Real servers of others, over both transports and in both eras."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from registry.upstream import (
    CallReply,
    CancelledUpstream,
    Limits,
    NotSent,
    ProgressReport,
    ServerListing,
    Target,
    TaskRef,
    UpstreamCall,
    Upstreams,
)
from tests.upstreams.local import local_upstreams

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent
EVERYTHING = str(ROOT / "node_modules" / ".bin" / "mcp-server-everything")
PATIENT = Limits(idle_s=60, total_s=60)


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


@contextmanager
def running(argv: list[str], log: Path, port: int) -> Iterator[str]:
    env = os.environ | {"PORT": str(port)}
    with log.open("wb") as output:
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        while not listening(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def reports(logs: Path) -> Iterator[str]:
    """A server of the Python SDK, which speaks both eras at one URL."""
    port = free_port()
    argv = [sys.executable, "-m", "examples.reports", "--http", str(port)]
    with running(argv, logs / "reports.log", port) as url:
        yield url


@pytest.fixture(scope="module")
def everything(logs: Path) -> Iterator[str]:
    """A server of the TypeScript SDK with legacy sessions and replies as event streams."""
    port = free_port()
    with running([EVERYTHING, "streamableHttp"], logs / "everything.log", port) as url:
        yield url


def http(url: str, **fields: Any) -> Target:
    return Target(key=url, transport="http", url=url, **fields)


def stdio(*argv: str, **fields: Any) -> Target:
    return Target(key=argv[0], transport="stdio", argv=argv, **fields)


async def called(
    upstreams: Upstreams, target: Target, name: str, arguments: dict[str, Any], **more: Any
) -> CallReply:
    data = json.dumps(arguments).encode()
    limits = more.pop("limits", PATIENT)
    return await upstreams.call_tool(target, UpstreamCall(name, data, limits=limits, **more))


def names(found: ServerListing) -> set[str]:
    return {tool["name"] for tool in found.tools}


REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]


@pytest.mark.long
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_python_sdk_in_each_revision(
    upstreams: Upstreams, reports: str, revision: str
) -> None:
    target = http(reports, revision=revision)
    heard: list[ProgressReport] = []

    reply = await called(
        upstreams, target, "write_report", {"seconds": 1}, on_progress=heard.append
    )

    assert not reply.is_error
    assert json.loads(reply.result)["structuredContent"]["year"] == 2026
    assert heard
    assert upstreams._servers[reports]._agreement.revision == revision  # type: ignore[union-attr]


async def test_the_python_sdk_is_discovered_in_its_newest_revision(
    upstreams: Upstreams, reports: str
) -> None:
    found = await upstreams.discover(http(reports))

    assert found.revision == "2026-07-28"
    assert found.server_info["name"] == "reports"
    assert "write_report" in names(found)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_python_sdk_stops_when_told(
    upstreams: Upstreams, reports: str, logs: Path, revision: str
) -> None:
    cancel = asyncio.Event()
    before = (logs / "reports.log").read_text().count("report cancelled")

    def stop(progress: ProgressReport) -> None:
        cancel.set()

    with pytest.raises(CancelledUpstream):
        await called(
            upstreams,
            http(reports, revision=revision),
            "write_report",
            {"seconds": 60},
            cancel=cancel,
            on_progress=stop,
        )

    async with asyncio.timeout(10):
        while (logs / "reports.log").read_text().count("report cancelled") == before:
            await asyncio.sleep(0.05)


async def test_the_typescript_sdk_over_http(upstreams: Upstreams, everything: str) -> None:
    target = http(everything)
    heard: list[ProgressReport] = []

    found = await upstreams.discover(target)
    echo = await called(upstreams, target, "echo", {"message": "grüße"})
    slow = {"duration": 1, "steps": 2}
    long = await called(
        upstreams, target, "trigger-long-running-operation", slow, on_progress=heard.append
    )

    assert found.revision == "2025-11-25"
    assert {"echo", "get-sum", "get-tiny-image"} <= names(found)
    assert "Echo: grüße".encode() in echo.result
    assert not long.is_error
    assert [progress.progress for progress in heard] == [1, 2]


@pytest.mark.long
async def test_the_typescript_sdk_runs_a_tool_as_a_task(
    upstreams: Upstreams, everything: str
) -> None:
    """Of 2025-11-25, where a tool may demand it."""
    made: list[TaskRef] = []

    async def note(ref: TaskRef) -> None:
        made.append(ref)

    reply = await called(
        upstreams,
        http(everything),
        "simulate-research-query",
        {"topic": "ferries"},
        on_task=note,
        as_task=True,
    )

    (ref,) = made
    assert (bool(ref.id), ref.modern, reply.is_error) == (True, False, False)
    assert b"ferries" in reply.result


@pytest.mark.long
async def test_the_typescript_sdk_forgets_its_sessions(logs: Path) -> None:
    port = free_port()
    async with local_upstreams() as upstreams:
        for number in range(2):
            # The second is another process, which knows nothing of the session with the first.
            log = logs / f"restarted-{number}.log"
            with running([EVERYTHING, "streamableHttp"], log, port) as url:
                reply = await called(upstreams, http(url), "echo", {"message": "hello"})
                assert b"Echo: hello" in reply.result


async def test_the_typescript_sdk_on_stdio(upstreams: Upstreams) -> None:
    target = stdio(EVERYTHING, "stdio")

    found = await upstreams.discover(target)
    sums = await asyncio.gather(
        *(called(upstreams, target, "get-sum", {"a": n, "b": 1}) for n in range(20))
    )

    assert found.revision == "2025-11-25"
    for n, reply in enumerate(sums):
        assert f"is {n + 1}.".encode() in reply.result


@pytest.mark.long
async def test_the_time_server_on_stdio(upstreams: Upstreams) -> None:
    target = stdio(str(BIN / "mcp-server-time"), "--local-timezone", "UTC")

    found = await upstreams.discover(target)
    reply = await called(upstreams, target, "get_current_time", {"timezone": "UTC"})
    wrong = await called(upstreams, target, "get_current_time", {"timezone": "Nowhere"})

    assert found.revision == "2026-07-28"
    assert names(found) == {"get_current_time", "convert_time"}
    assert json.loads(reply.result)["structuredContent"]["timezone"] == "UTC"
    assert wrong.is_error


@pytest.mark.long
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_git_server_on_stdio(upstreams: Upstreams, tmp_path: Path, revision: str) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    (tmp_path / "new.txt").write_text("not added\n")
    target = stdio(*(str(BIN / "mcp-server-git"), "--repository", str(tmp_path)), revision=revision)

    reply = await called(upstreams, target, "git_status", {"repo_path": str(tmp_path)})

    assert b"new.txt" in reply.result
    assert (await upstreams.discover(target)).revision == revision


async def test_a_server_that_went_away_is_certain(upstreams: Upstreams) -> None:
    with pytest.raises(NotSent, match="could not be reached"):
        await called(upstreams, http(f"http://127.0.0.1:{free_port()}/mcp"), "echo", {})
