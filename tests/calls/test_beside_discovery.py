"""Servers are discovered in the same worker that runs calls, and calls notice nothing of it."""

import os
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent, User
from calls.record.states import State
from config.celery import app
from registry import services
from registry.models import Server, Toolset
from tests.calls import rows
from tests.calls.flaky import Flaky
from tests.gateway.conftest import the_call, until
from tests.processes import Stack

SERVERS = 40
DEAF_AFTER_S = 10
BLOCKED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%registry_server%'
"""


@pytest.fixture
async def slow_servers(upstream: Flaky, bob: User) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """More servers than a worker has threads; what they answer cannot be written down."""
    made = [await sync_to_async(_register)(number, upstream, bob) for number in range(SERVERS)]
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        await connection.execute(
            "SELECT 1 FROM registry_server WHERE id = ANY(%s) FOR UPDATE", [[s.pk for s in made]]
        )
        # Statistics are read once a transaction: of another connection.
        async with await psycopg.AsyncConnection.connect(
            os.environ["DATABASE_URL"], autocommit=True
        ) as other:
            yield other
        await connection.rollback()


def _register(number: int, upstream: Flaky, owner: User) -> Server:
    return services.register(
        f"slow-{number}", transport="http", url=upstream.url, owner=owner, by=owner
    )


@pytest.mark.long
@pytest.mark.parametrize("task", ["registry.discover_server", "registry.discover_all"])
async def test_a_call_runs_at_once_while_slow_servers_are_discovered(
    toolset: Toolset,
    own_stack: Stack,
    scout: Agent,
    bob: User,
    slow_servers: psycopg.AsyncConnection[Any],
    task: str,
) -> None:
    own_stack.env |= {"COUNTERSIGN_DEAF_AFTER_S": str(DEAF_AFTER_S)}
    worker = own_stack.worker
    each = Server.objects.filter(slug__startswith="slow-").values_list("pk", flat=True)
    wanted = [[pk] async for pk in each] if task == "registry.discover_server" else [[]]
    for arguments in wanted:
        await sync_to_async(app.send_task)(task, arguments)

    async def blocked() -> bool:
        ((count,),) = await (await slow_servers.execute(BLOCKED)).fetchall()
        return bool(count >= 2)

    await until(blocked, seconds=30)

    (call_id,) = await sync_to_async(rows.queue)(scout, bob, "echo")
    await sync_to_async(app.send_task)("calls.run", [str(call_id)])

    async def done() -> bool:
        return (await the_call()).state == State.SUCCEEDED

    await until(done, seconds=3 * DEAF_AFTER_S)
    # It still waits for the servers' rows, and for nothing else.
    assert await blocked()
    assert worker.process.poll() is None
    assert "it starts anew" not in worker.text()
