"""Whatever agents do in whatever order, at whichever gateway: never more than the bound."""

import asyncio
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts import services as accounts
from accounts.models import Agent, User
from audit.services import SYSTEM
from calls.models import Call
from calls.record import reservations
from calls.record.reservations import RESERVE, Reservation
from calls.record.states import Executed, State
from calls.record.transitions import Outcome, ended, move_now
from calls.running.runtime import CallRuntime
from core.errors import RecordUnavailable
from core.ids import uuid7
from gateway.process.limit_shares import LimitShares, WantedUses, share_of
from gateway.process.runtime import Runtime
from policies.limits.compiled import CounterKey, TakenUses, compiled
from policies.limits.services import forget_use, remove_limit
from policies.models import Limit, LimitCounter, LimitUse
from registry import services as registry
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.gateway.agent import LEGACY, MODERN, Reply
from tests.gateway.conftest import Play
from tests.gateway.limiting import add_limit, ask, states
from tests.processes import ROOT, Stack
from tests.upstreams.recorder import Recorder

COSTS = st.decimals(min_value="0", max_value="7", places=2)
ENDS = st.sampled_from([Executed.YES, Executed.NO, Executed.UNKNOWN])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), COSTS, st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 20), ENDS),
    ),
    min_size=5,
    max_size=25,
)


def reserve(limit: Limit, call_id: UUID, cost: Decimal) -> bool:
    use = Reservation(
        limit.pk, "", "all", None, None, "cost", "month", str(limit.amount), str(cost), 0, "", False
    )
    with connection.cursor() as cursor:
        # As the journal writes it: a line of one statement.
        cursor.execute(RESERVE.sql, RESERVE.of_one(reservations.line(call_id, (use,), None)))
        return bool(cursor.fetchone()[1])


def end(call_id: UUID, executed: Executed) -> None:
    state = State.UNKNOWN if executed == Executed.UNKNOWN else State.FAILED
    assert move_now(ended(call_id, 1, Outcome(state, "It ended.", executed), SYSTEM))


@pytest.mark.long
@pytest.mark.django_db
def test_a_budget_is_never_exceeded_and_never_lost(olga: User, scout: Agent) -> None:
    tool = scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())
    examples = [0]

    @settings(
        max_examples=20, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )
    @given(steps=STEPS)
    def hostile(steps: list[tuple[Any, ...]]) -> None:
        examples[0] += 1
        budget = add_limit("cost", 20, cost=1, period="month", name=f"Budget {examples[0]}")
        spent: dict[UUID, Decimal] = {}
        running: list[UUID] = []
        for what, one, other in steps:
            if what == "end":
                if running:
                    call_id = running.pop(one % len(running))
                    end(call_id, other)
                    if other == Executed.NO:
                        del spent[call_id]
                continue
            call_id = uuid7()
            fits = sum(spent.values()) + one <= 20
            assert reserve(budget, call_id, one) == fits
            if fits and other:
                opened(scout, tool, call_id)
                spent[call_id] = one
                running.append(call_id)
            # Or the commit opened nothing: what it reserved is nobody's.
        assert reserve(budget, uuid7(), Decimal(20) - sum(spent.values()))
        assert not reserve(budget, uuid7(), Decimal(20) - sum(spent.values()) + Decimal("0.01"))

    hostile()


@pytest.mark.django_db(transaction=True)
def test_who_removes_a_limit_and_who_reserves_wait_for_each_other_in_one_order(
    transactional_db: None,
) -> None:
    budget = add_limit("cost", 20, cost=1, period="month", per=[])
    assert reserve(budget, uuid7(), Decimal(1))

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        # As calls_reserve does: first the counter, then what was reserved of it.
        LimitCounter.objects.select_for_update().get()
        removing = others.submit(remove, budget)
        wait_for_a_lock()
        LimitUse.objects.all().delete()
    removing.result(timeout=20)

    assert not LimitCounter.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_reservation_that_waited_while_its_counter_was_removed_counts_anew(
    transactional_db: None,
) -> None:
    budget = add_limit("cost", 20, cost=1, period="month", per=[])
    assert reserve(budget, uuid7(), Decimal(1))

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        forget_use(budget)
        reserving = others.submit(reserve_apart, budget, Decimal(3))
        wait_for_a_lock()

    assert reserving.result(timeout=20)
    assert LimitCounter.objects.get().spent == 3


def remove(limit: Limit) -> None:
    try:
        remove_limit(limit, by=SYSTEM)
    finally:
        connection.close()


def reserve_apart(limit: Limit, cost: Decimal) -> bool:
    try:
        return reserve(limit, uuid7(), cost)
    finally:
        connection.close()


def wait_for_a_lock() -> None:
    """Until another connection waits for one of this."""
    until = time.monotonic() + 20
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(
                "SELECT EXISTS (SELECT FROM pg_locks l WHERE NOT l.granted"
                " AND pg_backend_pid() = ANY (pg_blocking_pids(l.pid)))"
            )
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waits")


def opened(agent: Agent, tool: Tool, call_id: UUID) -> None:
    scenery.call(
        agent, tool, scenery.MAIL, State.RUNNING, id=call_id, reserves=True, lease_owner="a gateway"
    )


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_rate_is_never_exceeded_by_more_than_its_bound(transactional_db: None) -> None:
    examples = [0]

    @settings(
        max_examples=12, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )
    @given(
        per_minute=st.integers(60, 60_000),
        burst=st.integers(1, 60),
        asked=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=20, max_size=90),
        at_once=st.integers(1, 30),
    )
    def hostile(per_minute: int, burst: int, asked: list[tuple[int, int]], at_once: int) -> None:
        examples[0] += 1
        made = add_limit(
            "bytes", per_minute, burst=burst, period="minute", per=[], name=f"Rate {examples[0]}"
        )
        limit = compiled(made)
        granted, took_s = asyncio.run(taken(limit, asked, at_once))
        bound = burst + took_s / limit.emission_s + 3 * share_of(limit)
        assert granted <= bound
        # Nor is it withheld: what is asked for first, and fits, is granted.
        assert granted > 0 or all(uses > burst for _gateway, uses in asked)

    hostile()


async def one_of(shares: LimitShares, limit: Any, key: CounterKey, uses: int) -> float | TakenUses:
    (taken,) = await shares.take([WantedUses(limit, key, uses)])
    return taken


async def taken(limit: Any, asked: list[tuple[int, int]], at_once: int) -> tuple[int, float]:
    """By three gateways; what was granted, and in how many seconds."""
    pools = [CallRuntime().pool for _ in range(3)]
    key = CounterKey("", "all", None, None)
    for pool in pools:
        await pool.open()
    gateways = [LimitShares(pool, asyncio.create_task) for pool in pools]
    began, granted = time.monotonic(), 0
    for start in range(0, len(asked), at_once):
        some = asked[start : start + at_once]
        taken = await asyncio.gather(*(one_of(gateways[g], limit, key, uses) for g, uses in some))
        granted += sum(one.uses for one in taken if isinstance(one, TakenUses))
    took_s = time.monotonic() - began
    for pool in pools:
        await pool.close()
    return granted, took_s


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
async def test_a_share_is_filled_up_while_it_is_spent_and_never_beyond_one(db: None) -> None:
    made = await sync_to_async(add_limit)(amount=60_000, period="minute", burst=1_000, per=[])
    limit = await sync_to_async(compiled)(made)
    rates = ((limit, CounterKey("", "all", None, None)),)
    pool = CallRuntime().pool
    await pool.open()
    shares = LimitShares(pool, asyncio.create_task)
    first = await one_of(shares, *rates[0], 1)
    assert isinstance(first, TakenUses)

    began, spent, waited = time.monotonic(), 1, 0
    while time.monotonic() < began + 1.5:
        await asyncio.sleep(0.01)
        if shares.spend(rates, 0) is None:
            # A machine so busy that the share ended before it could be filled up.
            waited += 1
            await one_of(shares, *rates[0], 1)
        spent += 1
        (share,) = shares._shares.values()
        assert share.left <= share_of(limit)
    await pool.close()

    assert waited <= 1
    counter = await LimitCounter.objects.aget()
    assert counter.tat is not None
    assert spent > 50


# The whole proof is 60.
SECONDS = float(os.environ.get("LIMIT_SECONDS", "15"))
AGENTS = 20
# Of one count in the middle of the load: longer than a gateway waits for it.
STALL = "LOCK TABLE policies_limitcounter; SELECT pg_sleep(3)"


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("amount", "burst", "share", "stalls"),
    # So few that a busy machine reaches them too, each asked for; and many, in shares.
    [(120, 5, 1, False), (120, 5, 1, True), (3000, 40, 4, False)],
)
async def test_two_gateways_and_twenty_agents_for_a_while(
    toolset: Toolset,
    bob: User,
    upstream: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    *,
    amount: int,
    burst: int,
    share: int,
    stalls: bool,
) -> None:
    """One count for all: whichever of twenty agents asks at whichever of two gateways."""
    made = await sync_to_async(add_limit)(amount=amount, period="minute", burst=burst, per=[])
    limit = await sync_to_async(compiled)(made)
    assert share_of(limit) == share
    in_memory = []
    spend = LimitShares.spend

    def count_spent(self: LimitShares, *given: Any) -> Any:
        taken = spend(self, *given)
        in_memory.append(bool(taken))
        return taken

    monkeypatch.setattr(LimitShares, "spend", count_spent)
    tokens = [await sync_to_async(token_of)(f"agent-{n}", bob) for n in range(AGENTS)]
    async with AsyncExitStack() as stack:
        gateways = Runtime(), Runtime()
        for runtime in gateways:
            stack.push_async_callback(runtime.aclose)
            await runtime.start()
        began = time.monotonic()

        async def client(n: int) -> list[Any]:
            results: list[Any] = []
            asked = 0
            while time.monotonic() < began + SECONDS:
                asked += 1
                # A database that answers too late: then nothing was sent.
                with suppress(RecordUnavailable):
                    results.append(await ask(gateways[n % 2], tokens[n], f"{n} {asked}"))
                if stalls and (n, asked) == (0, 3):
                    await asyncio.to_thread(execute_apart, STALL)
            return results

        found = [one for some in await asyncio.gather(*map(client, range(AGENTS))) for one in some]
        took_s = time.monotonic() - began

    assert states(found)["limit"] > 0
    # What the agents were told, and what came to the server.
    assert 0 < states(found)["succeeded"] <= len(upstream.calls)
    assert len(upstream.calls) <= burst + took_s / limit.emission_s + 2 * share
    # Uses of a share of more than one are spent without PostgreSQL.
    assert any(in_memory) == (share > 1)


def token_of(name: str, owner: User) -> str:
    return accounts.issue_token(accounts.create_agent(name, owner=owner, by=owner), by=owner)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
async def test_twenty_agents_at_two_gateway_processes_for_a_while(
    play: Play, own_stack: Stack, toolset: Toolset, bob: User, upstream: Recorder
) -> None:
    """As agents meet it: by HTTP, in each revision, at processes of their own."""
    made = await sync_to_async(add_limit)(amount=600, period="minute", burst=20, per=["server"])
    limit = await sync_to_async(compiled)(made)
    assert share_of(limit) == 2
    assert await sync_to_async(lambda: own_stack.agents)()
    tokens = [
        await sync_to_async(assigned)(toolset, await sync_to_async(token_of)(f"agent-{n}", bob))
        for n in range(AGENTS)
    ]
    revisions = (MODERN, *LEGACY)
    url = f"{own_stack.agents_url}/mcp/desk"
    began = time.monotonic()

    async def client(n: int) -> list[Reply]:
        agent = play(revisions[n % len(revisions)], token=tokens[n])
        agent.url = url if n % 2 else agent.url
        replies: list[Reply] = []
        while time.monotonic() < began + SECONDS:
            replies.append(await agent.call("rec.echo", {"text": f"{n} {len(replies)}"}))
        return replies

    found = [one for some in await asyncio.gather(*map(client, range(AGENTS))) for one in some]
    took_s = time.monotonic() - began

    # A process that could not ask for its share in time sent nothing.
    answered = [one.result for one in found if one.status == 200]
    blocked = [one for one in answered if one.get("isError")]
    assert {one["_meta"]["countersign/refusal"]["kind"] for one in blocked} == {"limit"}
    assert limit.burst < len(answered) - len(blocked) <= len(upstream.calls)
    assert len(upstream.calls) <= limit.burst + took_s / limit.emission_s + 2 * 2


def assigned(toolset: Toolset, token: str) -> str:
    agent = Agent.objects.latest("pk")
    registry.assign(toolset, agent, by=agent.owner)
    return token


def execute_apart(sql: str) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    finally:
        connection.close()


# The whole proof is 200.
ROUNDS = int(os.environ.get("LIMIT_ROUNDS", "30"))


def moments(seed: int) -> list[float]:
    """Of half of the rounds: after so many seconds a gateway is killed."""
    chance = random.Random(seed)
    return [chance.uniform(0.05, 0.4) for _ in range(ROUNDS // 2)]


def spend_and_kill(token: str, seconds: list[float]) -> None:
    """Each time a gateway that spends, and is killed amid that."""
    argv = [sys.executable, "-m", "tests.gateway.spender", token]
    with subprocess.Popen(argv, cwd=ROOT, stdin=-1, stdout=-1, text=True) as zygote:
        assert zygote.stdin
        assert zygote.stdout
        for one in seconds:
            zygote.stdin.write(f"{one}\n")
            zygote.stdin.flush()
            assert zygote.stdout.readline() == "killed\n"
        zygote.stdin.close()
    assert zygote.returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("is_reached", [False, True])
@pytest.mark.django_db(transaction=True)
def test_a_budget_is_exact_whatever_is_killed(
    toolset: Toolset, scout_token: str, upstream: Recorder, is_reached: bool
) -> None:
    most = (2 if is_reached else 10_000) * ROUNDS
    budget = add_limit("cost", most, cost=1, period="month", per=[])
    with ThreadPoolExecutor(2) as pool:
        for killed in [
            pool.submit(spend_and_kill, scout_token, moments(seed)) for seed in (21, 22)
        ]:
            killed.result()
    refused = Call.objects.filter(state=State.REFUSED)
    if is_reached:
        # On a busy machine a call is blocked, and that written down, in longer than such moments.
        spend_and_kill(scout_token, [5.0])

    kept = Call.objects.exclude(state=State.REFUSED).exclude(executed=Executed.NO)
    room = most - kept.count()
    assert room >= 0
    last = uuid7()
    assert not reserve(budget, uuid7(), Decimal(room + 1))
    assert reserve(budget, last, Decimal(room))
    assert LimitCounter.objects.get().spent == most
    known = set(Call.objects.values_list("pk", flat=True))
    assert {use.call_id for use in LimitUse.objects.all()} - known == {last}
    assert len(upstream.calls) <= kept.count()
    assert refused.exists() is is_reached
    if is_reached:
        return
    # They were killed amid calls, and not only between them.
    assert Call.objects.filter(state=State.RUNNING).count() >= ROUNDS / 4
