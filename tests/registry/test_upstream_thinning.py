"""Progress that comes faster than anybody reads it costs others little, and its last is heard."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import pytest

from registry.upstream import ProgressReport, Target, UpstreamCall, Upstreams
from registry.upstream.transport.thinning import FEW, KEPT, thinned
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    Request,
    begin_events,
    chunk,
    end_events,
    event,
    modern,
    reply,
    respond,
    serving,
)

MANY = 100_000
PROGRAM = f"""
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    result = {{"supportedVersions": ["2026-07-28"], "resultType": "complete", "content": []}}
    if said.get("method") == "tools/call":
        token = said["params"]["_meta"]["progressToken"]
        for n in range(1, {MANY} + 1):
            params = {{"progressToken": token, "progress": n}}
            report = {{"jsonrpc": "2.0", "method": "notifications/progress", "params": params}}
            print(json.dumps(report))
    print(json.dumps({{"jsonrpc": "2.0", "id": said["id"], "result": result}}), flush=True)
"""


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


def report(token: int, n: int, message: str = "") -> bytes:
    params = {"progressToken": token, "progress": n, "total": MANY, "message": message}
    said = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    return json.dumps(said).encode()


async def burst(request: Request, out: asyncio.StreamWriter) -> None:
    if request.json["params"]["name"] != "burst":
        respond(out, reply(request))
        return
    token = request.json["params"]["_meta"]["progressToken"]
    begin_events(out)
    lines = [b"data: " + report(token, n, f"Step {n}") + b"\n\n" for n in range(1, MANY + 1)]
    for start in range(0, MANY, 1000):
        chunk(out, b"".join(lines[start : start + 1000]))
        await out.drain()
    event(out, reply(request))
    end_events(out)


async def test_of_a_burst_the_last_is_heard_and_its_reply(upstreams: Upstreams) -> None:
    heard: list[ProgressReport] = []
    async with serving(modern(burst)) as server:
        call = UpstreamCall("burst", b"{}", on_progress=heard.append)

        answer = await upstreams.call_tool(server.target(), call)

    assert answer.kind == "complete"
    # More than a reply may have in bytes: what nobody reads is no part of it.
    assert MANY * len(report(1, MANY, f"Step {MANY}")) > call.limits.max_bytes
    assert heard[-1].progress == MANY
    assert len(heard) < MANY / 10


async def test_the_same_over_a_pipe(upstreams: Upstreams) -> None:
    heard: list[ProgressReport] = []
    target = Target(key="pipe", transport="stdio", argv=(sys.executable, "-c", PROGRAM))

    await upstreams.call_tool(target, UpstreamCall("burst", b"{}", on_progress=heard.append))

    assert heard[-1].progress == MANY
    assert len(heard) < MANY / 2


def test_few_stay_as_they_are_and_of_many_the_last_of_each_call() -> None:
    result = (
        b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\"method\\":\\"notifications/progress\\""}}'
    )
    log = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    came = [report(token, n) for n in range(FEW) for token in (1, 2)]
    came[5:5] = [log, result]

    kept = thinned(came)

    assert kept[:2] == [log, result]
    expected = [report(token, n) for n in range(FEW - KEPT, FEW) for token in (1, 2)]
    assert kept[2:] == expected
