"""Calls over HTTP: what is sent, what comes back, and in which revision."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from registry.upstream import (
    NotSent,
    OutcomeUnknown,
    ProgressReport,
    RpcErrorReply,
    ServerListing,
    Target,
    UpstreamCall,
    Upstreams,
)
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    LEGACY,
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

ODD_ARGUMENTS = '{ "a" : 1.0, "b":"\\u00e9é", "c":[1e3 ],\n"d":{}}'.encode()
ODD_RESULT = '{ "content" : [] ,"x":1.50, "y":"\\ud800", "é":"é", "n":123456789012345678901234}'


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


async def echo(request: Request, out: asyncio.StreamWriter) -> None:
    respond(out, reply(request, ODD_RESULT))


def arguments_sent(request: Request) -> bytes:
    return request.body.split(b'"arguments":')[1].split(b',"_meta"')[0]


async def test_it_sends_the_very_bytes_of_the_arguments(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", ODD_ARGUMENTS))

    [call] = server.sent("tools/call")
    assert arguments_sent(call) == ODD_ARGUMENTS
    assert call.json["params"]["name"] == "t"


@pytest.mark.parametrize(
    "order",
    [
        '{{"jsonrpc":"2.0","id":{id},"result":{result}}}',
        '{{"result":{result},"jsonrpc":"2.0","id":{id}}}',
        ' {{ "id" : {id} , "result" : {result} , "jsonrpc" : "2.0" }}\n',
        '{{"jsonrpc":"2.0","id":{id},"result":{result},"later":{{"result":1}}}}',
        '{{"jsonrpc":"2.0","other":{{"result":"}}"}},"id":{id},"result":{result}}}',
    ],
)
async def test_it_returns_the_result_as_it_was_written(upstreams: Upstreams, order: str) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, order.format(id=request.json["id"], result=ODD_RESULT).encode())

    async with serving(modern(call)) as server:
        answer = await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert answer.result == ODD_RESULT.encode()
    assert (answer.is_error, answer.kind) == (False, "complete")


async def test_it_says_what_the_revision_of_2026_wants_said(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        target = server.target(headers={"Authorization": "Bearer theirs"})
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

    [probe, call] = server.requests
    assert probe.method == "server/discover"
    assert call.headers["mcp-protocol-version"] == MODERN
    assert call.headers["mcp-method"] == "tools/call"
    assert call.headers["mcp-name"] == "t"
    assert call.headers["authorization"] == "Bearer theirs"
    assert call.headers["accept"] == "application/json, text/event-stream"
    assert call.headers["accept-encoding"] == "identity"
    assert call.headers["host"] == f"127.0.0.1:{server.port}"
    assert call.json["params"]["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "countersign", "version": "0.1.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("plain.tool-1", "plain.tool-1"),
        ("grüße", "=?base64?Z3LDvMOfZQ==?="),
        (" edge ", "=?base64?IGVkZ2Ug?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ],
)
async def test_it_writes_unsafe_names_in_base64(
    upstreams: Upstreams, name: str, header: str
) -> None:
    async with serving(modern(echo)) as server:
        await upstreams.call_tool(server.target(), UpstreamCall(name, b"{}"))

    [call] = server.sent("tools/call")
    assert call.headers["mcp-name"] == header
    assert call.json["params"]["name"] == name


async def test_it_adds_the_parameters_that_a_tool_wants_as_headers(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        await upstreams.call_tool(
            server.target(), UpstreamCall("t", b"{}", param_headers={"Mcp-Param-Region": "eu"})
        )

    assert server.sent("tools/call")[0].headers["mcp-param-region"] == "eu"


async def test_it_refuses_a_header_with_a_line_break(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        with pytest.raises(NotSent, match="line break"):
            await upstreams.call_tool(
                server.target(), UpstreamCall("t", b"{}", param_headers={"Mcp-Param-A": "x\r\ny"})
            )
        target = server.target(key="other", headers={"X-Team": "x\nHost: y"})
        with pytest.raises(NotSent, match="cannot be sent"):
            await upstreams.call_tool(target, UpstreamCall("t", b"{}"))

    assert not server.sent("tools/call")


@pytest.mark.parametrize("name", ["Mcp-Session-Id", "Content-Length", "transfer-encoding", "Host"])
async def test_it_refuses_to_have_its_own_headers_set(upstreams: Upstreams, name: str) -> None:
    target = Target(key="k", transport="http", url="http://127.0.0.1:1/", headers={name: "1"})
    with pytest.raises(NotSent, match="set by Countersign"):
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))


async def test_it_probes_once_and_keeps_one_connection(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        for _ in range(5):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert len(server.sent("server/discover")) == 1
    assert len(server.sent("tools/call")) == 5
    assert server.connections == 1


async def test_it_probes_once_for_many_at_the_same_time(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        target = server.target()
        await asyncio.gather(
            *(upstreams.call_tool(target, UpstreamCall("t", b"{}")) for _ in range(20))
        )

    assert len(server.sent("server/discover")) == 1


async def test_what_a_server_spoke_last_is_no_promise_and_it_is_asked_before_the_first_call(
    upstreams: Upstreams,
) -> None:
    async with serving(modern(echo)) as server:
        for _ in range(3):
            await upstreams.call_tool(server.target(revision=MODERN), UpstreamCall("t", b"{}"))

    methods = [request.method for request in server.requests]
    assert methods == ["server/discover", *["tools/call"] * 3]


@pytest.mark.parametrize("hint", [LEGACY, "2025-03-26", "nonsense"])
async def test_a_wrong_hint_of_an_old_revision_heals(upstreams: Upstreams, hint: str) -> None:
    async def refuse(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "initialize":
            respond(out, error(request, -32601), status=404)
        else:
            await echo(request, out)

    async with serving(modern(refuse)) as server:
        answer = await upstreams.call_tool(server.target(revision=hint), UpstreamCall("t", b"{}"))

    assert answer.result == ODD_RESULT.encode()
    assert len(server.sent("tools/call")) == 1


async def test_a_wrong_hint_of_the_new_revision_heals(upstreams: Upstreams) -> None:
    async with serving(legacy(echo, session="s1")) as server:
        answer = await upstreams.call_tool(server.target(revision=MODERN), UpstreamCall("t", b"{}"))

    assert answer.result == ODD_RESULT.encode()
    [taken] = server.sent("tools/call")
    assert taken.headers["mcp-protocol-version"] == LEGACY


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_it_greets_older_servers_in_their_way(upstreams: Upstreams, revision: str) -> None:
    async with serving(legacy(echo, revision=revision, session="abc")) as server:
        answer = await upstreams.call_tool(server.target(), UpstreamCall("grüße", ODD_ARGUMENTS))

    assert answer.result == ODD_RESULT.encode()
    methods = [request.method for request in server.requests]
    ready = "notifications/initialized"
    assert methods == ["server/discover", "initialize", ready, "tools/call"]
    [call] = server.sent("tools/call")
    assert call.headers["mcp-session-id"] == "abc"
    expected = revision if revision >= "2025-06-18" else None
    assert call.headers.get("mcp-protocol-version") == expected
    assert "mcp-name" not in call.headers
    assert call.json["params"] == {"name": "grüße", "arguments": json.loads(ODD_ARGUMENTS)}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"No session"},"id":null}'),
        (400, b"Bad Request"),
        (404, b"not here"),
        (405, b""),
        (406, b""),
        (500, b"oops"),
        (200, b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"?"},"id":ID}'),
        (200, b"<html>"),
    ],
)
async def test_whatever_an_older_server_makes_of_the_probe_it_is_greeted(
    upstreams: Upstreams, status: int, body: bytes
) -> None:
    old = legacy(echo)

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "server/discover":
            respond(out, body.replace(b"ID", b"%d" % request.json["id"]), status=status)
        else:
            await old(request, out)

    async with serving(handle) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert len(server.sent("initialize")) == 1


async def test_it_takes_an_older_revision_that_a_newer_server_offers(upstreams: Upstreams) -> None:
    old = legacy(echo, revision="2025-06-18")

    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "server/discover":
            data = {"supported": ["2027-01-01", "2025-06-18"], "requested": MODERN}
            respond(out, error(request, -32022, data=data), status=400)
        else:
            await old(request, out)

    async with serving(handle) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    [greeting] = server.sent("initialize")
    assert greeting.json["params"]["protocolVersion"] == "2025-06-18"


async def test_it_greets_again_when_the_session_is_forgotten(upstreams: Upstreams) -> None:
    forgotten = False

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        nonlocal forgotten
        if forgotten:
            forgotten = False
            respond(out, error(None, -32001, "Session not found"), status=404)
        else:
            await echo(request, out)

    async with serving(legacy(call, session="s")) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))
        forgotten = True
        answer = await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert answer.result == ODD_RESULT.encode()
    assert len(server.sent("initialize")) == 2
    assert len(server.sent("tools/call")) == 3


async def test_it_gives_up_when_the_session_is_forgotten_twice(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, error(None, -32001, "Session not found"), status=404)

    async with serving(legacy(call, session="s")) as server:
        with pytest.raises(OutcomeUnknown, match="had ended its session"):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert len(server.sent("tools/call")) == 2


async def test_it_ends_the_session_when_a_target_is_closed(upstreams: Upstreams) -> None:
    async with serving(legacy(echo, session="s")) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))
        await upstreams.close_target("raw")

    assert server.requests[-1].verb == "DELETE"
    assert server.requests[-1].headers["mcp-session-id"] == "s"


async def test_it_reads_a_reply_from_an_event_stream(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        begin_events(out)
        chunk(out, b": keep-alive\r\n\r\nid: 1\r\nevent: other\r\ndata: {}\r\n\r\n")
        message = reply(request, '{"content":\n[],"isError":true}')
        for piece in (b"data: " + message.replace(b"\n", b"\ndata: ") + b"\n\n").split(b"e"):
            chunk(out, piece + b"e" if not piece.endswith(b"\n\n") else piece)
            await out.drain()
        end_events(out)

    async with serving(modern(call)) as server:
        for _ in range(3):
            answer = await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert answer.result == b'{"content":\n[],"isError":true}'
    assert answer.is_error


async def test_it_keeps_the_connection_of_an_ended_stream(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        begin_events(out)
        event(out, reply(request))
        end_events(out)

    async with serving(modern(call)) as server:
        for _ in range(5):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert server.connections == 1


@pytest.mark.parametrize("era", [modern, legacy])
async def test_it_passes_on_progress_and_log(
    upstreams: Upstreams, era: Callable[[Handler], Handler]
) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        begin_events(out)
        for params in (
            {"progressToken": token, "progress": 1, "total": 2, "message": "half"},
            {"progressToken": "another", "progress": 9},
            {"progressToken": token, "progress": "much"},
            {"progressToken": token, "progress": 2.5},
        ):
            event(out, note("notifications/progress", params))
        event(out, note("notifications/message", {"level": "info", "data": "hello"}))
        event(out, note("notifications/unheard-of", {}))
        event(out, reply(request))
        end_events(out)

    heard: list[ProgressReport] = []
    logged: list[object] = []
    async with serving(era(call)) as server:
        await upstreams.call_tool(
            server.target(),
            UpstreamCall(name="t", arguments=b"{}", on_progress=heard.append, on_log=logged.append),
        )

    assert heard == [ProgressReport(1, 2, "half"), ProgressReport(2.5, None, "")]
    assert logged == [{"level": "info", "data": "hello"}]


async def test_a_listener_that_fails_does_not_spoil_the_call(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        begin_events(out)
        event(out, note("notifications/progress", {"progressToken": token, "progress": 1}))
        event(out, reply(request))
        end_events(out)

    def fail(progress: ProgressReport) -> None:
        raise ZeroDivisionError

    async with serving(modern(call)) as server:
        answer = await upstreams.call_tool(
            server.target(), UpstreamCall("t", b"{}", on_progress=fail)
        )

    assert answer.result == b'{"content":[]}'


async def test_it_answers_what_a_server_asks_during_a_call(upstreams: Upstreams) -> None:
    answered = asyncio.Event()
    answers = []

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method:
            begin_events(out)
            event(out, b'{"jsonrpc":"2.0","id":"q1","method":"ping"}')
            event(out, b'{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}')
            await out.drain()
            await answered.wait()
            event(out, reply(request))
            end_events(out)
            return
        answers.append(request.json)
        respond(out, b"", status=202)
        if len(answers) == 2:
            answered.set()

    async with serving(legacy(call, session="s")) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    answers.sort(key=lambda answer: str(answer["id"]), reverse=True)
    assert answers[0] == {"jsonrpc": "2.0", "id": "q1", "result": {}}
    assert (answers[1]["id"], answers[1]["error"]["code"]) == (2, -32601)


@pytest.mark.parametrize("cut", [b"", b"id: p2\ndata: {cut off"])
async def test_it_takes_up_a_stream_that_an_older_server_ended(
    upstreams: Upstreams, cut: bytes
) -> None:
    waiting: list[Request] = []

    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        begin_events(out)
        if request.verb == "POST":
            waiting.append(request)
            chunk(out, b"id: p1\nretry: 10\ndata: \n\n" + cut)
        else:
            event(out, reply(waiting[0]))
        if cut and request.verb == "POST":
            out.close()
        else:
            end_events(out)

    async with serving(legacy(call, session="s")) as server:
        await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    [again] = [request for request in server.requests if request.verb == "GET"]
    assert again.headers["last-event-id"] == "p1"
    assert again.headers["mcp-session-id"] == "s"


@pytest.mark.parametrize("status", [200, 400, 404, 500])
async def test_an_error_of_the_server_is_an_answer(upstreams: Upstreams, status: int) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        said = error(request, -32602, "Unknown tool: t", data={"hint": [1]})
        respond(out, said, status=status)

    async with serving(modern(call)) as server:
        with pytest.raises(RpcErrorReply) as caught:
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    answer = caught.value
    assert (answer.code, answer.message, answer.data) == (-32602, "Unknown tool: t", {"hint": [1]})
    assert len(server.sent("tools/call")) == 1


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_an_error_of_the_new_revision_is_no_reason_to_probe(
    upstreams: Upstreams, code: int
) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, error(None, code), status=400)

    async with serving(modern(call)) as server:
        with pytest.raises(RpcErrorReply):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))

    assert len(server.requests) == 2


async def test_a_closed_port_is_certain(upstreams: Upstreams) -> None:
    async with serving(modern(echo)) as server:
        target = server.target(revision=MODERN)
    with pytest.raises(NotSent, match="could not be reached"):
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))


async def test_a_restarted_server_is_connected_to_again(upstreams: Upstreams) -> None:
    async def once(request: Request, out: asyncio.StreamWriter) -> None:
        await echo(request, out)
        await out.drain()
        out.close()

    async with serving(modern(once)) as server:
        for _ in range(3):
            await upstreams.call_tool(server.target(), UpstreamCall("t", b"{}"))
            await asyncio.sleep(0)

    assert len(server.sent("tools/call")) == 3


async def test_it_discovers_what_a_server_is(upstreams: Upstreams) -> None:
    tool = '{"name":"t","inputSchema":{"type":"object"},"unknown":{"kept":1}}'
    async with serving(modern(echo, tools=f'{{"tools":[{tool}]}}')) as server:
        found = await upstreams.discover(server.target())

    assert found == ServerListing(
        revision=MODERN,
        server_info={"name": "new", "version": "2"},
        capabilities={"tools": {}},
        named=(MODERN,),
        instructions="Ask nicely.",
        tools=[json.loads(tool)],
    )


async def test_it_discovers_an_older_server(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, reply(request, '{"tools":[{"name":"t","inputSchema":{}}]}'))

    async with serving(legacy(call, session="s")) as server:
        found = await upstreams.discover(server.target())
        again = await upstreams.discover(server.target())

    assert found == again
    assert (found.revision, found.server_info["name"]) == (LEGACY, "old")
    assert len(server.sent("initialize")) == 1


async def test_it_reads_all_pages_of_tools(upstreams: Upstreams) -> None:
    async def call(request: Request, out: asyncio.StreamWriter) -> None:
        cursor = request.json["params"].get("cursor")
        number = {None: 0, "": 1, 'é"': 2}[cursor]
        page: dict[str, object] = {"tools": [{"name": f"t{number}", "inputSchema": {}}]}
        if number < 2:
            page["nextCursor"] = ["", 'é"'][number]
        respond(out, reply(request, json.dumps(page)))

    async with serving(legacy(call)) as server:
        found = await upstreams.discover(server.target())

    assert [tool["name"] for tool in found.tools] == ["t0", "t1", "t2"]


async def test_a_server_without_tools_need_not_know_the_method(upstreams: Upstreams) -> None:
    async def handle(request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "server/discover":
            respond(
                out, reply(request, f'{{"supportedVersions":["{MODERN}"],"capabilities":{{}}}}')
            )
        else:
            respond(out, error(request, -32601), status=404)

    async with serving(handle) as server:
        assert (await upstreams.discover(server.target())).tools == []


async def test_it_leaves_out_tools_with_headers_that_cannot_be(upstreams: Upstreams) -> None:
    good = {"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    bad = {"properties": {"r": {"type": "number", "x-mcp-header": "Region"}}}
    tools = [{"name": "good", "inputSchema": good}, {"name": "bad", "inputSchema": bad}]
    async with serving(modern(echo, tools=json.dumps({"tools": tools}))) as server:
        found = await upstreams.discover(server.target())

    assert [tool["name"] for tool in found.tools] == ["good"]
    assert found.left_out == (("bad", "“r” with x-mcp-header must be string, integer or boolean."),)


def note(method: str, params: dict[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
