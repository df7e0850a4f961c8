"""Servers of HTTP with SSE: found after a refused greeting, posted to, heard on a stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from registry.upstream import (
    CancelledUpstream,
    Limits,
    Lost,
    NotSent,
    OutcomeUnknown,
    ProgressReport,
    RefusedByServer,
    ResultTooLarge,
    RpcErrorReply,
    TimedOut,
    UpstreamCall,
    Upstreams,
)
from registry.upstream.session import http_sse as streams
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    Request,
    begin_events,
    chunk,
    end_events,
    modern,
    reply,
    respond,
    serving,
)

TOOL = {"name": "t", "inputSchema": {"type": "object"}}


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


@dataclass
class Old:
    """Of 2024-11-05: one stream, one session, and what a test says about a call."""

    refuses: int = 405
    forgets: int = 404
    endpoint: str = "/messages?session={n}"
    revision: str = "2024-11-05"
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    said: list[Any] = field(default_factory=list)

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        if request.verb == "GET":
            self.streams.append(out)
            begin_events(out)
            there = self.endpoint.format(n=len(self.streams) - 1)
            chunk(out, f": hello\r\n\r\nevent: endpoint\r\ndata: {there}\r\n\r\n".encode())
        elif not request.path.startswith("/messages"):
            respond(out, b"Cannot POST", status=self.refuses, kind="text/html")
        elif (session := request.path.rpartition("=")[2]) in self.forgotten:
            respond(out, b"no such session", status=self.forgets, kind="text/plain")
        else:
            respond(out, b"Accepted", status=202, kind="text/plain")
            await out.drain()
            self.said.append(request.json)
            await self.answer(request, self.streams[int(session)])

    async def answer(self, request: Request, out: asyncio.StreamWriter) -> None:
        match request.method:
            case "initialize":
                info = {"name": "old", "version": "1"}
                opening = {"protocolVersion": self.revision, "capabilities": {"tools": {}}}
                say(out, request, {**opening, "serverInfo": info})
            case "tools/list":
                say(out, request, {"tools": [TOOL]})
            case "tools/call":
                await self.call(request, out)

    async def call(self, request: Request, out: asyncio.StreamWriter) -> None:
        say(out, request, {"content": []})

    def methods(self) -> list[str]:
        return [said["method"] for said in self.said]


def tell(out: asyncio.StreamWriter, **message: Any) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    chunk(out, b"event: message\ndata: " + data + b"\n\n")


def say(out: asyncio.StreamWriter, request: Request, result: Any) -> None:
    tell(out, id=request.json["id"], result=result)


@pytest.mark.parametrize("refuses", [400, 404, 405, 415])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
async def test_it_is_found_after_a_refused_greeting(
    upstreams: Upstreams, refuses: int, revision: str
) -> None:
    old = Old(refuses, revision=revision)
    async with serving(old) as server:
        target = server.target(headers={"Authorization": "Bearer theirs"})
        found = await upstreams.discover(target)
        reply = await upstreams.call_tool(target, UpstreamCall("t", b'{ "a" : 1.0}'))

    assert (found.revision, found.by_events) == (revision, True)
    assert (found.server_info["name"], found.tools) == ("old", [TOOL])
    assert json.loads(reply.result) == {"content": []}
    greeting = ["initialize", "notifications/initialized"]
    assert old.methods() == [*greeting, "tools/list", "tools/call"]
    # All on one stream, and each request with the server's own credential.
    assert len(old.streams) == 1
    assert {r.headers["authorization"] for r in server.requests} == {"Bearer theirs"}
    assert server.requests[-1].body.count(b'{ "a" : 1.0}') == 1


@pytest.mark.parametrize("refuses", [401, 403, 429, 500])
async def test_what_is_about_us_is_no_older_server(upstreams: Upstreams, refuses: int) -> None:
    old = Old(refuses)
    async with serving(old) as server:
        with pytest.raises(Exception, match=str(refuses)):
            await upstreams.discover(server.target())

    assert old.streams == []


async def test_where_nothing_opens_the_first_refusal_is_told(upstreams: Upstreams) -> None:
    async def nothing(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, b"nothing here", status=404, kind="text/plain")

    async with serving(nothing) as server:
        with pytest.raises(NotSent, match="There is no MCP server at this URL"):
            await upstreams.discover(server.target())


async def test_one_known_to_be_older_is_asked_for_its_stream_at_once(upstreams: Upstreams) -> None:
    old = Old()
    async with serving(old) as server:
        await upstreams.call_tool(server.target(by_events=True), UpstreamCall("t", b"{}"))

    assert server.requests[0].verb == "GET"


async def test_one_that_has_become_newer_is_spoken_to_as_that(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        if request.verb == "GET":
            respond(out, b"", status=405)
        else:
            respond(out, reply(request))

    async with serving(modern(call)) as server:
        target = server.target(by_events=True)
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        found = await upstreams.discover(target)

    assert not found.by_events
    assert len(server.sent("tools/call")) == 1


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://evil.example/messages",
        "//evil.example/m",
        "http://127.0.0.1:1/m",
        "https://{h}/m",
        "ftp:x",
    ],
)
async def test_our_credential_goes_nowhere_else(upstreams: Upstreams, endpoint: str) -> None:
    old = Old()
    async with serving(old) as server:
        old.endpoint = endpoint.replace("{h}", f"127.0.0.1:{server.port}")
        with pytest.raises(NotSent, match=r"spoken to elsewhere|no address to post to"):
            await upstreams.call_tool(server.target(by_events=True), UpstreamCall("t", b"{}"))

    assert [request.verb for request in server.requests] == ["GET"]


async def test_answers_come_to_whoever_asked_and_progress_with_them(upstreams: Upstreams) -> None:
    asked: list[Request] = []

    class Slow(Old):
        async def call(self, request: Request, out: asyncio.StreamWriter) -> None:
            asked.append(request)
            if len(asked) == 5:
                for late in reversed(asked):
                    token = late.json["params"]["_meta"]["progressToken"]
                    note = {"progressToken": token, "progress": 1, "message": late.json["id"]}
                    note["message"] = late.json["params"]["arguments"]["n"]
                    tell(out, method="notifications/progress", params=note)
                    text = {"type": "text", "text": late.json["params"]["arguments"]["n"]}
                    say(out, late, {"content": [text]})

    heard: dict[str, list[ProgressReport]] = {str(n): [] for n in range(5)}

    async def ask(n: str) -> str:
        reply = await upstreams.call_tool(
            target, UpstreamCall("t", json.dumps({"n": n}).encode(), on_progress=heard[n].append)
        )
        return str(json.loads(reply.result)["content"][0]["text"])

    async with serving(Slow()) as server:
        target = server.target()
        answers = await asyncio.gather(*map(ask, heard))

    assert answers == list(heard)
    assert {n: [p.message for p in ps] for n, ps in heard.items()} == {n: [n] for n in heard}


async def test_what_a_post_was_answered_with_proves_nothing(upstreams: Upstreams) -> None:
    """2024-11-05 has no word for a session that ended: the next call opens another."""
    for status in (302, 400, 404, 405, 410, 500, 502):
        old = Old()
        async with serving(old) as server:
            target = server.target(key=f"{status}")
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            old.forgotten.add("0")
            old.forgets = status
            with pytest.raises(OutcomeUnknown, match=str(status)):
                await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            old.forgotten.clear()
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

        assert len(server.sent("tools/call")) == 3, status
        assert len(old.streams) == (2 if status in streams.FORGOTTEN else 1)


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_a_post_that_is_refused_is_a_refusal(upstreams: Upstreams, status: int) -> None:
    old = Old()
    async with serving(old) as server:
        target = server.target()
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        old.forgotten.add("0")
        old.forgets = status
        with pytest.raises(RefusedByServer, match=str(status)):
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

    assert len(server.sent("tools/call")) == 2


async def test_a_greeting_that_is_refused_says_with_which_status(upstreams: Upstreams) -> None:
    old = Old(forgotten={"0"}, forgets=401)
    async with serving(old) as server:
        with pytest.raises(NotSent, match="Refused by the server") as refused:
            await upstreams.call_tool(server.target(by_events=True), UpstreamCall("t", b"{}"))

    assert refused.value.status == 401
    assert server.sent("tools/call") == []


async def test_a_stream_that_broke_is_opened_again(upstreams: Upstreams) -> None:
    old = Old()
    async with serving(old) as server:
        target = server.target()
        for _again in range(3):
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
            end_events(old.streams[-1])
            await old.streams[-1].drain()
            old.streams[-1].close()
            known = upstreams._servers["raw"]._older  # type: ignore[union-attr]
            while known and known._live_process():
                await asyncio.sleep(0)

    assert len(old.streams) == 3
    assert old.methods().count("tools/call") == 3


async def test_a_stream_that_breaks_before_the_reply_leaves_it_unknown(
    upstreams: Upstreams,
) -> None:
    class Breaking(Old):
        async def call(self, request: Request, out: asyncio.StreamWriter) -> None:
            out.transport.abort()

    old = Breaking()
    async with serving(old) as server:
        with pytest.raises(Lost):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert old.methods().count("tools/call") == 1


async def test_silence_size_errors_and_cancelling(upstreams: Upstreams) -> None:
    class Odd(Old):
        async def call(self, request: Request, out: asyncio.StreamWriter) -> None:
            match request.json["params"]["name"]:
                case "error":
                    tell(out, id=request.json["id"], error={"code": 7, "message": "no such luck"})
                case "large":
                    say(out, request, {"content": [{"type": "text", "text": "x" * 200_000}]})

    old = Odd()
    small = Limits(idle_s=0.2, max_bytes=100_000, cancel_grace_s=0.1)
    async with serving(old) as server:
        target = server.target()
        with pytest.raises(RpcErrorReply, match="no such luck"):
            await upstreams.call_tool(target, UpstreamCall("error", b"{}", limits=small))
        with pytest.raises(TimedOut):
            await upstreams.call_tool(target, UpstreamCall("silent", b"{}", limits=small))
        with pytest.raises(ResultTooLarge):
            await upstreams.call_tool(target, UpstreamCall("large", b"{}", limits=small))
        cancel = asyncio.Event()
        call = upstreams.call_tool(
            target, UpstreamCall("silent", b"{}", cancel=cancel, limits=Limits(cancel_grace_s=0.1))
        )
        waiting = asyncio.create_task(call)
        while old.methods().count("tools/call") < 4:
            await asyncio.sleep(0)
        cancel.set()
        with pytest.raises(CancelledUpstream):
            await waiting
        while old.methods().count("notifications/cancelled") < 2:
            await asyncio.sleep(0)


async def test_nothing_is_left_behind(upstreams: Upstreams) -> None:
    before = asyncio.all_tasks()
    async with serving(Old()) as server:
        target = server.target()
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        await upstreams.close_target(target.key)

    assert {t for t in asyncio.all_tasks() - before if not t.done()} == set()


async def test_a_stream_that_nobody_uses_is_closed(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_UNUSED_S", 0.2)
    monkeypatch.setattr(streams, "_LOOK_S", 0.02)
    old = Old()
    async with serving(old) as server:
        target = server.target()
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        older = upstreams._servers["raw"]._older  # type: ignore[union-attr]
        assert older
        while older._live_process():
            await asyncio.sleep(0.01)
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

    assert len(old.streams) == 2
