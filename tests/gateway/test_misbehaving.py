"""Servers that misbehave, and what agents are told, against what was received and recorded.

All calls of a test are asked for at once: each row of the table is one call of its own. The long
form, with processes that are killed and paused meanwhile, is the fault suite's.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals import services as approvals
from approvals.models import Approval, Vote
from audit.live import check_live
from audit.models import Entry
from calls.models import Call
from calls.record.states import Executed
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import Tool, Toolset
from tests.faults.paper import read
from tests.flows.house import commands
from tests.flows.servers import Server as Started
from tests.gateway.agent import TASKS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import Stack
from tests.sealing import seal_all
from tests.upstreams.cases import REFUSED, SUCCEEDED, WAYS, Case, cases
from tests.upstreams.misbehaving import Misbehaving

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 12
STATUSES = (
    *(202, 204, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 410, 422, 429),
    *(500, 502, 503, 504),
)


@pytest.fixture
def misbehaving() -> Iterator[Misbehaving]:
    with Misbehaving() as server:
        yield server


@pytest.fixture
def desk(misbehaving: Misbehaving, toolset: Toolset, bob: User) -> Toolset:
    for way in WAYS:
        url = misbehaving.url(way)
        made = services.register(way, transport="http", url=url, owner=bob, by=bob, publish=True)
        services.add_server(toolset, made, by=bob)
        (found,) = asyncio.run(discovery.look_at([made.pk]))
        assert found.succeeded, found.summary
    Tool.objects.filter(name="do").update(timeout_s=1)
    return toolset


async def ask(agent: Agent, case: Case, tool: str = "do") -> Reply:
    return await agent.call_raw(f"{case.way}.{tool}", case.arguments)


async def ask_all(agent: Agent, every: list[Case]) -> dict[Case, Reply]:
    # On the one stream of `sse` whatever breaks off ends all calls.
    room = {way: asyncio.Semaphore(1 if way == "sse" else AT_ONCE) for way in WAYS}

    async def one(case: Case) -> tuple[Case, Reply]:
        async with room[case.way]:
            return case, await ask(agent, case)

    return dict(await asyncio.gather(*map(one, every)))


@pytest.mark.long
async def test_what_is_told_is_what_is_recorded_and_what_was_received(
    desk: Toolset, misbehaving: Misbehaving, agent: Agent, rule: AddRule
) -> None:
    await rule(Effect.ALLOW, "nothing")
    replies = await ask_all(agent, cases(STATUSES))

    wrong = []
    for case, reply in replies.items():
        wrong += await violations(case, reply, misbehaving)
    assert not wrong, "\n".join(wrong)
    assert await sync_to_async(verified)() == []


async def violations(case: Case, reply: Reply, server: Misbehaving) -> list[str]:
    call = await Call.objects.aget(arguments=case.arguments.encode())
    found = [f"{case.nonce}: {said}" for said in [*_sends(case, server, await _resent(call))]]
    if (call.state, call.executed) != case.expected:
        found.append(f"{case.nonce}: {call.state}/{call.executed}, {call.outcome}")
    if _told(reply) != (call.state, call.executed):
        found.append(f"{case.nonce}: told {reply.last}")
    return found


def _told(reply: Reply) -> tuple[str, str]:
    # An error of the server's own goes to the agent as it is.
    if "error" in reply.last:
        return REFUSED if reply.error["code"] == -32050 else ("error", "")
    if not reply.result.get("isError"):
        return SUCCEEDED
    meta = reply.result["_meta"]
    return meta["countersign/state"], meta["countersign/executed"]


def _sends(case: Case, server: Misbehaving, resent: int) -> Iterator[str]:
    receipts = server.of(case.nonce)
    if len(receipts) != 1 + resent:
        yield f"received {len(receipts)} times, and {1 + resent} sends are recorded"
    if resent != (1 if case.ended_its_session else 0):
        yield f"sent again {resent} times"
    if {receipt.arguments for receipt in receipts} != {case.arguments.encode()}:
        yield f"received {receipts}"


async def _resent(call: Call) -> int:
    return await Entry.objects.filter(call_id=call.pk, action="call.sent_again").acount()


def verified() -> list[str]:
    seal_all()
    return check_live().wrong


async def test_what_people_approved_is_sent_once_as_they_saw_it(
    desk: Toolset,
    misbehaving: Misbehaving,
    play: Play,
    rule: AddRule,
    stack: Stack,
    alice: User,
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "held")
    agent = play(capabilities=TASKS)
    every = [Case("modern", "status", status) for status in (307, 400, 404, 405, 503)]
    every += [Case("session", "status", 400), Case("session", "status", 404)]
    every += [Case("legacy", "status", 405), Case("modern", "error"), Case("modern", "reset")]
    tasks = {case: (await ask(agent, case, "held")).result["taskId"] for case in every}
    assert misbehaving.receipts == []

    await sync_to_async(approve_all)(alice)
    ended = Call.objects.filter(finished_at__isnull=False)
    await until(lambda: has_all(ended, len(every)), seconds=60)

    wrong = []
    for case, task in tasks.items():
        call = await Call.objects.aget(arguments=case.arguments.encode())
        wrong += [f"{case.nonce}: {s}" for s in _sends(case, misbehaving, await _resent(call))]
        if (call.state, call.executed) != case.expected:
            wrong.append(f"{case.nonce}: {call.state}/{call.executed}, {call.outcome}")
        if await Vote.objects.filter(approval__call=call, approve=True).acount() != 1:
            wrong.append(f"{case.nonce}: sent without its vote")
        told = (await agent.ask("tasks/get", {"taskId": task})).result
        if call.executed == Executed.REPORTED and case.do == "error":
            said = told["error"]["code"] == -32050
        else:
            said = told["result"]["_meta"]["countersign/executed"] == call.executed
        if not said:
            wrong.append(f"{case.nonce}: told {told}")
    assert not wrong, "\n".join(wrong)
    assert await sync_to_async(verified)() == []


async def has_all(ended: Any, number: int) -> bool:
    return await ended.acount() == number  # type: ignore[no-any-return]


def approve_all(by: User) -> None:
    for approval in Approval.objects.for_queue().filter(state=Approval.State.WAITING):
        digest = approval.call.call_digest
        approvals.vote(approval, by=by, approve=True, seen_digest=digest, reason="")


@pytest.mark.long
async def test_a_process_that_misbehaves_is_asked_once(
    toolset: Toolset, agent: Agent, rule: AddRule, bob: User, tmp_path: Path
) -> None:
    path = tmp_path / "received.jsonl"
    argv = [sys.executable, "-m", "tests.upstreams.misbehaving_stdio", str(path)]
    with commands([Started("pipe", argv)]):
        await sync_to_async(add_pipe)(toolset, bob)
        await Tool.objects.filter(name="do").aupdate(timeout_s=1)
        await rule(Effect.ALLOW, "nothing")
        deeds = ("answer", "twice", "error", "garbage", "another", "half", "exit", "kill", "never")
        replies = {do: await ask(agent, Case("pipe", do)) for do in deeds}

    received = read(path)
    assert [line["nonce"] for line in received] == [Case("pipe", do).nonce for do in deeds]
    assert [line["arguments"] for line in received] == [Case("pipe", d).arguments for d in deeds]
    for do, reply in replies.items():
        call = await Call.objects.aget(arguments=Case("pipe", do).arguments.encode())
        assert (call.state, call.executed) == Case("pipe", do).expected, do
        assert _told(reply) == (call.state, call.executed), do
    assert await sync_to_async(verified)() == []


def add_pipe(toolset: Toolset, by: User) -> None:
    made = services.register(
        "pipe", transport="stdio", command="pipe", owner=by, by=by, publish=True
    )
    services.add_server(toolset, made, by=by)
    (found,) = asyncio.run(discovery.look_at([made.pk]))
    assert found.succeeded, found.summary
