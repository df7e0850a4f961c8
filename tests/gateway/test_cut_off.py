"""After the database cut all connections, the next use of each works, and no cancel is lost."""

import asyncio
import os
from collections.abc import Iterator

import psycopg
import pytest
from asgiref.sync import sync_to_async

from calls.models import Call
from calls.record.states import State
from tests.database import Databases
from tests.gateway.agent import Agent
from tests.gateway.conftest import Play, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "about to be cut"


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection]:
    with databases.superuser(os.environ) as link:
        yield link


@pytest.fixture
def gateway(own_stack: Stack) -> Iterator[Stack]:
    """Its connections can be told from the test's own."""
    own_stack.env |= {"PGAPPNAME": NAME}
    assert own_stack.agents
    yield own_stack
    own_stack.agents.stop()


def cut(superuser: psycopg.Connection) -> int:
    """As a restart or a failover of PostgreSQL does; how many of Django's there were."""
    row = superuser.execute(
        "SELECT count(pg_terminate_backend(pid)) FILTER (WHERE application_name = %s)"
        " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND (application_name = %s OR application_name LIKE 'countersign%%')",
        [NAME, NAME],
    ).fetchone()
    assert row is not None
    return int(row[0])


async def leave(agent: Agent, upstream: Recorder, *, before: int) -> asyncio.Task[object]:
    """Ask for what never ends, as a client that will go away."""
    asking: asyncio.Task[object] = asyncio.create_task(agent.call("rec.hang", {"n": before}))

    async def runs() -> bool:
        return len(upstream.calls) > before

    await until(runs)
    return asking


async def test_a_client_that_leaves_after_the_database_cut_us_off_has_cancelled(
    play: Play, gateway: Stack, superuser: psycopg.Connection, upstream: Recorder
) -> None:
    agent = play(at_stack=gateway)
    # Three who leave at once fill the pool with connections that wait there for the next.
    for asking in [await leave(agent, upstream, before=n) for n in range(3)]:
        asking.cancel()

    async def all_ended() -> bool:
        return not await Call.objects.filter(state=State.RUNNING).aexists()

    await until(all_ended)
    asking = await leave(agent, upstream, before=3)
    assert await sync_to_async(cut)(superuser) > 0

    asking.cancel()

    last = await the_last(State.CANCELLED, State.UNKNOWN)
    assert last.cancel_asked_by == "scout"
    assert last.unheard_at is not None


async def the_last(*states: State) -> Call:
    async def found() -> Call | None:
        last = await Call.objects.order_by("-asked_at").afirst()
        return last if last and last.state in states and last.unheard_at else None

    call: Call = await until(found)
    return call
