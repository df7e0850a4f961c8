"""Servers on stdio: our own children, from the first greeting to the last sign of life."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from registry.upstream import (
    CallReply,
    Limits,
    Lost,
    NotSent,
    ProgressReport,
    ProtocolError,
    ResultTooLarge,
    RpcErrorReply,
    Target,
    TimedOut,
    UpstreamCall,
    Upstreams,
)
from registry.upstream.session import stdio
from registry.upstream.transport.process import ServerProcess, Tail
from tests.upstreams.local import local_upstreams

SERVER = str(Path(__file__).parent.parent / "upstreams" / "on_stdio.py")


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


def target(era: str = "modern", **fields: Any) -> Target:
    return Target(key="k", transport="stdio", argv=(sys.executable, SERVER, era), **fields)


async def called(
    upstreams: Upstreams, name: str, arguments: bytes = b"{}", **more: Any
) -> CallReply:
    where = more.pop("target", target())
    return await upstreams.call_tool(where, UpstreamCall(name, arguments, **more))


def said(reply: CallReply) -> str:
    text: str = json.loads(reply.result)["content"][0]["text"]
    return text


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def test_it_sends_the_very_bytes_of_the_arguments(upstreams: Upstreams) -> None:
    arguments = '{ "a" : 1.0, "é":"\\n" }'

    sent = said(await called(upstreams, "echo", arguments.encode()))

    assert f'"arguments":{arguments},' in sent
    assert '"io.modelcontextprotocol/protocolVersion":"2026-07-28"' in sent


async def test_it_says_that_a_page_is_done_with_to_whoever_it_told_of_it(
    upstreams: Upstreams,
) -> None:
    heard: list[str] = []
    with pytest.raises(RpcErrorReply):
        await called(upstreams, "gate", target=target("legacy"), on_page=heard.append)

    # In the middle of another call, by which it has nothing to do with it.
    others: list[str] = []
    await called(upstreams, "opened", target=target("legacy"), on_page=others.append)

    assert (heard, others) == (["e1"], [])


async def test_a_line_break_between_tokens_becomes_a_space(upstreams: Upstreams) -> None:
    sent = said(await called(upstreams, "echo", b'{"a":\r\n1}'))

    assert '"arguments":{"a":  1},' in sent


@pytest.mark.parametrize("era", ["legacy", "touchy"])
async def test_it_greets_an_older_server(upstreams: Upstreams, era: str) -> None:
    found = await upstreams.discover(target(era))
    sent = json.loads(said(await called(upstreams, "echo", target=target(era))))

    assert (found.revision, found.server_info["name"]) == ("2025-06-18", "on stdio")
    assert sent["params"] == {"name": "echo", "arguments": {}}


async def test_a_hint_spares_the_question_that_an_older_server_does_not_answer(
    upstreams: Upstreams,
) -> None:
    began = time.monotonic()
    found = await upstreams.discover(target("mute", revision="2025-06-18"))

    assert found.revision == "2025-06-18"
    assert time.monotonic() - began < 5


async def test_a_wrong_hint_heals(upstreams: Upstreams) -> None:
    assert (await upstreams.discover(target(revision="2025-03-26"))).revision == "2026-07-28"


async def test_one_process_serves_many_calls_at_once(upstreams: Upstreams) -> None:
    seconds = [0.2, 0.1, 0.0]
    naps = [called(upstreams, "nap", json.dumps({"seconds": each}).encode()) for each in seconds]
    pids = [called(upstreams, "pid") for _ in range(10)]

    *rested, a, b, c, d, e, f, g, h, i, j = await asyncio.gather(*naps, *pids)

    assert {said(reply) for reply in rested} == {"rested"}
    assert len({said(reply) for reply in (a, b, c, d, e, f, g, h, i, j)}) == 1


async def test_it_passes_on_progress_and_log(upstreams: Upstreams) -> None:
    heard: list[ProgressReport] = []
    logged: list[object] = []
    await called(upstreams, "progress", on_progress=heard.append, on_log=logged.append)

    assert [progress.progress for progress in heard] == [0, 1, 2]
    assert logged == [{"data": "said"}]


async def test_it_answers_what_a_server_asks(upstreams: Upstreams) -> None:
    answers = json.loads(said(await called(upstreams, "ask")))

    assert answers[0] == {"jsonrpc": "2.0", "id": "q", "result": {}}
    assert answers[1]["error"]["code"] == -32601


async def test_noise_on_the_output_is_overheard(upstreams: Upstreams) -> None:
    assert said(await called(upstreams, "noise")) == "after noise"
    assert "listening on port 80" in upstreams.stderr("k")


async def test_a_spoilt_reply_is_nonsense(upstreams: Upstreams) -> None:
    with pytest.raises(ProtocolError, match="not JSON"):
        await called(upstreams, "spoilt")


@pytest.mark.parametrize("name", ["huge", "huge_and_backwards", "large"])
async def test_a_reply_over_the_limit_harms_no_other_call(upstreams: Upstreams, name: str) -> None:
    other = asyncio.create_task(called(upstreams, "nap", b'{"seconds":0.5}'))
    await called(upstreams, "pid")
    with pytest.raises(ResultTooLarge, match="100000 bytes"):
        await called(upstreams, name, limits=Limits(max_bytes=100_000))

    assert said(await other) == "rested"


async def test_a_line_without_end_ends_the_process(upstreams: Upstreams) -> None:
    pid = int(said(await called(upstreams, "pid")))
    with pytest.raises((ResultTooLarge, Lost)):
        await called(upstreams, "endless")

    await eventually(lambda: not alive(pid))
    assert int(said(await called(upstreams, "pid"))) != pid


async def test_the_environment_is_clean(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_SECRET_KEY", "hidden")
    where = target(env={"API_KEY": "theirs"})

    environment = json.loads(said(await called(upstreams, "environment", target=where)))

    assert environment["API_KEY"] == "theirs"
    assert set(environment) <= {"API_KEY", "PATH", "HOME", "LANG", "LC_CTYPE"}


async def test_it_starts_in_the_directory_that_is_named(
    upstreams: Upstreams, tmp_path: Path
) -> None:
    pid = int(said(await called(upstreams, "pid", target=target(cwd=str(tmp_path)))))

    assert Path(f"/proc/{pid}/cwd").resolve() == tmp_path.resolve()


async def test_a_process_that_dies_in_a_call_leaves_it_unknown(upstreams: Upstreams) -> None:
    other = asyncio.create_task(called(upstreams, "never"))
    await called(upstreams, "pid")
    with pytest.raises(Lost, match="ended with code 3"):
        await called(upstreams, "die")
    with pytest.raises(Lost):
        await other

    assert "last words" in upstreams.stderr("k")


async def test_a_process_that_dies_takes_along_what_it_started(upstreams: Upstreams) -> None:
    grandchild = int(said(await called(upstreams, "grandchild")))
    with pytest.raises(Lost):
        await called(upstreams, "die")

    await eventually(lambda: not alive(grandchild))


async def test_a_killed_process_leaves_the_call_unknown(upstreams: Upstreams) -> None:
    pid = int(said(await called(upstreams, "pid")))
    waiting = asyncio.create_task(called(upstreams, "never"))
    await called(upstreams, "pid")
    os.kill(pid, signal.SIGKILL)

    with pytest.raises(Lost, match="SIGKILL"):
        await waiting
    assert int(said(await called(upstreams, "pid"))) != pid


async def test_a_process_that_closes_its_output_leaves_the_call_unknown(
    upstreams: Upstreams,
) -> None:
    with pytest.raises(Lost, match="closed its output"):
        await called(upstreams, "close_output")


async def test_what_it_writes_last_still_counts(upstreams: Upstreams) -> None:
    assert said(await called(upstreams, "answer_and_die")) == "goodbye"


async def test_a_process_that_keeps_ending_is_left_alone(upstreams: Upstreams) -> None:
    for _ in range(2):
        with pytest.raises(NotSent, match="did not start"):
            await called(upstreams, "pid", target=target("dead"))
    for _ in range(2):
        with pytest.raises(NotSent, match="ended 5 times within 60 seconds") as caught:
            await called(upstreams, "pid", target=target("dead"))

    assert "cannot find my configuration" in caught.value.detail


async def test_a_process_that_ends_before_it_is_greeted_did_not_start(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ServerProcess.start

    async def start_late(where: Target, stderr: Tail) -> ServerProcess:
        child = await start(where, stderr)
        await asyncio.wait([child._gone])
        return child

    monkeypatch.setattr(ServerProcess, "start", start_late)
    for _ in range(2):
        with pytest.raises(NotSent, match="did not start") as caught:
            await called(upstreams, "pid", target=target("dead"))
        assert "cannot find my configuration" in caught.value.detail
    with pytest.raises(NotSent, match="ended 5 times within 60 seconds"):
        await called(upstreams, "pid", target=target("dead"))


async def test_a_server_of_today_that_is_slow_to_begin_is_not_taken_for_an_older_one(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greeted as one, it says which revision it speaks (-32022)."""
    monkeypatch.setattr(stdio, "_PROBE_S", 0.5)

    found = await upstreams.discover(target("slow"))

    assert found.revision == "2026-07-28"
    assert [tool["name"] for tool in found.tools] == ["echo"]


async def test_a_missing_program_is_certain(upstreams: Upstreams) -> None:
    where = Target(key="k", transport="stdio", argv=("no-such-program",))
    with pytest.raises(NotSent, match="no program “no-such-program”"):
        await called(upstreams, "pid", target=where)


async def test_a_missing_directory_is_certain(upstreams: Upstreams) -> None:
    with pytest.raises(NotSent, match="cannot be started"):
        await called(upstreams, "pid", target=target(cwd="/no/such/place"))


async def test_words_of_the_command_stay_words(upstreams: Upstreams, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    words = f"; touch {trap} $(touch {trap}) `touch {trap}` && touch {trap}"
    where = Target(key="k", transport="stdio", argv=(sys.executable, SERVER, "modern", words))

    pid = int(said(await called(upstreams, "pid", target=where)))

    assert words in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    assert not trap.exists()


async def test_stdio_can_be_forbidden() -> None:
    upstreams = Upstreams(stdio_allowed=False)
    with pytest.raises(NotSent, match="stdio are not allowed"):
        await called(upstreams, "pid")


async def test_silence_ends_the_call_and_tells_the_server(upstreams: Upstreams) -> None:
    with pytest.raises(TimedOut) as caught:
        await called(upstreams, "never", limits=Limits(idle_s=0.2))

    assert caught.value.which == "idle"
    await eventually(lambda: "heard the cancellation" in upstreams.stderr("k"))


async def test_the_total_ends_the_call(upstreams: Upstreams) -> None:
    await called(upstreams, "pid")
    with pytest.raises(TimedOut) as caught:
        await called(upstreams, "never", limits=Limits(total_s=0.2))

    assert caught.value.which == "total"


async def test_an_error_of_the_server_is_an_answer(upstreams: Upstreams) -> None:
    await upstreams.discover(target("legacy"))
    with pytest.raises(RpcErrorReply) as caught:
        await upstreams._servers["k"].ask("resources/list", b"", Limits())

    assert caught.value.code == -32602


async def test_only_the_end_of_its_errors_is_kept(upstreams: Upstreams) -> None:
    await called(upstreams, "shout")
    await eventually(lambda: upstreams.stderr("k").endswith("the end"))

    assert len(upstreams.stderr("k")) <= 2 * 64 * 1024


@pytest.mark.long
@pytest.mark.parametrize("era", ["modern", "stubborn"])
async def test_closing_ends_the_process_and_what_it_started(era: str) -> None:
    async with local_upstreams() as upstreams:
        pid = int(said(await called(upstreams, "pid", target=target(era))))
        grandchild = int(said(await called(upstreams, "grandchild", target=target(era))))
        waiting = asyncio.create_task(called(upstreams, "never", target=target(era)))
        await called(upstreams, "pid", target=target(era))

    with pytest.raises(Lost):
        await waiting
    assert not alive(pid)
    await eventually(lambda: not alive(grandchild))


async def test_closing_while_it_starts_leaves_nothing() -> None:
    async with local_upstreams() as upstreams:
        waiting = asyncio.create_task(called(upstreams, "pid", target=target("mute")))
        await eventually(lambda: bool(children()))

    with pytest.raises(NotSent):
        await waiting
    assert not children()


async def test_a_changed_command_takes_the_place_of_the_old(upstreams: Upstreams) -> None:
    before = int(said(await called(upstreams, "pid")))
    after = int(said(await called(upstreams, "pid", target=target(env={"A": "b"}))))

    assert before != after
    assert not alive(before)


def test_a_process_ends_with_the_one_that_asked_for_it(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from registry.upstream import Target, UpstreamCall, Upstreams
async def main():
    target = Target(key="k", transport="stdio", argv=(sys.executable, {SERVER!r}, "stubborn"))
    reply = await Upstreams().call_tool(target, UpstreamCall("pid", b"{{}}"))
    print(reply.result.decode(), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    root = Path(__file__).parent.parent.parent
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root)
    assert parent.stdout is not None
    with parent:
        pid = int(json.loads(parent.stdout.readline())["content"][0]["text"])
        parent.kill()

    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def children() -> list[str]:
    task = f"/proc/self/task/{os.getpid()}/children"
    return [pid for pid in Path(task).read_text().split() if SERVER in command(pid)]


def command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
