"""Requests that contradict themselves, over a real socket: each has one status and one code.

What reaches the rules as text is in test_framing.py and test_door.py, function by function. Here
the HTTP parser, the door, the era and the method stand one behind the other, as clients meet them.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.gateway.agent import META, MODERN, Agent
from tests.gateway.conftest import Play
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

PARSE, REQUEST, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
MISMATCH, UNSUPPORTED = -32020, -32022
# Where the HTTP parser before us refuses, or nothing is to be said.
SILENT = None
OLD, OLDER, OLDEST = "2025-11-25", "2025-06-18", "2025-03-26"
VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
SESSION = "Mcp-Session-Id"
GONE: Any = object()

Lines = Sequence[tuple[str, str]]
Verdict = tuple[int, int | None]


@dataclass(frozen=True)
class Case:
    what: str
    lines: Lines
    body: bytes
    verdict: Verdict
    http: str = "POST"
    # In place of the length that the body has.
    length: str | None = None


def sentinel(text: bytes, form: str = "=?base64?{}?=") -> str:
    return form.format(b64encode(text).decode())


def changed(lines: dict[str, str], changes: dict[str, Any]) -> Lines:
    """A list stands for a header that comes more than once."""
    found: list[tuple[str, str]] = []
    for name, value in {**lines, **changes}.items():
        values = value if isinstance(value, list) else [value]
        found += [(name, one) for one in values]
    return found


def meta(**changes: Any) -> dict[str, Any]:
    members = {"protocolVersion": MODERN, "clientCapabilities": {}, **changes}
    return {f"{META}{name}": value for name, value in members.items() if value is not GONE}


def new(
    what: str,
    verdict: Verdict,
    headers: dict[str, Any] | None = None,
    method: str = "tools/call",
    params: Any = None,
    said: dict[str, Any] | None = None,
    **members: Any,
) -> Case:
    """2026-07-28, right but for what is said."""
    params = {"name": "rec.say"} if params is None else params
    if isinstance(params, dict):
        params = {**params, "_meta": meta() if said is None else said}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **members}
    message = {name: value for name, value in message.items() if value is not GONE}
    right = {VERSION: MODERN, METHOD: method}
    if isinstance(params, dict) and isinstance(named := params.get("name"), str):
        right[NAME] = named
    return Case(what, changed(right, headers or {}), json.dumps(message).encode(), verdict)


def old(
    what: str,
    verdict: Verdict,
    headers: dict[str, Any] | None = None,
    method: str = "tools/list",
    params: Any = None,
    body: bytes | None = None,
    **more: Any,
) -> Case:
    """Of an earlier revision, without a session unless one is named."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return Case(
        what, changed({}, headers or {}), body or json.dumps(message).encode(), verdict, **more
    )


def region(value: Any) -> dict[str, Any]:
    return {"name": "rec.regional", "arguments": {} if value is GONE else {"region": value}}


def request(method: str = "tools/list", **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **members}).encode()


GREETING = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
REGION = "mcp-param-REGION"

CASES = [
    # The header says something else than the body.
    new("no version header, a modern body", (400, MISMATCH), {VERSION: GONE}),
    new("an empty version header", (400, MISMATCH), {VERSION: ""}),
    new("a legacy header, a modern body", (400, MISMATCH), {VERSION: OLD}),
    new("an unknown header, a modern body", (400, MISMATCH), {VERSION: "2099-01-01"}),
    new("a modern header, a legacy body", (400, MISMATCH), said=meta(protocolVersion=OLD)),
    new(
        "a modern header, an unknown body", (400, MISMATCH), said=meta(protocolVersion="2099-01-01")
    ),
    new(
        "no header, an unknown body",
        (400, MISMATCH),
        {VERSION: GONE},
        said=meta(protocolVersion="x"),
    ),
    new("a version that is a number", (400, MISMATCH), said=meta(protocolVersion=20260728)),
    new("a version that is null", (400, MISMATCH), said=meta(protocolVersion=None)),
    new("the version header twice, alike", (400, MISMATCH), {VERSION: [MODERN, MODERN]}),
    new("the version header twice, new and old", (400, MISMATCH), {VERSION: [MODERN, OLD]}),
    new("a version in base64", (400, MISMATCH), {VERSION: sentinel(MODERN.encode())}),
    new("no Mcp-Method", (400, MISMATCH), {METHOD: GONE}),
    new("another Mcp-Method", (400, MISMATCH), {METHOD: "tools/list"}),
    new("Mcp-Method in capitals", (400, MISMATCH), {METHOD: "Tools/Call"}),
    new("Mcp-Method twice", (400, MISMATCH), {METHOD: ["tools/call", "tools/call"]}),
    new("Mcp-Method in base64", (400, MISMATCH), {METHOD: sentinel(b"tools/call")}),
    new("no Mcp-Name", (400, MISMATCH), {NAME: GONE}),
    new("another Mcp-Name", (400, MISMATCH), {NAME: "rec.echo"}),
    new("Mcp-Name in capitals", (400, MISMATCH), {NAME: "REC.SAY"}),
    new("Mcp-Name twice, alike", (400, MISMATCH), {NAME: ["rec.say", "rec.say"]}),
    new("Mcp-Name twice, two names", (400, MISMATCH), {NAME: ["rec.say", "rec.erase"]}),
    new("Mcp-Name in base64 of another", (400, MISMATCH), {NAME: sentinel(b"rec.erase")}),
    new("Mcp-Name in broken base64", (400, MISMATCH), {NAME: "=?base64?cmVj!?="}),
    new("Mcp-Name in base64 without its padding", (400, MISMATCH), {NAME: "=?base64?cmVjLnNheQ?="}),
    new(
        "Mcp-Name with a sentinel in capitals",
        (400, MISMATCH),
        {NAME: sentinel(b"rec.say", "=?BASE64?{}?=")},
    ),
    new("Mcp-Name in base64 of Latin-1", (400, MISMATCH), {NAME: sentinel(b"r\xe9c")}),
    new("Mcp-Name in raw bytes", (400, MISMATCH), {NAME: "r\xe9c"}, params={"name": "réc"}),
    new(
        "a resource's name instead of its URI",
        (400, MISMATCH),
        {NAME: "a"},
        "resources/read",
        {"uri": "x:y"},
    ),
    new("a resource without Mcp-Name", (400, MISMATCH), None, "resources/read", {"uri": "x:y"}),
    new("another prompt", (400, MISMATCH), {NAME: "b"}, "prompts/get", {"name": "a"}),
    new("another task", (400, MISMATCH), {NAME: "b"}, "tasks/get", {"taskId": "a"}),
    new("another task to cancel", (400, MISMATCH), {NAME: "b"}, "tasks/cancel", {"taskId": "a"}),
    # The body does not say what its era must.
    new("a modern header, nothing in the body", (400, PARAMS), said={}),
    new("no capabilities", (400, PARAMS), said=meta(clientCapabilities=GONE)),
    new("capabilities that are a list", (400, PARAMS), said=meta(clientCapabilities=[])),
    new("capabilities that are true", (400, PARAMS), said=meta(clientCapabilities=True)),
    new("a name that is a number", (400, PARAMS), {NAME: "7"}, params={"name": 7}),
    new("params that are a list", (400, PARAMS), params=[]),
    new(
        "a header of tomorrow and nothing inside",
        (400, UNSUPPORTED),
        {VERSION: "2099-01-01"},
        said={},
    ),
    new(
        "a revision of tomorrow in both",
        (400, UNSUPPORTED),
        {VERSION: "2099-01-01"},
        said=meta(protocolVersion="2099-01-01"),
    ),
    new(
        "2024-11-05, which has no such transport",
        (400, UNSUPPORTED),
        {VERSION: "2024-11-05"},
        said=meta(protocolVersion="2024-11-05"),
    ),
    # Methods of the other era.
    new("initialize as of 2026-07-28", (404, NO_METHOD), method="initialize", params=GREETING),
    new("ping as of 2026-07-28", (404, NO_METHOD), method="ping", params={}),
    new(
        "logging/setLevel as of 2026-07-28", (404, NO_METHOD), method="logging/setLevel", params={}
    ),
    new(
        "resources/subscribe as of 2026-07-28",
        (404, NO_METHOD),
        method="resources/subscribe",
        params={},
    ),
    new("a method with a space", (404, NO_METHOD), method="tools/ list", params={}),
    old("server/discover as of 2025-11-25", (200, NO_METHOD), {VERSION: OLD}, "server/discover"),
    old("listen as of 2025-06-18", (200, NO_METHOD), {VERSION: OLDER}, "subscriptions/listen"),
    old("a method that there never was", (200, NO_METHOD), {VERSION: OLDEST}, "tools/delete"),
    # What is not a request.
    new(
        "a notification of tomorrow",
        (400, UNSUPPORTED),
        {VERSION: "2099-01-01"},
        "notifications/x",
        {},
        {},
        id=GONE,
    ),
    new("a notification is heard", (202, SILENT), None, "notifications/cancelled", {}, id=GONE),
    new("an answer to nothing", (400, REQUEST), method=GONE, params=GONE, result={}),
    new("an id that is null", (400, REQUEST), id=None),
    new("an id with a fraction", (400, REQUEST), id=1.5),
    new("an id that is a list", (400, REQUEST), id=[1]),
    new("JSON-RPC 1.0", (400, REQUEST), jsonrpc="1.0"),
    # Sessions.
    old("a session that nobody opened", (404, 404), {VERSION: OLD, SESSION: "abc"}),
    old("an empty session", (404, 404), {VERSION: OLD, SESSION: ""}),
    old("a session of another revision", (400, REQUEST), {VERSION: OLDER, SESSION: "{session}"}),
    old("a session with one letter changed", (404, 404), {VERSION: OLD, SESSION: "{session}A"}),
    old("two sessions", (404, 404), {VERSION: OLD, SESSION: ["{session}", "{session}"]}),
    old("a legacy header of no revision", (400, UNSUPPORTED), {VERSION: "2025-01-01"}),
    old("two legacy headers", (400, MISMATCH), {VERSION: [OLD, OLD]}),
    old("initialize without a version", (400, PARAMS), None, "initialize", {"capabilities": {}}),
    # What a modern request need not say is not looked at.
    new("a session beside a modern request", (200, SILENT), {SESSION: "abc"}),
    new("an event to go on from", (200, SILENT), {"Last-Event-ID": "7"}),
    new("a parameter of no tool in a header", (200, SILENT), {"Mcp-Param-Region": "us"}),
    # Arguments that the tool wants repeated.
    *(
        new(f"an argument {what} in its header", (400, MISMATCH), headers, params=region(value))
        for what, value, headers in (
            ("not", "eu", {}),
            ("otherwise", "eu", {REGION: "us"}),
            ("in other letters", "eu", {REGION: "EU"}),
            ("and another", "eu", {REGION: ["eu", "us"]}),
            ("twice the same", "eu", {REGION: ["eu", "eu"]}),
            ("as broken base64", "eu", {REGION: "=?base64?ZXU?="}),
            ("in letters that are none of base64", "eu", {REGION: "=?base64?Z!U=?="}),
            ("as base64 of something else", "eu", {REGION: sentinel(b"us")}),
            ("as base64 of no text", "eu", {REGION: sentinel(b"\xff")}),
            ("in bytes beyond ASCII", "zürich", {REGION: "zürich"}),
            ("that is null", None, {REGION: "null"}),
            ("that is left out", GONE, {REGION: "eu"}),
            ("that is a list", ["eu"], {REGION: "eu"}),
        )
    ),
    *(
        new(f"a {what} in its header", (200, SILENT), headers, params=region(value))
        for what, value, headers in (
            ("word as base64", "eu", {REGION: sentinel(b"eu")}),
            ("city", "zürich", {REGION: sentinel("zürich".encode())}),
            ("word that looks like half a base64", "=?base64?eu", {REGION: "=?base64?eu"}),
            ("null not", None, {}),
            ("word that is not there not", GONE, {}),
        )
    ),
    # Batches.
    old("a batch as of 2025-06-18", (400, REQUEST), {VERSION: OLDER}, body=b"[" + request() + b"]"),
    old(
        "a batch as of 2026-07-28", (400, REQUEST), {VERSION: MODERN}, body=b"[" + request() + b"]"
    ),
    old("an empty batch", (400, REQUEST), {VERSION: OLDEST}, body=b"[]"),
    old("a batch of 51", (400, REQUEST), body=b"[" + b",".join([request()] * 51) + b"]"),
    old(
        "a greeting in a batch",
        (400, REQUEST),
        body=b"[" + request("initialize", params=GREETING) + b"]",
    ),
    old("a batch in a batch", (400, REQUEST), body=b"[[" + request() + b"]]"),
    # Bytes that are no message.
    old("half a message", (400, PARSE), body=request()[:-1]),
    old("two messages", (400, PARSE), body=request() * 2),
    old("a message and a NUL", (400, PARSE), body=request() + b"\0"),
    old("UTF-16", (400, PARSE), body=request().decode().encode("utf-16")),
    old("a text", (400, REQUEST), body=b'"tools/list"'),
    old(
        "one name twice",
        (400, REQUEST),
        body=b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}',
    ),
    old(
        "both a result and an error",
        (400, REQUEST),
        body=b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    ),
    # Framing by HTTP.
    old("a length that is shorter than the body", (400, PARSE), length=str(len(request()) - 3)),
    old("a length that is a word", (400, SILENT), length="many"),
    old("a negative length", (400, SILENT), length="-1"),
    old("two lengths", (400, SILENT), {"Content-Length": "5"}),
    old("a length and chunks", (400, SILENT), {"Transfer-Encoding": "chunked"}),
    old("a body that is compressed", (415, 415), {"Content-Encoding": "gzip"}),
    old("no type", (415, 415), {"Content-Type": GONE}),
    old("two types", (415, 415), {"Content-Type": ["application/json", "text/plain"]}),
    old("JSON in Latin-1", (415, 415), {"Content-Type": "application/json; charset=latin-1"}),
    old("nothing accepted", (406, 406), {"Accept": GONE}),
    old("only JSON accepted", (406, 406), {"Accept": "application/json"}),
    old("GET without a session", (405, 405), {VERSION: OLD}, http="GET"),
    old("GET at 2026-07-28", (405, 405), {VERSION: MODERN}, http="GET"),
    old("GET that takes no events", (406, 406), {"Accept": "application/json"}, http="GET"),
    old("GET beside a session that nobody opened", (404, 404), {SESSION: "abc"}, http="GET"),
    old("DELETE of a session", (405, 405), {SESSION: "{session}"}, http="DELETE"),
    old("PUT", (405, 405), http="PUT"),
]

OURS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def written(case: Case, agent: Agent, host: str) -> bytes:
    names = {name for name, _ in case.lines}
    right = {"Host": host, **OURS, "Authorization": f"Bearer {agent.token}"}
    lines = [(name, value) for name, value in right.items() if name not in names]
    lines += [line for line in case.lines if line[1] is not GONE]
    lines.append(("Content-Length", case.length or str(len(case.body))))
    lines.append(("Connection", "close"))
    head = [f"{case.http} /mcp/desk HTTP/1.1", *(f"{name}: {value}" for name, value in lines)]
    text = "\r\n".join([*head, "", ""]).replace("{session}", agent.session)
    return text.encode("latin-1") + case.body


async def verdict(stack: Stack, data: bytes) -> Verdict:
    """The status, and the code of the error if there is one."""
    host, _, port = stack.agents_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        async with asyncio.timeout(30):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), code(body)


def code(body: bytes) -> int | None:
    try:
        message = json.loads(body)
    except ValueError:
        return SILENT
    found = message.get("error", {}).get("code") if isinstance(message, dict) else None
    return found if isinstance(found, int) else SILENT


async def verdicts(stack: Stack, requests: Iterable[tuple[str, bytes]]) -> dict[str, Verdict]:
    at_once = asyncio.Semaphore(16)

    async def one(what: str, data: bytes) -> tuple[str, Verdict]:
        async with at_once:
            return what, await verdict(stack, data)

    return dict(await asyncio.gather(*(one(what, data) for what, data in requests)))


async def test_each_disagreement_has_its_status_and_its_code(
    play: Play, stack: Stack, upstream: Recorder
) -> None:
    agent = play(OLD)
    await agent.begin()
    refused = [case for case in CASES if case.verdict[0] >= 400]
    assert len(refused) >= 60
    assert len({case.what for case in CASES}) == len(CASES)
    host = stack.agents_url.removeprefix("http://")

    found = await verdicts(stack, ((case.what, written(case, agent, host)) for case in CASES))

    wanted = {case.what: case.verdict for case in CASES}
    differing = {what: (got, wanted[what]) for what, got in found.items() if got != wanted[what]}
    assert differing == {}, "got, wanted"
    # Of those that are well three are calls of "say", and null is no text.
    assert len(upstream.calls) == 7
    regions = [call.headers.get("mcp-param-region") for call in upstream.calls]
    city = sentinel("zürich".encode())
    assert sorted(filter(None, regions)) == [city, "=?base64?eu", "eu"]


# Host, Origin (or several), and the status: `{here}` is where the endpoint listens.
PLACES: list[tuple[list[str], list[str], int]] = [
    (["{here}"], [], 200),
    (["localhost"], [], 200),
    (["LocalHost:9"], [], 200),
    (["localhost."], [], 200),
    (["[::1]:8001"], [], 200),
    (["{here}"], ["http://{here}"], 200),
    (["{here}"], ["https://{here}"], 200),
    ([], [], 421),
    ([""], [], 421),
    (["{here}", "{here}"], [], 421),
    (["localhost", "evil.example"], [], 421),
    (["evil.example"], [], 421),
    (["localhost.evil.example"], [], 421),
    (["evil.example/localhost"], [], 421),
    (["localhost@evil.example"], [], 421),
    (["evil.example#localhost"], [], 421),
    (["127.1"], [], 421),
    (["2130706433"], [], 421),
    (["[::ffff:7f00:1]"], [], 421),
    (["localhost:80:80"], [], 421),
    (["{here}"], ["null"], 403),
    (["{here}"], [""], 403),
    (["{here}"], ["http://evil.example"], 403),
    (["{here}"], ["http://127.0.0.1"], 403),
    (["{here}"], ["http://{here}/"], 403),
    (["{here}"], ["http://{here}.evil.example"], 403),
    (["{here}"], ["http://evil.example#{here}"], 403),
    (["{here}"], ["http://x@{here}"], 403),
    (["{here}"], ["HTTP://{here}"], 403),
    (["{here}"], ["file://{here}"], 403),
    (["{here}"], ["chrome-extension://{here}"], 403),
    (["{here}"], ["http://{here}", "http://evil.example"], 403),
    (["{here}"], ["http://{here} http://evil.example"], 403),
    (["evil.example"], ["http://evil.example"], 421),
]


async def test_only_pages_of_here_and_programs_come_in(play: Play, stack: Stack) -> None:
    agent = play()
    here = stack.agents_url.removeprefix("http://")
    assert len(PLACES) >= 20

    def asked(hosts: list[str], origins: list[str]) -> bytes:
        lines = [("Host", host) for host in hosts] + [("Origin", origin) for origin in origins]
        lines = [(name, value.replace("{here}", here)) for name, value in lines]
        case = Case("", lines or [("Host", GONE)], request(), (0, None))
        return written(case, agent, here)

    found = await verdicts(stack, ((f"{h} {o}", asked(h, o)) for h, o, _ in PLACES))

    wanted = {f"{hosts} {origins}": status for hosts, origins, status in PLACES}
    got = {place: status for place, (status, _code) in found.items()}
    assert got == wanted
