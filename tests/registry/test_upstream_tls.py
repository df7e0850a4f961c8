"""HTTPS: the server proves its name before it is told anything, and the connection is kept."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core import connection_pool
from registry.upstream import NotSent, UpstreamCall, Upstreams
from tests.upstreams.local import local_upstreams
from tests.upstreams.papers import Authority
from tests.upstreams.raw import MODERN, RawServer, Request, modern, reply, respond, serving


async def answer(request: Request, out: asyncio.StreamWriter) -> None:
    respond(out, reply(request))


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that this process trusts, as docs/en/guides/install.md says how."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    # What a process trusts is read once.
    connection_pool._tls.cache_clear()
    async with local_upstreams() as made:
        yield made
    connection_pool._tls.cache_clear()


async def call(upstreams: Upstreams, server: RawServer, host: str = "localhost") -> bytes:
    target = server.target(url=f"https://{host}:{server.port}/mcp", revision=MODERN)
    return (await upstreams.call_tool(target, UpstreamCall("t", b"{}"))).result


async def test_one_connection_serves_call_after_call(
    authority: Authority, upstreams: Upstreams
) -> None:
    async with serving(modern(answer), tls=authority.server("localhost")) as server:
        for _ in range(3):
            assert await call(upstreams, server) == b'{"content":[]}'
        assert server.connections == 1
        assert len(server.sent("tools/call")) == 3


async def test_a_large_reply_comes_whole_and_a_closed_connection_is_not_used_again(
    authority: Authority, upstreams: Upstreams
) -> None:
    size = 3 * 1024 * 1024

    async def large(request: Request, out: asyncio.StreamWriter) -> None:
        respond(out, reply(request, '{"content":[],"more":"%s"}' % ("x" * size)))
        await out.drain()
        out.close()

    async with serving(modern(large), tls=authority.server("localhost")) as server:
        for _ in range(2):
            assert len(await call(upstreams, server)) > size
        assert server.connections == 2


@pytest.mark.parametrize("name", ["elsewhere.example", "127.0.0.1.example"])
async def test_a_certificate_of_another_name_is_refused(
    name: str, authority: Authority, upstreams: Upstreams
) -> None:
    async with serving(modern(answer), tls=authority.server(name)) as server:
        with pytest.raises(NotSent, match=r"certificate of localhost is not valid.*mismatch"):
            await call(upstreams, server)
        with pytest.raises(NotSent, match=r"certificate of 127\.0\.0\.1 is not valid.*mismatch"):
            await call(upstreams, server, "127.0.0.1")
        assert server.requests == []


async def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    (tmp_path / "unknown").mkdir()
    other = Authority(tmp_path / "unknown")
    async with serving(modern(answer), tls=other.server("localhost")) as server:
        with pytest.raises(NotSent, match="not valid: its signature is not valid"):
            await call(upstreams, server)
        assert server.requests == []


async def test_what_is_no_tls_at_all_is_not_asked(
    authority: Authority, upstreams: Upstreams
) -> None:
    async def plain(reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        out.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(NotSent, match="localhost could not be reached"):
            await call(upstreams, RawServer(modern(answer), port))
