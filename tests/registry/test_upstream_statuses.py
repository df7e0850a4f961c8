"""A status that comes after the request was written proves nothing: what acted is never sent again.

A server acts on each tools/call that it receives and then answers as the table says.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from core.errors import RecordUnavailable
from registry.upstream import (
    NotSent,
    OutcomeUnknown,
    RefusedByServer,
    RpcErrorReply,
    UpstreamCall,
    UpstreamError,
    Upstreams,
)
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    LEGACY,
    MODERN,
    Handler,
    RawServer,
    Request,
    error,
    legacy,
    modern,
    reply,
    respond,
    serving,
)

REFUSALS = (401, 403, 429, 503)
STATUSES = (
    *(201, 202, 204, 206, 300, 301, 302, 303, 304, 307, 308),
    *(400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 417, 418),
    *(421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499),
    *(500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599),
)
NO_SESSION = "Bad Request: No valid session ID provided"


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


@dataclass
class Acting:
    """Acts, then answers with `status`; `body` gets the request that it answers."""

    status: int
    body: Callable[[Request], bytes] = lambda request: b"<html>"
    acted: int = 0

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        if request.verb != "POST":
            respond(out, b"", status=405)
            return
        # A ping, by which a session is asked after, acts on nothing.
        self.acted += request.method == "tools/call"
        headers = {"Location": "/mcp"}
        body = b"" if self.status in (204, 304) else self.body(request)
        kind = "application/json" if body.startswith(b"{") else "text/html"
        respond(out, body, status=self.status, kind=kind, headers=headers)


def of_version(request: Request) -> bytes:
    return error(request, -32022, data={"supported": [LEGACY], "requested": MODERN})


def eras() -> dict[str, tuple[Callable[[Handler], Handler], dict[str, str]]]:
    """Every way to be acquainted with a server before its first call."""
    return {
        "modern": (modern, {}),
        "modern by hint": (modern, {"revision": MODERN}),
        "legacy": (legacy, {}),
        "legacy by hint": (legacy, {"revision": LEGACY}),
        "legacy with the wrong hint": (legacy, {"revision": MODERN}),
        "2025-03-26": (lambda call: legacy(call, revision="2025-03-26"), {}),
        "session": (lambda call: legacy(call, session="s"), {}),
    }


async def call_of(upstreams: Upstreams, server: RawServer, **target: str) -> UpstreamError | None:
    named = server.target(key=f"{server.port}", **target)
    try:
        await upstreams.call_tool(named, UpstreamCall("t", b"{}"))
    except UpstreamError as failed:
        return failed
    return None


@pytest.mark.parametrize("era", eras())
async def test_what_acted_is_received_once_whatever_status_follows(
    upstreams: Upstreams, era: str
) -> None:
    made, target = eras()[era]
    for status in STATUSES:
        if (era, status) == ("session", 404):
            continue
        acting = Acting(status)
        async with serving(made(acting)) as server:
            failed = await call_of(upstreams, server, **target)

        assert acting.acted == 1, (status, failed)
        expected = RefusedByServer if status in REFUSALS else OutcomeUnknown
        assert isinstance(failed, expected), (status, failed)
        assert f"HTTP {status}" in str(failed)


@pytest.mark.parametrize("era", ["modern", "legacy", "session"])
async def test_an_error_without_our_id_beside_a_status_proves_nothing_either(
    upstreams: Upstreams, era: str
) -> None:
    made, target = eras()[era]
    for status in (400, 404, 405, 422, 500):
        if (era, status) == ("session", 404):
            continue
        acting = Acting(status, lambda _request: error(None, -32000, NO_SESSION))
        async with serving(made(acting)) as server:
            failed = await call_of(upstreams, server, **target)

        assert acting.acted == 1, (status, failed)
        assert isinstance(failed, OutcomeUnknown), (status, failed)
        assert NO_SESSION in str(failed)


@pytest.mark.parametrize("era", ["modern", "legacy", "session"])
async def test_an_error_under_our_id_is_an_answer_whatever_status_it_has(
    upstreams: Upstreams, era: str
) -> None:
    made, target = eras()[era]
    for status in (200, 400, 404, 405, 409, 500, 502):
        acting = Acting(status, lambda request: error(request, 7, "busy"))
        async with serving(made(acting)) as server:
            failed = await call_of(upstreams, server, **target)

        assert acting.acted == 1, status
        assert isinstance(failed, RpcErrorReply), (status, failed)


async def test_a_status_that_may_mean_another_server_is_greeted_before_the_next_call(
    upstreams: Upstreams,
) -> None:
    acting = Acting(400)
    async with serving(modern(acting)) as server:
        await call_of(upstreams, server)
        await call_of(upstreams, server)

    assert acting.acted == 2
    methods = [request.method for request in server.requests]
    assert methods == ["server/discover", "tools/call"] * 2


class Once:
    """Turns away the first call with `status` and `body`, takes nothing of it, answers others."""

    def __init__(self, status: int, body: Callable[[Request], bytes]) -> None:
        self.status, self.body, self.received = status, body, 0

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        self.received += 1
        if self.received == 1:
            respond(out, self.body(request), status=self.status)
        else:
            respond(out, reply(request))


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_that_ended_by_its_revisions_word_is_opened_again(
    upstreams: Upstreams, revision: str
) -> None:
    once = Once(404, lambda _request: error(None, -32001, "Session not found"))
    resent: list[str] = []

    async def note(reason: str, number: int) -> None:
        assert once.received == 1, "written down before the second send"
        resent.append(f"{number}: {reason}")

    async with serving(legacy(once, revision=revision, session="s")) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}", on_resend=note))

    assert once.received == 2
    assert resent == ["2: The server had ended its session (HTTP 404)."]


async def test_a_404_with_the_very_answer_was_taken(upstreams: Upstreams) -> None:
    acting = Acting(404, reply)
    async with serving(legacy(acting, session="s")) as server:
        failed = await call_of(upstreams, server)

    assert acting.acted == 1
    assert isinstance(failed, OutcomeUnknown)


async def test_it_is_sent_twice_at_most(upstreams: Upstreams) -> None:
    acting = Acting(404)
    async with serving(legacy(acting, session="s")) as server:
        failed = await call_of(upstreams, server)

    assert acting.acted == 2
    assert isinstance(failed, OutcomeUnknown)
    assert "says so a second time" in str(failed)


async def test_it_is_sent_twice_at_most_also_where_its_agent_can_be_asked(
    upstreams: Upstreams,
) -> None:
    """A server of today that became one of yesterday, and then forgets each session at once."""
    sent: list[str] = []
    today = True

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        nonlocal today
        if request.method == "tools/call":
            sent.append(request.headers.get("mcp-session-id", "none"))
            body, status = (of_version(request), 400) if today else (b"<html>", 404)
            today = False
            kind = "application/json" if status == 400 else "text/html"
            respond(out, body, status=status, kind=kind)
        elif today:
            await modern(handle)(request, out)
        elif request.verb == "GET":
            respond(out, b"", status=405)
        else:
            await legacy(handle, session=f"s{len(sent)}")(request, out)

    async with serving(handle) as server:
        call = UpstreamCall("t", b"{}", abilities=("form",), asker="ann")
        with pytest.raises(OutcomeUnknown):
            await upstreams.call_tool(server.target(), call)

    assert sent == ["none", "s1"]


async def test_without_a_session_a_404_says_nothing(upstreams: Upstreams) -> None:
    for made in (legacy, lambda call: legacy(call, revision="2024-11-05", session="s")):
        acting = Acting(404, lambda _request: error(None, -32001, "Session not found"))
        async with serving(made(acting)) as server:
            failed = await call_of(upstreams, server)

        assert acting.acted == 1
        assert isinstance(failed, OutcomeUnknown)


async def test_the_modern_revisions_own_version_error_is_answered_with_another(
    upstreams: Upstreams,
) -> None:
    """Its server was modern when it was asked what it speaks, and is older now."""
    resent: list[str] = []

    async def note(reason: str, number: int) -> None:
        resent.append(f"{number}: {reason}")

    async def echo(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, reply(request))

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if len(server.requests) == 1:
            await modern(echo)(request, out)
        elif request.headers.get("mcp-protocol-version") == MODERN:
            respond(out, of_version(request), status=400)
        else:
            await legacy(echo)(request, out)

    async with serving(handle) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}", on_resend=note))

    first, second = server.sent("tools/call")
    assert first.headers["mcp-protocol-version"] == MODERN
    assert second.headers["mcp-protocol-version"] == LEGACY
    assert resent == ["2: The server does not speak MCP 2026-07-28 (HTTP 400, error -32022)."]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (400, {"code": -32022, "message": "?"}),
        (400, {"code": -32022, "message": "?", "data": {"supported": "all"}}),
        (400, {"code": -32004, "message": "?", "data": {"supported": [LEGACY]}}),
        (404, {"code": -32022, "message": "?", "data": {"supported": [LEGACY]}}),
        (500, {"code": -32022, "message": "?", "data": {"supported": [LEGACY]}}),
    ],
)
async def test_what_only_resembles_the_version_error_is_not_sent_again(
    upstreams: Upstreams, status: int, told: dict[str, object]
) -> None:
    def body(_request: Request) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": told}).encode()

    acting = Acting(status, body)
    async with serving(modern(acting)) as server:
        failed = await call_of(upstreams, server)

    assert acting.acted == 1
    assert isinstance(failed, OutcomeUnknown)


async def test_where_the_second_send_cannot_be_written_down_nothing_more_is_sent(
    upstreams: Upstreams,
) -> None:
    once = Once(404, lambda _request: error(None, -32001, "Session not found"))

    async def fail(reason: str, number: int) -> None:
        raise RecordUnavailable("The record cannot be written.")

    async with serving(legacy(once, session="s")) as server:
        with pytest.raises(NotSent, match="The record cannot be written"):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}", on_resend=fail))

    assert once.received == 1
