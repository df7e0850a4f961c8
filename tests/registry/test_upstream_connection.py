"""HTTP/1.1 as servers may speak it, on one connection that is kept."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from registry.upstream import Limits, Lost, ProtocolError, TimedOut, UpstreamCall, Upstreams
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import MODERN, Handler, Request, modern, reply, respond, serving

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SHORT = Limits(idle_s=0.3, total_s=5)


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


def writing(*pieces: bytes, close: bool = False) -> Handler:
    """Each with the reply in place of "@", and its length in place of "#" or, in hex, "$"."""

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        body = reply(request)
        for piece in pieces:
            sizes = piece.replace(b"#", b"%d" % len(body)).replace(b"$", b"%x" % len(body))
            out.write(sizes.replace(b"@", body))
            await out.drain()
            # What comes next may be another packet.
            await asyncio.sleep(0)
        if close:
            out.close()

    return call


async def ask_twice(upstreams: Upstreams, handler: Handler) -> int:
    """How many connections that took."""
    async with serving(modern(handler)) as server:
        target = server.target(revision=MODERN)
        for _ in range(2):
            answer = await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            assert answer.result == b'{"content":[]}'
        assert len(server.sent("tools/call")) == 2
        return server.connections


@pytest.mark.parametrize(
    "pieces",
    [
        (JSON + b"Content-Length: #\r\n\r\n@",),
        (b"HTTP/1.1 100 Continue\r\n\r\n", JSON + b"Content-Length: #\r\n\r\n@"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + JSON + b"Content-Length: #\r\n\r\n@",),
        (JSON[:30], JSON[30:], b"Content-Length: #\r\n", b"\r\n", b"@"),
        (
            *(JSON + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n", b"$;x=y\r\n", b"@\r\n2\r\n"),
            *(b"  \r\n", b"0\r\n", b"X-After: 1\r\n", b"\r\n"),
        ),
    ],
)
async def test_a_response_in_any_pieces_leaves_its_connection(
    upstreams: Upstreams, pieces: tuple[bytes, ...]
) -> None:
    assert await ask_twice(upstreams, writing(*pieces)) == 1


@pytest.mark.parametrize(
    ("pieces", "close"),
    [
        ((JSON + b"Connection: close\r\nContent-Length: #\r\n\r\n@",), False),
        ((JSON.replace(b"1.1", b"1.0") + b"Content-Length: #\r\n\r\n@",), False),
        # Without a length, the end of the connection is the end.
        ((JSON + b"\r\n", b"@"), True),
        # More than was asked for.
        ((JSON + b"Content-Length: #\r\n\r\n@" + JSON + b"Content-Length: 2\r\n\r\n{}",), False),
        ((JSON + b"Content-Length: #\r\n\r\n@\r\nabc",), False),
    ],
)
async def test_a_connection_that_may_not_go_on_is_not_used_again(
    upstreams: Upstreams, pieces: tuple[bytes, ...], close: bool
) -> None:
    assert await ask_twice(upstreams, writing(*pieces, close=close)) == 2


@pytest.mark.parametrize(
    "data",
    [
        JSON + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n",
        JSON + b"Transfer-Encoding: gzip\r\n\r\n{}",
        JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        JSON + b"Content-Length: -2\r\n\r\n{}",
        JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        JSON + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000,
    ],
)
async def test_what_two_could_read_differently_is_not_read(
    upstreams: Upstreams, data: bytes
) -> None:
    async with serving(modern(writing(data))) as server:
        with pytest.raises(ProtocolError):
            await upstreams.call_tool(
                server.target(revision=MODERN), UpstreamCall("t", b"{}", limits=SHORT)
            )
        assert len(server.sent("tools/call")) == 1


async def test_a_kept_connection_that_breaks_is_not_asked_again(upstreams: Upstreams) -> None:
    """The server may have taken the second call before it went away."""
    calls = 0

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            respond(out, reply(request))
        else:
            out.close()

    async with serving(modern(call)) as server:
        target = server.target(revision=MODERN)
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        with pytest.raises(Lost):
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

        assert server.connections == 1
        assert len(server.sent("tools/call")) == 2


async def test_each_request_has_its_own_patience(upstreams: Upstreams) -> None:
    """Timers outlive requests: a short one after a patient one must still ring."""
    calls = 0

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            respond(out, reply(request))

    async with serving(modern(call)) as server:
        target = server.target(revision=MODERN)
        await upstreams.call_tool(target, UpstreamCall("t", b"{}", limits=Limits()))
        async with asyncio.timeout(5):
            with pytest.raises(TimedOut) as caught:
                await upstreams.call_tool(target, UpstreamCall("t", b"{}", limits=SHORT))

        assert caught.value.which == "idle"


async def test_a_reply_faster_than_its_reader_is_held_back(upstreams: Upstreams) -> None:
    size = 4 * 1024 * 1024

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, reply(request, '{"content":[],"more":"%s"}' % ("x" * size)))

    async with serving(modern(call)) as server:
        target = server.target(revision=MODERN)
        for _ in range(2):
            answer = await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            assert len(answer.result) > size
        assert server.connections == 1
