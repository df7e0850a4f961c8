"""Servers that misbehave: each ends in its own clear error, in time and in bounded memory."""

import asyncio
import gzip
import json
import time
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from registry.upstream import (
    CallReply,
    Limits,
    Lost,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    ResultTooLarge,
    TimedOut,
    UpstreamCall,
    Upstreams,
)
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    MODERN,
    Handler,
    Request,
    begin_events,
    chunk,
    end_events,
    error,
    event,
    legacy,
    modern,
    reply,
    respond,
    serving,
)

SHORT = Limits(connect_s=1, idle_s=0.3, total_s=0.6, max_bytes=100_000)
PATIENT = Limits(idle_s=20, total_s=20, max_bytes=100_000)


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


async def called(upstreams: Upstreams, handler: Handler, limits: Limits = PATIENT) -> CallReply:
    async with serving(modern(handler)) as server:
        try:
            return await upstreams.call_tool(
                server.target(revision=MODERN), UpstreamCall("t", b"{}", limits=limits)
            )
        finally:
            assert len(server.sent("tools/call")) == 1


def saying(body: bytes, kind: str = "application/json", status: int = 200) -> Handler:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        id_ = b"%d" % request.json["id"]
        respond(out, body.replace(b"$ID", id_), kind=kind, status=status)

    return call


def streaming(*events: bytes) -> Handler:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        begin_events(out)
        for data in events:
            event(out, data.replace(b"$ID", b"%d" % request.json["id"]))
        end_events(out)

    return call


DEEP = b'{"jsonrpc":"2.0","id":$ID,"result":' + b'{"a":' * 9_000 + b"1" + b"}" * 9_000 + b"}"


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (saying(b"{not json"), "not JSON"),
        (saying(b""), "not JSON"),
        (saying(b"\xff\xfe"), "not JSON|UTF-8"),
        (saying(DEEP), "nested too deeply"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}'), "not JSON"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":{}}}'), "not JSON"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":{}} {}'), "not JSON"),
        (saying(b'{"jsonrpc":"1.0","id":$ID,"result":{}}'), "not JSON-RPC 2.0"),
        (saying(b'"hello"'), "not JSON-RPC 2.0"),
        (saying(b'[{"jsonrpc":"2.0","id":$ID,"result":{}}]'), "batch"),
        (saying(b'{"jsonrpc":"2.0","id":$ID}'), "either a result or an error"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":{},"error":{}}'), "either a result"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":[]}'), "not an object"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"error":"no"}'), "error is not an object"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"error":{"code":"x"}}'), "lacks a whole number"),
        (saying(b'{"jsonrpc":"2.0","id":1234567,"result":{}}'), "another call"),
        (saying(b'{"jsonrpc":"2.0","id":"$ID","result":{}}'), "another call"),
        (saying(b'{"jsonrpc":"2.0","id":true,"result":{}}'), "neither a number nor text"),
        (saying(b'{"jsonrpc":"2.0","id":null,"result":{}}'), "another call"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"method":"ping"}'), "of its own"),
        (saying(b'{"jsonrpc":"2.0","id":$ID,"result":{"resultType":7}}'), "resultType"),
        (saying(b"<html>Welcome</html>", "text/html"), "text/html"),
        (streaming(b"{not json"), "not JSON"),
        (streaming(b'{"jsonrpc":"2.0","id":1234567,"result":{}}'), "another call"),
    ],
)
async def test_what_is_not_mcp_is_nonsense(
    upstreams: Upstreams, handler: Handler, said: str
) -> None:
    with pytest.raises(ProtocolError, match=said):
        await called(upstreams, handler)


async def test_a_reply_that_two_servers_would_give_is_taken_once(upstreams: Upstreams) -> None:
    first = b'{"jsonrpc":"2.0","id":$ID,"result":{"n":1}}'
    answer = await called(upstreams, streaming(first, first.replace(b"1}}", b"2}}")))

    assert answer.result == b'{"n":1}'


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1e999}',
        '{"a":"\\u0000\\ud800"}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":' + "[" * 500 + "]" * 500 + "}",
    ],
)
async def test_a_strange_result_is_kept_as_it_is(upstreams: Upstreams, text: str) -> None:
    body = b'{"jsonrpc":"2.0","id":$ID,"result":' + text.encode() + b"}"

    assert (await called(upstreams, saying(body))).result == text.encode()


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
async def test_a_compressed_reply_is_not_unpacked(upstreams: Upstreams, coding: str) -> None:
    bomb = gzip.compress(b" " * 50_000_000)

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, bomb, headers={"Content-Encoding": coding})

    tracemalloc.start()
    with pytest.raises(ProtocolError, match="compressed"):
        await called(upstreams, call)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5_000_000


async def declared(request: Request, out: asyncio.StreamWriter) -> None:
    respond(out, b"{", headers={"Content-Length": "100001"})


async def chunked_without_end(request: Request, out: asyncio.StreamWriter) -> None:
    out.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    while True:
        chunk(out, b" " * 10_000)
        await out.drain()


async def events_without_end(request: Request, out: asyncio.StreamWriter) -> None:
    begin_events(out)
    while True:
        event(out, b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
        await out.drain()


async def one_event_without_end(request: Request, out: asyncio.StreamWriter) -> None:
    begin_events(out)
    while True:
        chunk(out, b"data: " + b"x" * 10_000)
        await out.drain()


@pytest.mark.parametrize(
    "handler", [declared, chunked_without_end, events_without_end, one_event_without_end]
)
async def test_a_reply_over_the_limit_is_cut(upstreams: Upstreams, handler: Handler) -> None:
    tracemalloc.start()
    with pytest.raises(ResultTooLarge, match="100000 bytes"):
        await called(upstreams, handler)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5_000_000


async def nothing(request: Request, out: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def head_only(request: Request, out: asyncio.StreamWriter) -> None:
    begin_events(out)
    await out.drain()
    await asyncio.Event().wait()


async def body_that_stops(request: Request, out: asyncio.StreamWriter) -> None:
    respond(out, b'{"json', headers={"Content-Length": "500"})
    await out.drain()
    await asyncio.Event().wait()


@pytest.mark.parametrize("handler", [nothing, head_only, body_that_stops])
async def test_silence_ends_the_call(upstreams: Upstreams, handler: Handler) -> None:
    with pytest.raises(TimedOut, match=r"silent for 0\.3 seconds") as caught:
        await called(upstreams, handler, SHORT)

    assert caught.value.which == "idle"


def dripping(first: bytes, drop: bytes) -> Handler:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        out.write(first)
        while True:
            out.write(drop)
            await out.drain()
            await asyncio.sleep(0.05)

    return call


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    "handler",
    [
        dripping(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"y"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" "),
        dripping(EVENTS, b": still here\n\n"),
        dripping(EVENTS, b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'),
    ],
)
async def test_signs_of_life_do_not_extend_the_total(
    upstreams: Upstreams, handler: Handler
) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"longer than 0\.6 seconds") as caught:
        await called(upstreams, handler, SHORT)

    assert caught.value.which == "total"
    assert time.monotonic() - began < 3


def broken(data: bytes) -> Handler:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        out.write(data)
        await out.drain()
        out.close()

    return call


@pytest.mark.parametrize(
    "handler",
    [
        broken(b""),
        broken(b"HTTP/1.1 200 OK\r\nContent-Ty"),
        broken(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"),
        broken(EVENTS + b"data: {"),
        streaming(),
    ],
)
async def test_a_broken_connection_leaves_the_outcome_unknown(
    upstreams: Upstreams, handler: Handler
) -> None:
    with pytest.raises(Lost):
        await called(upstreams, handler)


@pytest.mark.parametrize(
    "data",
    [
        b"220 smtp.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000 + b"\r\n",
    ],
)
async def test_what_is_not_http_is_nonsense(upstreams: Upstreams, data: bytes) -> None:
    with pytest.raises(ProtocolError, match="HTTP"):
        await called(upstreams, broken(data))


async def test_an_answer_before_its_question_is_not_taken(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        id_ = request.json["id"]
        respond(out, reply(request))
        respond(out, b'{"jsonrpc":"2.0","id":%d,"result":{"planted":true}}' % (id_ + 1))

    async with serving(modern(call)) as server:
        target = server.target(revision=MODERN)
        for _ in range(3):
            answer = await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            assert answer.result == b'{"content":[]}'


async def test_a_redirect_is_not_followed(upstreams: Upstreams) -> None:
    async with serving(modern(saying(b"{}"))) as elsewhere:

        async def call(request: Request, out: asyncio.StreamWriter) -> None:
            respond(out, b"", status=307, headers={"Location": elsewhere.url})

        with pytest.raises(OutcomeUnknown, match="redirects"):
            await called(upstreams, call)

        assert not elsewhere.requests


@pytest.mark.parametrize("session", ["", "\x01", "ü", "a" * 2000])
async def test_a_session_id_that_is_no_id_is_refused(upstreams: Upstreams, session: str) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, reply(request))

    async with serving(legacy(call, session=session)) as server:
        if not session:
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))
            return
        with pytest.raises(NotSent, match=r"session id|not HTTP"):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert not server.sent("tools/call")


async def test_an_unknown_revision_is_said(upstreams: Upstreams) -> None:
    async with serving(legacy(saying(b"{}"), revision="1999-12-31")) as server:
        with pytest.raises(NotSent, match="1999-12-31"):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"tools": [], "nextCursor": "again"}, "circle"),
        ({"tools": [], "nextCursor": 7}, "nextCursor is not text"),
        ({"tools": {}}, "no list of tools"),
    ],
)
async def test_a_spoilt_list_of_tools_is_nonsense(
    upstreams: Upstreams, pages: dict[str, object], said: str
) -> None:
    async with serving(modern(nothing, tools=json.dumps(pages))) as server:
        with pytest.raises(ProtocolError, match=said):
            await upstreams.discover(server.target())


@pytest.mark.parametrize(
    ("tool", "left_out"),
    [
        ({"inputSchema": {}}, ("tools/list", "One has no name.")),
        ("t", ("tools/list", "One has no name.")),
        ({"name": "t"}, ("t", "It has no inputSchema.")),
        ({"name": "good", "inputSchema": {}}, ("good", "It is listed twice.")),
    ],
)
async def test_a_tool_that_is_none_keeps_no_other_away(
    upstreams: Upstreams, tool: object, left_out: tuple[str, str]
) -> None:
    pages = {"tools": [{"name": "good", "inputSchema": {}}, tool]}
    async with serving(modern(nothing, tools=json.dumps(pages))) as server:
        listing = await upstreams.discover(server.target())

    assert [found["name"] for found in listing.tools] == ["good"]
    assert list(listing.left_out) == [left_out]


async def test_a_list_of_tools_ends_somewhere(upstreams: Upstreams) -> None:
    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "tools/list":
            number = int(request.json["params"].get("cursor", 0)) + 1
            respond(out, reply(request, f'{{"tools":[],"nextCursor":"{number}"}}'))
        else:
            respond(out, error(request, -32601), status=404)

    async with serving(legacy(handle)) as server:
        with pytest.raises(ResultTooLarge, match="more than 200 pages"):
            await upstreams.discover(server.target())


async def test_too_many_tools_are_refused(upstreams: Upstreams) -> None:
    tools = [{"name": f"t{n}", "inputSchema": {}} for n in range(5001)]
    async with serving(modern(nothing, tools=json.dumps({"tools": tools}))) as server:
        with pytest.raises(ResultTooLarge, match="more than 5000 tools"):
            await upstreams.discover(server.target())
