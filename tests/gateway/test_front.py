"""Requests that come again with the same head, on one connection, in whatever pieces."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import AgentToken, User
from calls.models import Call
from tests.gateway.agent import BOTH, META, MODERN, Agent
from tests.gateway.conftest import until
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


def call(text: str, **more: Any) -> bytes:
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    params = {"name": "rec.echo", "arguments": {"text": text}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params, **more}
    return json.dumps(message, separators=(",", ":")).encode()


class Line:
    """One connection of an agent, written to byte by byte."""

    def __init__(
        self, agent: Agent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.agent, self.reader, self.writer = agent, reader, writer

    def request(self, body: bytes, *, token: str = "", **fields: str) -> bytes:
        lines = {
            "Host": "127.0.0.1",
            "Authorization": f"Bearer {token or self.agent.token}",
            "Content-Type": "application/json",
            "Accept": BOTH,
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "rec.echo",
            "Content-Length": str(len(body)),
        } | {name.replace("_", "-"): value for name, value in fields.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST /mcp/desk HTTP/1.1\r\n{head}\r\n".encode() + body

    async def answer(self) -> tuple[int, Any]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines if line)
        body = await self.reader.readexactly(int(fields["content-length"]))
        return int(status.split()[1]), json.loads(body)

    async def ask(self, *pieces: bytes) -> tuple[int, Any]:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)
        return await self.answer()


@asynccontextmanager
async def line_of(agent: Agent) -> AsyncIterator[Line]:
    host, port = agent.url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Line(agent, reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


def said(reply: tuple[int, Any]) -> str:
    status, message = reply
    assert status == 200, message
    assert message["id"] == message["result"]["content"][0]["text"]
    return str(message["id"])


async def test_each_request_is_answered_with_its_own(agent: Agent, upstream: Recorder) -> None:
    texts = ["a", "a much longer one", "b", "ß", "x" * 5_000, "c"]
    async with line_of(agent) as line:
        for text in texts:
            assert said(await line.ask(line.request(call(text)))) == text

    assert await Call.objects.acount() == len(texts)


async def test_pieces_and_pipelines_are_understood_too(agent: Agent, upstream: Recorder) -> None:
    async with line_of(agent) as line:
        for text in ("first", "again"):
            assert said(await line.ask(line.request(call(text)))) == text
        whole = line.request(call("parts"))
        for at in (5, 60, whole.index(b"\r\n\r\n") + 4, len(whole) - 3):
            assert said(await line.ask(whole[:at], whole[at:])) == "parts"
        line.writer.write(line.request(call("one")) + line.request(call("two")))
        line.writer.write(line.request(call("three")))
        assert [said(await line.answer()) for _ in range(3)] == ["one", "two", "three"]
        assert said(await line.ask(line.request(call("last")))) == "last"


async def test_a_head_that_is_known_opens_nothing_else(agent: Agent, upstream: Recorder) -> None:
    async with line_of(agent) as line:
        for text in ("first", "again"):
            assert said(await line.ask(line.request(call(text)))) == text

        other = await line.ask(line.request(call("x"), Mcp_Name="rec.other"))
        ambiguous = await line.ask(line.request(call("y").replace(b'"id"', b'"id":1,"id"')))
        nonsense = await line.ask(line.request(b"{" * 20))

        assert [status for status, _ in (other, ambiguous, nonsense)] == [400, 400, 400]
        assert said(await line.ask(line.request(call("still")))) == "still"
    async with line_of(agent) as line:
        twice = line.request(call("z")).replace(b"Host:", b"Content-Length: 3\r\nHost:")
        line.writer.write(twice)
        assert (await line.reader.read()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("shown", ["wrong", "revoked"])
async def test_a_token_is_looked_at_each_time(
    agent: Agent, upstream: Recorder, bob: User, shown: str
) -> None:
    async with line_of(agent) as line:
        for text in ("first", "again"):
            assert said(await line.ask(line.request(call(text)))) == text
        if shown == "wrong":
            wrong = agent.token[:-1] + ("0" if agent.token[-1] != "0" else "1")
            status, _ = await line.ask(line.request(call("x"), token=wrong))
            assert status == 401
            return
        token = await AgentToken.objects.aget()
        await sync_to_async(accounts.revoke_token)(token, by=bob)

    async def refused() -> bool:
        async with line_of(agent) as line:
            status, _ = await line.ask(line.request(call("x")))
            return status == 401

    await until(refused, seconds=2)


async def test_who_asks_to_close_is_closed(agent: Agent, upstream: Recorder) -> None:
    for _ in range(2):
        async with line_of(agent) as line:
            request = line.request(call("bye"), Connection="close")
            assert said(await line.ask(request)) == "bye"
            assert await line.reader.read() == b""
