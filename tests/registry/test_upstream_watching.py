"""Hearing of changed resources from servers of earlier revisions, made with the SDK."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from registry.upstream import Target, UpstreamError, Upstreams
from tests.registry.test_upstream_real import ROOT, free_port, running
from tests.upstreams.local import local_upstreams

ARGV = [sys.executable, "-m", "tests.upstreams.watched"]
URI = "clock://now"


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with running([*ARGV, str(port)], tmp_path_factory.mktemp("watched") / "log", port) as url:
        yield url


async def heard(upstreams: Upstreams, target: Target, *, most: int = 3) -> list[str]:
    """What is told, until there is enough of it; the stream is left then."""
    found: list[str] = []
    enough = asyncio.Event()

    def hear(uri: str) -> None:
        found.append(uri)
        if len(found) == most:
            enough.set()

    watching = asyncio.create_task(upstreams.watch(target, [URI], hear))
    ends = {watching, asyncio.create_task(enough.wait())}
    async with asyncio.timeout(20):
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in ends:
        task.cancel()
    for said in await asyncio.gather(*ends, return_exceptions=True):
        if isinstance(said, UpstreamError | ExceptionGroup):
            raise said
    return found[:most]


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-03-26"])
async def test_http_tells_beside_a_session(
    upstreams: Upstreams, address: str, revision: str
) -> None:
    target = Target(key="watched", transport="http", url=address, revision=revision)

    assert await heard(upstreams, target) == [URI] * 3


async def test_a_process_tells_on_its_output(upstreams: Upstreams, tmp_path: Path) -> None:
    target = Target(
        key="watched",
        transport="stdio",
        argv=tuple(ARGV),
        env={"PYTHONPATH": str(ROOT)},
        revision="2025-11-25",
    )

    assert await heard(upstreams, target) == [URI] * 3


async def test_who_does_not_know_the_uri_says_so(upstreams: Upstreams, address: str) -> None:
    """Of 2026-07-28 the SDK's server has no such stream unless it is given one."""
    target = Target(key="watched", transport="http", url=address, revision="2026-07-28")

    with pytest.raises((UpstreamError, ExceptionGroup)):
        await heard(upstreams, target, most=1)
