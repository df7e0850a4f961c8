"""Every answer has its request's id; logs have it too, and the access log where it is wanted."""

import asyncio
import json
import logging
import re
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from config.embedded.valkey import free_port
from config.requests import with_request_ids
from core.logs import IdFilter
from core.request_ids import current_id, id_from
from registry.models import Toolset
from tests.gateway.agent import Agent
from tests.gateway.conftest import Play, until
from tests.gateway.test_front import call, line_of
from tests.processes import Running, Stack

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = f"csa_{'a' * 8}_{'b' * 43}_{'c' * 6}"
WELL_FORMED = ["a", "019f2c3e-0000-7000-8000-000000000001", "1-67891233:abc.d", "x" * 64]
ILL_FORMED = ["", "x" * 65, "two words", "a/b", 'a"b', "ä", "a;b", "a\tb", TOKEN, "Bearer abcdefg"]


@pytest.mark.parametrize("told", WELL_FORMED)
def test_a_well_formed_id_is_kept(told: str) -> None:
    assert id_from([(b"host", b"x"), (b"x-request-id", told.encode())]) == told.encode()


@pytest.mark.parametrize("told", ILL_FORMED)
def test_another_gets_one_of_ours(told: str) -> None:
    lines = [(b"x-request-id", told.encode())]
    first, second = id_from(lines), id_from(lines)
    assert told.encode() not in (first, second)
    assert first != second
    assert id_from([(b"x-request-id", first)]) == first


async def test_console_and_endpoint_answer_it_also_where_they_refuse(
    stack: Stack, http: aiohttp.ClientSession
) -> None:
    assert stack.web
    assert stack.agents
    for url in (
        f"{stack.web_url}/sign-in/",
        f"{stack.web_url}/nothing/",
        f"{stack.web_url}/livez",
        f"{stack.web_url}/mcp/desk",
        f"{stack.agents_url}/mcp/desk",
        f"{stack.agents_url}/nothing",
        f"{stack.agents_url}/readyz",
    ):
        async with http.get(url, headers={"X-Request-Id": "from-a-proxy"}) as response:
            assert response.headers.getall("X-Request-Id") == ["from-a-proxy"], url
        async with http.get(url, headers={"X-Request-Id": "two words"}) as response:
            assert len(response.headers["X-Request-Id"]) > 8, url


async def test_each_of_many_like_requests_has_its_own(agent: Agent) -> None:
    replies = [await agent.call("rec.echo", {"text": "again"}) for _ in range(4)]
    replies += await asyncio.gather(
        *(agent.call("rec.echo", {"text": "at once"}) for _ in range(8))
    )
    found = [reply.headers.getall("X-Request-Id") for reply in replies]
    assert all(len(ids) == 1 for ids in found)
    assert len({ids[0] for ids in found}) == 12


async def test_a_known_head_is_answered_with_an_id_and_whole(agent: Agent) -> None:
    async with line_of(agent) as line:
        for text in ("one", "two", "three"):
            line.writer.write(line.request(call(text)))
            head = await line.reader.readuntil(b"\r\n\r\n")
            assert head.lower().count(b"\r\nx-request-id: ") == 1
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = json.loads(await line.reader.readexactly(length))
            assert body["result"]["content"][0]["text"] == text


async def test_a_stream_has_it_too(play: Play) -> None:
    agent = play()
    reply = await agent.call("rec.steps", {}, token="t")
    assert reply.is_stream
    assert reply.headers["X-Request-Id"]


def access(process: Running) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["logger"] == "countersign.access"]


async def logged(process: Running, path: str) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        return next((line for line in access(process) if line["http"]["path"] == path), None)

    line: dict[str, Any] = await until(found)
    return line


@pytest.mark.long
async def test_the_access_log_has_a_line_for_each_request(
    own_stack: Stack, play: Play, http: aiohttp.ClientSession, toolset: Toolset
) -> None:
    own_stack.env |= {"COUNTERSIGN_ACCESS_LOG": "1", "COUNTERSIGN_TRUSTED_PROXIES": "127.0.0.1/32"}
    assert own_stack.web
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    replies = [await agent.call("rec.echo", {"text": "secret text"}) for _ in range(3)]
    headers = {"X-Request-Id": "mine", "X-Forwarded-For": "203.0.113.7"}
    link = f"{own_stack.web_url}/sign-in/abcdefghijk/?next=/secret"
    for url in (link, f"{own_stack.web_url}/livez", f"{own_stack.agents_url}/readyz"):
        async with http.get(url, headers=headers) as response:
            await response.read()

    line = await logged(own_stack.agents, "/mcp/desk")
    facts = line["http"]
    assert line["level"] == "INFO"
    assert line["request_id"] == replies[0].headers["X-Request-Id"]
    assert (facts["method"], facts["status"], facts["client"]) == ("POST", 200, "127.0.0.1")
    assert 0 < facts["ms"] < 60_000
    assert line["message"] == f"POST /mcp/desk 200 {facts['ms']} ms, 127.0.0.1"

    async def has_all() -> bool:
        return len(access(own_stack.agents)) == 3

    await until(has_all)
    line = await logged(own_stack.web, "/sign-in/…/")
    assert (line["request_id"], line["http"]["client"]) == ("mine", "203.0.113.7")
    assert len(access(own_stack.web)) == 1
    said = own_stack.agents.text() + own_stack.web.text()
    assert "secret" not in said
    assert "abcdefghijk" not in said


@pytest.mark.long
async def test_a_line_of_the_access_log_has_the_id_of_its_trace(
    own_stack: Stack, play: Play, toolset: Toolset
) -> None:
    # Nothing takes the traces there; requests have them all the same.
    nowhere = f"http://127.0.0.1:{free_port()}"
    own_stack.env |= {"COUNTERSIGN_ACCESS_LOG": "1", "COUNTERSIGN_OTLP_URL": nowhere}
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    for text in ("first", "with a known head", "once more"):
        await agent.call("rec.echo", {"text": text})

    async def has_all() -> bool:
        return len(access(own_stack.agents)) == 3

    await until(has_all)
    traces = [line["trace_id"] for line in access(own_stack.agents)]
    assert all(re.fullmatch("[0-9a-f]{32}", trace or "") for trace in traces)
    assert len(set(traces)) == 3


@pytest.mark.long
async def test_nobody_logs_requests_unasked(
    own_stack: Stack, http: aiohttp.ClientSession, play: Play
) -> None:
    assert own_stack.agents
    await play(at_stack=own_stack).call("rec.echo", {"text": "x"})
    assert access(own_stack.agents) == []


async def test_what_is_logged_meanwhile_has_it_and_what_outlives_the_request_has_not() -> None:
    go = asyncio.Event()
    seen: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def later() -> None:
        await go.wait()
        seen.append(current_id())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        record: Any = logging.makeLogRecord({})
        IdFilter().filter(record)
        seen.append(record.request_id)
        seen.append(await sync_to_async(current_id)())
        tasks.append(asyncio.create_task(later()))
        await send({"type": "http.response.start", "status": 204, "headers": []})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/", "headers": [(b"x-request-id", b"mine")]}
    await with_request_ids(app)(scope, None, send)
    go.set()
    await tasks[0]

    assert seen == ["mine", "mine", ""]
    assert sent[0]["headers"] == [(b"x-request-id", b"mine")]
