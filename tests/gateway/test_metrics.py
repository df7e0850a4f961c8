"""/metrics of console and agents' endpoint: what it says is what the record says."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import aiohttp
import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from calls import tally
from calls.models import Call, MoveTally
from calls.record.states import TERMINAL, State
from calls.tally import advance, count_all
from config.embedded.service import wait_until
from config.record_figures import GAUGES
from policies.models import Effect
from registry.models import Toolset
from tests.faults.proxy import DatabaseWire
from tests.gateway.agent import Agent
from tests.gateway.conftest import PING, Play, add_rule, decide, until
from tests.processes import ROOT, Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)
DOCUMENT = ROOT / "docs" / "en" / "guides" / "monitor.md"
TOKEN = "scrape-" + "x" * 20
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
# Longer than our own deadline for what is asked of the database, and less than Prometheus waits.
PROMPTLY_S = 6.0
EVER_MOVED = """
    SELECT to_state, count(*) FROM audit_entryrow
    WHERE seq IS NOT NULL AND to_state <> from_state GROUP BY to_state
"""
ENTRY = "INSERT INTO audit_entryrow (action, seq, to_state) VALUES (1, 1, %s)"

Samples = dict[tuple[str, str], float]
NewRule = Callable[[Effect, str], Awaitable[None]]


@pytest.fixture(scope="module")
def wire() -> Iterator[DatabaseWire]:
    with DatabaseWire(os.environ["DATABASE_URL"]) as wire:
        yield wire


@pytest.fixture
def database(wire: DatabaseWire) -> Iterator[DatabaseWire]:
    yield wire
    wire.let_go()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, wire: DatabaseWire) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("metrics")) as stack:
        stack.env |= {"COUNTERSIGN_METRICS_TOKEN": TOKEN, "COUNTERSIGN_DATABASE_SILENT_S": "0.5"}
        assert stack.worker
        stack.env |= {"DATABASE_URL": wire.url}
        yield stack


@pytest.fixture
def agent(play: Play, house: Stack, toolset: Toolset) -> Agent:
    assert house.web
    assert house.agents
    return play(at_stack=house)


@pytest.fixture
def new_rule(agent: Agent, scout: AgentRow, bob: User) -> NewRule:
    """By its return the endpoint goes by it: who does not know this token looks again."""

    async def add(effect: Effect, tool: str) -> None:
        await sync_to_async(add_rule)(effect, tool)
        token = await sync_to_async(accounts.issue_token)(scout, by=bob)
        await Agent(agent.http, agent.url, token).post(PING)

    return add


async def scrape(http: aiohttp.ClientSession, url: str) -> Samples:
    """By name and the one label's value."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "10.1.2.3:8000"}
    async with http.get(f"{url}/metrics", headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        families = list(text_string_to_metric_families(await response.text()))
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@sync_to_async
def moves() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(EVER_MOVED)
        return dict(cursor.fetchall())


def counted(samples: Samples) -> dict[str, float]:
    """The states that any call came to; others are told as zero."""
    found = {state: n for (name, state), n in samples.items() if name == "countersign_calls_total"}
    assert not found or found.keys() == set(State)
    return {state: n for state, n in found.items() if n}


@pytest.mark.long
async def test_counters_equal_the_record_after_calls_of_every_kind(
    agent: Agent, house: Stack, http: aiohttp.ClientSession, alice: User, new_rule: NewRule
) -> None:
    await new_rule(Effect.DENY, "erase")
    await new_rule(Effect.ASK, "say")
    before = await scrape(http, house.agents_url)
    await asyncio.gather(*(agent.call("rec.echo", {"text": str(n)}) for n in range(7)))
    for tool, arguments in (("echo", {"text": 5}), ("nothing", {}), ("erase", {}), ("fail", {})):
        await agent.call(f"rec.{tool}", arguments)
    for approve in (True, False):
        call_id = (await agent.call("rec.say", {})).call_id
        await decide(alice, approve=approve, reason="seen")
        await until(Call.objects.filter(pk=call_id, finished_at__isnull=False).aexists)

    console = await scrape(http, house.web_url)

    ever = await moves()
    assert counted(console) == ever
    assert {State.REFUSED, State.HELD, State.DENIED, State.SUCCEEDED} <= ever.keys()
    # Who ended stays so, unless somebody resolves it.
    for state in set(TERMINAL) - {State.UNKNOWN}:
        assert ever.get(state, 0) == await Call.objects.filter(state=state).acount()

    after = await scrape(http, house.agents_url)
    sends = grown(before, after, "countersign_stage_seconds_count", "send")
    by_the_worker = 1
    assert sends + by_the_worker == ever["running"] == 9
    assert grown(before, after, "countersign_stage_seconds_count", "submit") == 13
    # Each stage has each of its counts in one bucket.
    for stage in ("submit", "decide", "open", "send", "outcome"):
        bucket = after["countersign_stage_seconds_bucket", f"+Inf,{stage}"]
        assert bucket == after["countersign_stage_seconds_count", stage]


def grown(before: Samples, after: Samples, name: str, label: str) -> float:
    return after[name, label] - before.get((name, label), 0)


@pytest.mark.long
async def test_what_waits_is_told_with_its_age(
    agent: Agent, house: Stack, http: aiohttp.ClientSession, alice: User, new_rule: NewRule
) -> None:
    await new_rule(Effect.ASK, "echo")
    await agent.call("rec.echo", {"text": "waits"})

    samples = await scrape(http, house.web_url)
    assert samples["countersign_approvals_pending", ""] == 1
    assert 0 < samples["countersign_approvals_oldest_seconds", ""] < 60
    assert samples["countersign_calls_open", "held"] == 1
    assert samples["countersign_record_unsealed", ""] > 0
    assert samples["countersign_record_unsealed_seconds", ""] > 0
    await decide(alice, approve=False)

    samples = await scrape(http, house.web_url)
    assert samples["countersign_approvals_pending", ""] == 0
    assert samples["countersign_approvals_oldest_seconds", ""] == 0
    assert samples["countersign_calls_open", "held"] == 0


# Their processes answer at ports of their own (tests/config/test_probes.py).
OF_PROBES = {"countersign_sealing_failures_total", "countersign_process_ready"}


async def test_each_figure_is_documented(
    agent: Agent, house: Stack, http: aiohttp.ClientSession
) -> None:
    await agent.call("rec.echo", {"text": "once"})
    async with http.post(f"{house.agents_url}/mcp/desk", data=b"{}"):
        pass
    ours: set[str] = set()
    for url in (house.web_url, house.agents_url):
        for name in names(await scrape(http, url)):
            if name.startswith("countersign_"):
                ours.add(re.sub(r"_(bucket|count|sum|created)$", "", name))
    assert ours | OF_PROBES == set(re.findall(r"`(countersign_\w+)", DOCUMENT.read_text()))


async def test_it_tells_of_processes_pools_and_servers(
    agent: Agent, house: Stack, http: aiohttp.ClientSession
) -> None:
    await agent.call("rec.echo", {"text": "once"})
    console = await scrape(http, house.web_url)
    endpoint = await scrape(http, house.agents_url)

    assert set(names(console)) >= {gauge.name for gauge in GAUGES}
    assert console["countersign_record_readable", ""] == 1
    assert console["countersign_process", "web"] == 1
    assert endpoint["countersign_process", "agents"] == 1
    # Other tests' processes may be among them.
    assert console["countersign_processes", "worker"] >= 1
    assert console["countersign_processes", "agents"] >= 1
    assert console["countersign_servers", "ok"] == 1
    assert console["countersign_database_connections", ""] > 3
    assert endpoint["countersign_pool_connections", "calls"] >= 1
    assert endpoint["countersign_pool_waiting", "calls"] == 0
    assert endpoint["countersign_upstream_connections", ""] >= 1
    assert endpoint["countersign_snapshot_age_seconds", ""] < 1
    assert endpoint["countersign_journal_waiting", ""] == 0
    assert endpoint["countersign_journal_commit_seconds_count", ""] > 0
    assert endpoint["countersign_listeners_deaf", ""] == 0
    assert endpoint["countersign_spool_replies", ""] == 0
    assert endpoint["process_resident_memory_bytes", ""] > 10_000_000
    # The installation is told of once: whoever adds up what processes say counts nothing twice.
    assert not set(names(endpoint)) & {gauge.name for gauge in GAUGES}


@pytest.mark.long
async def test_a_process_with_several_loops_is_one_and_one_that_ended_is_none(
    own_stack: Stack, http: aiohttp.ClientSession, play: Play, toolset: Toolset, scout_token: str
) -> None:
    own_stack.env["COUNTERSIGN_METRICS_TOKEN"] = TOKEN
    assert own_stack.web
    headers = {"Authorization": f"Bearer {scout_token}"}
    # By REST and by MCP: the console runs calls on two loops.
    async with http.get(f"{own_stack.web_url}/api/tools", headers=headers) as response:
        assert response.status == 200
    console = Agent(http, f"{own_stack.web_url}/mcp/desk", scout_token)
    assert (await console.call("rec.echo", {"text": "x"})).text == "x"
    before = await scrape(http, own_stack.web_url)
    assert own_stack.worker
    assert own_stack.agents

    async def grown_by(n: int, role: str) -> bool:
        now = await scrape(http, own_stack.web_url)
        known = before["countersign_processes", role]
        return now["countersign_processes", role] - known == n

    for role in ("worker", "agents"):
        await until(partial(grown_by, 1, role))
    connected = await listeners("web")
    assert len(set(connected)) < len(connected)
    own_stack.end_worker()
    own_stack.agents.kill()
    for role in ("worker", "agents"):
        await until(partial(grown_by, 0, role))


@sync_to_async
def listeners(role: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE %s",
            [f"countersign listener {role} %"],
        )
        return [name for (name,) in cursor.fetchall()]


@pytest.mark.long
async def test_counters_equal_the_record_also_after_a_process_was_killed(
    own_stack: Stack, http: aiohttp.ClientSession, play: Play, upstream: Recorder
) -> None:
    own_stack.env["COUNTERSIGN_METRICS_TOKEN"] = TOKEN
    assert own_stack.web
    agent = play(at_stack=own_stack) if own_stack.agents else play()
    calls = [asyncio.create_task(agent.call("rec.echo", {"text": str(n)})) for n in range(40)]
    calls += [asyncio.create_task(agent.call("rec.hang", {})) for _ in range(4)]
    await until(Call.objects.filter(state=State.RUNNING, tool_name="rec.hang").aexists)
    own_stack.agents.kill()
    await asyncio.gather(*calls, return_exceptions=True)
    own_stack.agents.start()
    assert (await agent.call("rec.echo", {"text": "after"})).text == "after"

    assert counted(await scrape(http, own_stack.web_url)) == await moves()


def names(samples: Samples) -> Iterator[str]:
    return (name for name, _ in samples)


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}"],
)
async def test_without_the_token_nothing_is_told(
    authorization: str | None, house: Stack, http: aiohttp.ClientSession
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for process, url in ((house.web, house.web_url), (house.agents, house.agents_url)):
        assert process
        async with http.get(f"{url}/metrics", headers=headers) as response:
            assert (response.status, await response.read()) == (401, b"")
            assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_an_agents_token_or_a_session_opens_nothing(
    house: Stack, http: aiohttp.ClientSession, scout_token: str, toolset: Toolset
) -> None:
    assert house.agents
    headers = {"Authorization": f"Bearer {scout_token}"}
    async with http.get(f"{house.agents_url}/metrics", headers=headers) as response:
        assert response.status == 401


async def test_it_is_only_read(house: Stack, http: aiohttp.ClientSession) -> None:
    assert house.web
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with http.post(f"{house.web_url}/metrics", headers=headers) as response:
        assert response.status == 405


async def test_without_a_token_in_the_settings_there_is_none(
    stack: Stack, http: aiohttp.ClientSession
) -> None:
    headers = {"Authorization": "Bearer "}
    for process, url in ((stack.web, stack.web_url), (stack.agents, stack.agents_url)):
        assert process
        async with http.get(f"{url}/metrics", headers=headers) as response:
            assert response.status == 404


async def test_openmetrics_is_spoken_to_who_asks_for_it(
    house: Stack, http: aiohttp.ClientSession
) -> None:
    assert house.web
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": OPENMETRICS}
    async with http.get(f"{house.web_url}/metrics", headers=headers) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        assert list(read_openmetrics(await response.text()))


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian: prometheus)")
async def test_prometheus_finds_nothing_to_say_of_names_and_kinds(
    agent: Agent, house: Stack, http: aiohttp.ClientSession
) -> None:
    await agent.call("rec.echo", {"text": "once"})
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for url in (house.web_url, house.agents_url):
        async with http.get(f"{url}/metrics", headers=headers) as response:
            told = await response.read()
        check = subprocess.run(
            ["promtool", "check", "metrics"], input=told, capture_output=True, check=False
        )
        assert (check.returncode, check.stdout + check.stderr) == (0, b"")


@pytest.mark.long
async def test_a_hung_database_is_said_in_time_and_what_is_in_memory_is_told(
    agent: Agent, house: Stack, http: aiohttp.ClientSession, database: DatabaseWire
) -> None:
    await agent.call("rec.echo", {"text": "before"})
    assert (await scrape(http, house.web_url))["countersign_record_readable", ""] == 1
    database.hold()

    async with asyncio.timeout(PROMPTLY_S):
        console = await scrape(http, house.web_url)
        endpoint = await scrape(http, house.agents_url)

    assert console["countersign_record_readable", ""] == 0
    assert not counted(console)
    assert console["countersign_process", "web"] == 1
    assert endpoint["countersign_stage_seconds_count", "send"] >= 1
    database.let_go()

    async def is_back() -> bool:
        return (await scrape(http, house.web_url))["countersign_record_readable", ""] == 1

    await until(is_back)


async def test_refused_requests_are_counted(house: Stack, http: aiohttp.ClientSession) -> None:
    assert house.agents
    before = await scrape(http, house.agents_url)
    for _ in range(3):
        async with http.post(f"{house.agents_url}/mcp/desk", data=b"{}") as response:
            assert response.status == 401
    after = await scrape(http, house.agents_url)
    assert grown(before, after, "countersign_requests_refused_total", "401") == 3


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "DAWDLING_S", 0.0)
    monkeypatch.setattr(tally, "STEP", 3)
    monkeypatch.setattr(tally, "STEPS", 10)


def advance_to(counts: dict[str, int]) -> None:
    """Others' transactions on the same server hold it up as long as they are open."""

    def is_counted() -> bool:
        advance()
        found: dict[str, int] = MoveTally.objects.get().counts
        return found == counts

    wait_until(is_counted, seconds=60)


@pytest.mark.alone
async def test_the_sum_is_the_same_wherever_counting_stands(
    agent: Agent, house: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    for n in range(4):
        await agent.call("rec.echo", {"text": str(n)})
        assert await sync_to_async(count_all)() == await moves()
        await sync_to_async(advance)()
        assert await sync_to_async(count_all)() == await moves()

    await sync_to_async(advance_to)(await moves())
    assert (await MoveTally.objects.aget()).reached > 0


@pytest.mark.alone
def test_what_an_open_transaction_may_still_write_is_not_passed_by(
    monkeypatch: pytest.MonkeyPatch, toolset: Toolset
) -> None:
    settle(monkeypatch)
    with psycopg.connect(os.environ["DATABASE_URL"]) as slow:
        # It has drawn an id, and commits late.
        slow.execute(ENTRY, ["running"])
        enter("refused")
        for _ in range(3):
            advance()
        assert MoveTally.objects.get().counts == {}

    advance_to({"running": 1, "refused": 1})
    assert count_all() == {"running": 1, "refused": 1}


@pytest.mark.alone
def test_after_a_restore_into_a_younger_cluster_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, toolset: Toolset
) -> None:
    settle(monkeypatch)
    enter("refused")
    advance()
    MoveTally.objects.update(horizon=2**60)

    advance_to({"refused": 1})


def enter(state: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(ENTRY, [state])
