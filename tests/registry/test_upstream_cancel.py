"""Calling a call back: told to the server in its way, and a reply that comes anyway wins."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from registry.upstream import (
    CallReply,
    CancelledUpstream,
    Limits,
    NotSent,
    Target,
    TimedOut,
    UpstreamCall,
    Upstreams,
)
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    MODERN,
    RawServer,
    Request,
    begin_events,
    end_events,
    error,
    event,
    legacy,
    modern,
    reply,
    respond,
    serving,
)

SOON = Limits(cancel_grace_s=0.3)
STDIO = str(Path(__file__).parent.parent / "upstreams" / "on_stdio.py")


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


async def eventually(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def start(
    upstreams: Upstreams, target: Target, cancel: asyncio.Event | None, name: str = "t"
) -> asyncio.Task[CallReply]:
    call = upstreams.call_tool(target, UpstreamCall(name, b"{}", limits=SOON, cancel=cancel))
    return asyncio.create_task(call)


class Slow:
    """Holds each call until told to answer it, and notices when its connection is closed."""

    def __init__(self, *, as_events: bool = False) -> None:
        self.go_on = asyncio.Event()
        self.closed = asyncio.Event()
        self.as_events = as_events

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        if self.as_events:
            begin_events(out)
            await out.drain()
        go_on = asyncio.create_task(self.go_on.wait())
        gone = asyncio.create_task(request.rest.read(1))
        await asyncio.wait([go_on, gone], return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            self.closed.set()
        go_on.cancel()
        gone.cancel()
        self.answer(request, out)

    def answer(self, request: Request, out: asyncio.StreamWriter) -> None:
        if self.as_events:
            event(out, reply(request))
            end_events(out)
        else:
            respond(out, reply(request))


async def sent(server: RawServer, method: str = "tools/call") -> None:
    await eventually(lambda: server.sent(method))


@pytest.mark.parametrize("as_events", [False, True])
async def test_the_new_revision_is_told_by_closing_the_stream(
    upstreams: Upstreams, as_events: bool
) -> None:
    slow, cancel = Slow(as_events=as_events), asyncio.Event()
    async with serving(modern(slow)) as server:
        call = start(upstreams, server.target(), cancel)
        await sent(server)
        cancel.set()
        with pytest.raises(CancelledUpstream) as caught:
            await call
        await asyncio.wait_for(slow.closed.wait(), 10)

    assert not caught.value.acknowledged
    assert not server.sent("notifications/cancelled")


@pytest.mark.parametrize("as_events", [False, True])
async def test_an_older_server_is_told_and_the_stream_kept(
    upstreams: Upstreams, as_events: bool
) -> None:
    slow, cancel = Slow(as_events=as_events), asyncio.Event()
    async with serving(legacy(slow, session="s")) as server:
        call = start(upstreams, server.target(), cancel)
        await sent(server)
        cancel.set()
        await sent(server, "notifications/cancelled")
        slow.go_on.set()
        answer = await call

    assert answer.result == b'{"content":[]}'
    [told] = server.sent("notifications/cancelled")
    assert told.json["params"]["requestId"] == server.sent("tools/call")[0].json["id"]
    assert told.headers["mcp-session-id"] == "s"


async def test_after_the_grace_an_older_server_is_not_waited_for(upstreams: Upstreams) -> None:
    slow, cancel = Slow(), asyncio.Event()
    async with serving(legacy(slow)) as server:
        call = start(upstreams, server.target(), cancel)
        await sent(server)
        cancel.set()
        with pytest.raises(CancelledUpstream) as caught:
            await call

    assert not caught.value.acknowledged
    assert len(server.sent("notifications/cancelled")) == 1


async def test_an_error_after_the_cancellation_confirms_it(upstreams: Upstreams) -> None:
    class Confirming(Slow):
        def answer(self, request: Request, out: asyncio.StreamWriter) -> None:
            respond(out, error(request, 0, "Request cancelled"))

    slow, cancel = Confirming(), asyncio.Event()
    async with serving(legacy(slow)) as server:
        call = start(upstreams, server.target(), cancel)
        await sent(server)
        cancel.set()
        await sent(server, "notifications/cancelled")
        slow.go_on.set()
        with pytest.raises(CancelledUpstream) as caught:
            await call

    assert caught.value.acknowledged


@pytest.mark.parametrize("revision", ["", MODERN])
async def test_a_call_withdrawn_beforehand_is_not_sent(upstreams: Upstreams, revision: str) -> None:
    cancel = asyncio.Event()
    cancel.set()
    async with serving(modern(Slow())) as server:
        with pytest.raises(NotSent, match="withdrawn before it was sent"):
            await start(upstreams, server.target(revision=revision), cancel)

    assert not server.sent("tools/call")


async def test_a_cancel_event_that_is_never_set_changes_nothing(upstreams: Upstreams) -> None:
    slow, cancel = Slow(), asyncio.Event()
    async with serving(modern(slow)) as server:
        call = start(upstreams, server.target(), cancel)
        await sent(server)
        await asyncio.sleep(0.05)
        slow.go_on.set()
        answer = await call
        cancel.set()

    assert answer.result == b'{"content":[]}'


async def test_a_cancelled_task_closes_the_stream(upstreams: Upstreams) -> None:
    slow = Slow()
    async with serving(modern(slow)) as server:
        call = start(upstreams, server.target(), None)
        await sent(server)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(slow.closed.wait(), 10)


async def test_a_cancelled_task_tells_an_older_server(upstreams: Upstreams) -> None:
    async with serving(legacy(Slow())) as server:
        call = start(upstreams, server.target(), asyncio.Event())
        await sent(server)
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await sent(server, "notifications/cancelled")


async def test_a_call_that_took_too_long_is_called_back(upstreams: Upstreams) -> None:
    async with serving(legacy(Slow())) as server:
        with pytest.raises(TimedOut):
            await upstreams.call_tool(
                server.target(), UpstreamCall("t", b"{}", limits=Limits(total_s=0.3))
            )
        await sent(server, "notifications/cancelled")


def on_stdio(era: str) -> Target:
    return Target(key="k", transport="stdio", argv=(sys.executable, STDIO, era))


async def begun(upstreams: Upstreams, era: str) -> None:
    """Until the server has taken the call before: it reads one line after the other."""
    await upstreams.call_tool(on_stdio(era), UpstreamCall("pid", b"{}"))


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_on_stdio_a_confirmation_is_heard(upstreams: Upstreams, era: str) -> None:
    cancel = asyncio.Event()
    call = start(upstreams, on_stdio(era), cancel, "until_cancelled")
    await begun(upstreams, era)
    cancel.set()
    with pytest.raises(CancelledUpstream) as caught:
        await call

    assert caught.value.acknowledged


async def test_on_stdio_a_reply_wins(upstreams: Upstreams) -> None:
    cancel = asyncio.Event()
    call = start(upstreams, on_stdio("modern"), cancel, "ends_well_when_cancelled")
    await begun(upstreams, "modern")
    cancel.set()

    assert b"too late to stop" in (await call).result


async def test_on_stdio_the_grace_ends(upstreams: Upstreams) -> None:
    cancel = asyncio.Event()
    call = start(upstreams, on_stdio("modern"), cancel, "never")
    await begun(upstreams, "modern")
    cancel.set()
    with pytest.raises(CancelledUpstream) as caught:
        await call

    assert not caught.value.acknowledged
    assert "heard the cancellation" in upstreams.stderr("k")


async def test_on_stdio_a_cancelled_task_tells_the_server(upstreams: Upstreams) -> None:
    call = start(upstreams, on_stdio("modern"), None, "never")
    await begun(upstreams, "modern")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await eventually(lambda: "heard the cancellation" in upstreams.stderr("k"))
