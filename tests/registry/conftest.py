"""A client for upstream servers, which may reach this machine and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from registry.upstream import Upstreams


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    made = Upstreams(networks=["127.0.0.0/8", "::1/128"])
    yield made
    await made.aclose()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in left if "registry/upstream" in repr(task)]
