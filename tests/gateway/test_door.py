"""What is refused before anybody asks what it means."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, User
from calls.models import Call
from gateway.http import request_checks
from gateway.protocol.errors import RpcError
from gateway.protocol.headers import Headers
from registry import services
from registry.models import Toolset
from tests.gateway.agent import MODERN, Agent
from tests.gateway.conftest import Play, until
from tests.gateway.test_call_cost import request
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


async def test_the_endpoint_says_that_it_is_well(play: Play, stack: Stack) -> None:
    async with play().http.get(f"{stack.agents_url}/healthz") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic c2NvdXQ6cGFzcw==",
        "bearer csa_00000000_" + "0" * 43 + "_000000",
        "Bearer csa_\xff",
    ],
)
async def test_without_a_valid_token_the_answer_is_always_the_same(
    agent: Agent, shown: str
) -> None:
    reply = await agent.post(PING, headers={"Authorization": shown})

    assert reply.status == 401
    sent = shown.lower().startswith("bearer ") and shown[7:]
    error = ' error="invalid_token"' if sent else ""
    assert reply.headers["WWW-Authenticate"] == f"Bearer{error}"
    assert reply.error["message"] == "A valid agent token is needed: Authorization: Bearer csa_…"


@pytest.mark.parametrize("end", ["revoked", "expired", "disabled", "owner left"])
async def test_a_token_that_ended_is_refused_within_a_second(
    agent: Agent, scout: AgentRow, bob: User, end: str
) -> None:
    assert (await agent.post(PING)).status == 200

    @sync_to_async
    def ends() -> None:
        token = AgentToken.objects.get(agent=scout)
        if end == "revoked":
            accounts.revoke_token(token, by=bob)
        elif end == "expired":
            AgentToken.objects.update(expires_at=token.created_at)
        elif end == "disabled":
            accounts.set_agent_enabled(scout, False, by=bob)
        else:
            User.objects.filter(pk=bob.pk).update(is_active=False)

    await ends()

    async def refused() -> bool:
        return (await agent.post(PING)).status == 401

    await until(refused, seconds=1)


async def test_a_token_of_this_moment_is_good_at_once(
    play: Play, scout: AgentRow, bob: User
) -> None:
    for _ in range(5):
        token = await sync_to_async(accounts.issue_token)(scout, by=bob)

        assert (await play(token=token).post(PING)).status == 200


@sync_to_async
def somebody_elses(bob: User) -> None:
    services.create_toolset("private", by=bob)


@pytest.mark.parametrize("body", [PING, LIST, b"nonsense", b""])
async def test_somebody_elses_toolset_is_like_one_that_does_not_exist(
    play: Play, bob: User, body: Any
) -> None:
    await somebody_elses(bob)

    theirs = await play(at="private").post(body)
    unknown = await play(at="no-such").post(body)
    unknown_server = await play(at="desk/no-such").post(body)

    assert theirs.status == 404
    assert theirs.body == unknown.body == unknown_server.body
    assert theirs.headers.keys() == unknown.headers.keys()


@pytest.mark.parametrize(
    "at", ["", "/", "desk//", "desk//rec", "desk/rec/echo", "desk/rec//", "%2e%2e"]
)
async def test_other_addresses_hold_nothing(play: Play, at: str) -> None:
    assert (await play(at=at).post(PING)).status == 404


async def test_a_body_of_one_mebibyte_is_taken_and_one_more_byte_is_not(agent: Agent) -> None:
    filled = json.dumps({**PING, "params": {"x": ""}}).encode()
    room = request_checks.MAX_BODY - len(filled)
    fits = filled.replace(b'""', b'"%b"' % (b"a" * room))

    assert (await agent.post(fits)).status == 200
    assert (await agent.post(fits + b" ")).status == 413


async def test_a_stranger_may_send_less(agent: Agent) -> None:
    body = json.dumps(PING).encode().ljust(request_checks.MAX_BODY_STRANGER)
    stranger = {"Authorization": "Bearer csa_stranger"}

    assert (await agent.post(body, headers=stranger)).status == 401
    assert (await agent.post(body + b" ", headers=stranger)).status == 413


async def raw(stack: Stack, request: bytes, *, then: bytes = b"", seconds: float = 15) -> bytes:
    """Writes this to a socket and reads until the other side closes."""
    host, _, port = stack.agents_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    try:
        async with asyncio.timeout(seconds):
            if then:
                await writer.drain()
                writer.write(then)
            return await reader.read()
    finally:
        writer.close()


def head(agent: Agent, *lines: str) -> bytes:
    common = [
        "POST /mcp/desk HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {agent.token}",
        "Content-Type: application/json",
        "Accept: */*",
    ]
    return "\r\n".join([*common, *lines, "", ""]).encode()


async def test_a_body_that_says_no_length_is_cut_at_the_limit(agent: Agent, stack: Stack) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    request = head(agent, "Transfer-Encoding: chunked") + chunk * 17

    answer = await raw(stack, request)

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.long
async def test_a_body_that_does_not_arrive_is_waited_for_ten_seconds(
    agent: Agent, stack: Stack
) -> None:
    began = asyncio.get_running_loop().time()

    answer = await raw(stack, head(agent, "Content-Length: 100") + b"{")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert 9 < asyncio.get_running_loop().time() - began < 13


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "identity"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "application/json; charset=utf-16"}, 415),
        ({"Accept": "application/json"}, 406),
        ({"Accept": "text/event-stream"}, 406),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "*/*"}, 200),
        ({"Accept": "text/event-stream;q=0.5,application/json"}, 200),
    ],
)
async def test_what_a_body_is_and_what_may_come_back(
    agent: Agent, headers: dict[str, str], status: int
) -> None:
    assert (await agent.post(PING, headers=headers)).status == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8001", None, 0),
        ("localhost", None, 0),
        ("LOCALHOST:1", None, 0),
        ("localhost.", None, 0),
        ("[::1]:8001", None, 0),
        ("localhost:8001", "http://localhost:8001", 0),
        ("localhost:8001", "https://LOCALHOST:8001", 0),
        ("evil.example", None, 421),
        ("localhost.evil.example", None, 421),
        ("127.0.0.1.evil.example", None, 421),
        ("evil.example:8001", "http://evil.example:8001", 421),
        ("", None, 421),
        ("localhost:port", None, 421),
        ("user@localhost", None, 421),
        ("[::2]", None, 421),
        ("localhost:8001", "http://evil.example", 403),
        ("localhost:8001", "http://localhost", 403),
        ("localhost:8001", "http://localhost:8002", 403),
        ("localhost:8001", "http://localhost:8001.evil.example", 403),
        ("localhost:8001", "file://localhost:8001", 403),
        ("localhost:8001", "localhost:8001", 403),
        ("localhost:8001", "null", 403),
        ("localhost:8001", "", 403),
        ("127.0.0.1:8001", "http://localhost:8001", 403),
    ],
)
def test_pages_of_other_places_may_not_call(host: str, origin: str | None, status: int) -> None:
    lines = [(b"host", host.encode())]
    if origin is not None:
        lines.append((b"origin", origin.encode()))
    try:
        request_checks.check_origin(Headers(lines))
        refused = 0
    except RpcError as refusal:
        refused = refusal.status

    assert refused == status


async def test_a_page_from_elsewhere_is_turned_away_at_the_door(agent: Agent) -> None:
    assert (await agent.post(PING, headers={"Origin": "https://evil.example"})).status == 403
    assert (await agent.post(PING, headers={"Host": "evil.example"})).status == 421


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32600),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rec.echo",'
            b'"arguments":{"text":"a","text":"b"}}}',
            -32600,
        ),
    ],
)
async def test_ambiguous_json_is_refused_with_the_reason(
    agent: Agent, body: bytes, code: int
) -> None:
    reply = await agent.post(body)

    assert (reply.status, reply.error["code"]) == (400, code)
    assert reply.last["id"] is None
    assert await Call.objects.acount() == 0


async def test_a_method_that_is_not_there_is_said_in_each_eras_way(
    play: Play, any_agent: Agent
) -> None:
    reply = await any_agent.ask("prompts/nothing")

    assert reply.error["code"] == -32601
    assert reply.status == (404 if any_agent.revision == MODERN else 200)


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "tasks/result"])
async def test_the_modern_revision_left_methods_behind(agent: Agent, method: str) -> None:
    reply = await agent.ask(method)

    assert (reply.status, reply.error["code"]) == (404, -32601)


async def test_a_header_that_disagrees_is_refused_with_the_requests_id(agent: Agent) -> None:
    message = await agent.message("tools/call", {"name": "rec.erase"}, request_id="q")

    reply = await agent.post(message, headers={**agent.headers(message), "Mcp-Name": "rec.echo"})

    assert (reply.status, reply.error["code"], reply.last["id"]) == (400, -32020, "q")
    assert await Call.objects.acount() == 0


@pytest.mark.parametrize(
    ("message", "version", "status"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, MODERN, 202),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, "2031-01-01", 400),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, MODERN, 400),
    ],
)
async def test_what_asks_nothing_at_the_modern_revision(
    agent: Agent, message: Any, version: str, status: int
) -> None:
    reply = await agent.post(message, headers={"MCP-Protocol-Version": version})

    assert reply.status == status


async def test_two_toolsets_of_one_agent_are_two_places(
    play: Play, toolset: Toolset, scout: AgentRow, bob: User
) -> None:
    @sync_to_async
    def make() -> None:
        services.assign(services.create_toolset("empty", by=bob), scout, by=bob)

    await make()

    reply = await play(at="empty").call("rec.echo", {"text": "x"})

    assert reply.error["code"] == -32602


async def test_a_token_that_is_revoked_while_the_body_comes_calls_nothing(
    stack: Stack, agent: Agent, upstream: Recorder, scout_token: str, bob: User
) -> None:
    async def is_refused() -> bool:
        return (await agent.post(PING)).status == 401

    wanted = request("rec", "echo", scout_token)
    head, _, body = wanted.partition(b"\r\n\r\n")
    where = urlsplit(stack.agents_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(head + b"\r\n\r\n" + body[:10])
        await writer.drain()
        token = await AgentToken.objects.aget()
        await sync_to_async(accounts.revoke_token)(token, by=bob)
        await until(is_refused)

        writer.write(body[10:])
        status = await reader.readline()
    finally:
        writer.close()

    assert b" 401 " in status
    assert not upstream.calls
