"""The broker dies or hangs under load and comes back, or its replica is promoted: calls go on, what
an agent was told stays true, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from ssl import CERT_REQUIRED

import aiohttp
import pytest

from config.broker import BadBrokerUrl, broker, messages
from config.embedded.service import wait_until
from tests.faults.conftest import House, furnished
from tests.faults.rabbit import IS_INSTALLED, Rabbit
from tests.faults.sentinels import PASSWORD, Server, WatchedPair
from tests.faults.test_failover import Load
from tests.faults.test_kills import check, settled
from tests.gateway.agent import Agent
from tests.processes import Stack

pytestmark = pytest.mark.long

TIMES = [2, pytest.param(20, marks=pytest.mark.proof)]
BETWEEN_S = 1.0
# Longer than workers go without a look at the queue.
HANGS_S = 3.0
# Of a worker (config/children.py).
THREADS = 32
LOST = "Connection to broker lost"
# Longer than any wait for a broker: a worker that lives keeps its calls.
LEASE_S = "20"
without_rabbitmq = pytest.mark.skipif(not IS_INSTALLED, reason="needs Debian's rabbitmq-server")
log = logging.getLogger(__name__)


@pytest.fixture
def pair(folder: Path) -> Iterator[WatchedPair]:
    with WatchedPair(folder) as pair:
        yield pair


@pytest.fixture(params=["valkey", pytest.param("rabbitmq", marks=without_rabbitmq)])
def single(request: pytest.FixtureRequest, folder: Path) -> Iterator[Server | Rabbit]:
    if request.param == "rabbitmq":
        server: Server | Rabbit = Rabbit(folder / "rabbitmq")
    else:
        settings = {"requirepass": f'"{PASSWORD}"', "appendonly": "yes", "save": '""'}
        server = Server(folder / "valkey", settings=settings)
    yield server
    server.close()


def house_with(
    broker_of: dict[str, str], own_stack: Stack, urls: dict[str, str], tmp_path: Path
) -> Iterator[House]:
    yield from furnished(own_stack, urls | broker_of, tmp_path, LEASE_S)


@pytest.fixture
def house(
    own_stack: Stack, fresh_database: dict[str, str], pair: WatchedPair, tmp_path: Path
) -> Iterator[House]:
    yield from house_with({"REDIS_URL": pair.url}, own_stack, fresh_database, tmp_path)


@pytest.fixture
def house_of_one(
    own_stack: Stack, fresh_database: dict[str, str], single: Server | Rabbit, tmp_path: Path
) -> Iterator[House]:
    yield from house_with({single.setting: single.url}, own_stack, fresh_database, tmp_path)


async def under_load(house: House, times: int, fault: Callable[[], None]) -> list[str]:
    """The states of all calls afterwards; seconds until calls of workers succeeded again are
    logged."""
    house.witness.answer()
    seconds: list[float] = []
    async with Load(house) as load:
        await load.until_served(time.monotonic())
        for _ in range(times):
            await asyncio.sleep(BETWEEN_S)
            began = time.monotonic()
            await asyncio.to_thread(fault)
            await load.until_worked(time.monotonic())
            seconds.append(time.monotonic() - began)
    rows = await settled(house)

    check(house, rows, load.told)
    log.info("workers served again after %s s", ", ".join(f"{one:.2f}" for one in seconds))
    log.info("%s calls", len(load.told))
    return [row.state for row in rows]


@pytest.mark.parametrize("times", TIMES)
async def test_a_replica_is_promoted_and_no_call_is_lost(
    house: House, pair: WatchedPair, times: int
) -> None:
    def fail_over() -> None:
        assert wait_until(pair.follows, seconds=30)
        pair.fail_over()

    states = await under_load(house, times, fail_over)

    # No process died: each call has an end that is known.
    assert set(states) == {"succeeded"}
    assert len(states) > 100
    assert "Traceback" not in house.stack.agents.text()


def killed(server: Server | Rabbit) -> None:
    server.kill()
    time.sleep(BETWEEN_S)
    server.start()


def hung(server: Server | Rabbit) -> None:
    server.hang()
    time.sleep(HANGS_S)
    server.go_on()


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("fault", [killed, hung])
async def test_a_broker_comes_back_and_no_call_is_lost(
    house_of_one: House,
    single: Server | Rabbit,
    fault: Callable[[Server | Rabbit], None],
    times: int,
) -> None:
    states = await under_load(house_of_one, times, lambda: fault(single))

    assert set(states) == {"succeeded"}
    assert len(states) > 100
    assert house_of_one.stack.worker.process.poll() is None


async def test_a_worker_outlives_a_broker_that_it_had_more_messages_of_than_threads(
    house_of_one: House, single: Server | Rabbit
) -> None:
    """Those that wait for a thread are not acknowledged yet."""
    stack = house_of_one.stack
    # Few enough that it asks for more.
    numbers = range(THREADS + 8)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as http:
        agent = Agent(http, f"{stack.agents_url}/mcp/desk", house_of_one.token)
        calls = [
            asyncio.create_task(agent.call("up.later", {"nonce": str(number)}))
            for number in numbers
        ]
        await asyncio.to_thread(house_of_one.witness.wait_for, "later", THREADS)
        await asyncio.to_thread(single.kill)
        assert await asyncio.to_thread(wait_until, lambda: LOST in stack.worker.text(), seconds=30)
        await asyncio.to_thread(single.start)
        house_of_one.witness.answer()
        replies = await asyncio.gather(*calls)

    rows = await settled(house_of_one)
    check(house_of_one, rows, dict(zip(map(str, numbers), replies, strict=True)))
    assert {row.state for row in rows} == {"succeeded"}
    assert stack.worker.process.poll() is None
    assert "Unrecoverable error" not in stack.worker.text()


def test_what_is_no_address_of_sentinels_is_explained_without_its_password() -> None:
    for wrong in ("", "/", "one:x/name", "one:26379", "one/name/zero", "one/name?colour=red"):
        with pytest.raises(BadBrokerUrl, match="has not the form") as found:
            broker(f"redis+sentinel://:secret@{wrong}")
        assert "secret" not in str(found.value)


def test_another_broker_for_workers_is_told_from_that_of_pages() -> None:
    pages = broker("redis://pages/0")

    assert messages("", pages).url == "redis://pages/0"
    assert messages("rediss://workers/1", pages).url == "rediss://workers/1"
    assert messages("amqp://one:two@host//", pages) == ("amqp://one:two@host//", {}, None)
    # A certificate of another host's is none.
    encrypted = messages("amqps://one:two@host:5671/at", pages).tls
    assert encrypted == {"cert_reqs": CERT_REQUIRED, "server_hostname": "host"}
    with pytest.raises(BadBrokerUrl, match="names neither RabbitMQ") as found:
        messages("kafka://:secret@host", pages)
    assert "secret" not in str(found.value)
