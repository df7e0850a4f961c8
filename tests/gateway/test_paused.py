"""A pause, and a database that went back in time, as agents, workers and people meet them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import aiohttp
import orjson
import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, transaction
from django.test import Client

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from accounts.roles import Role
from approvals import editing, services
from approvals.editing import Edit
from approvals.models import Approval, Vote
from approvals.services import DecisionRefused
from audit import origins, position, rollback
from audit.models import Checkpoint, Entry, Origin, Rollback
from audit.position import KnownPosition
from audit.services import Actor
from calls import pauses
from calls.models import Call, Pause
from calls.queue.claiming import claim, claim_next
from calls.record.states import State
from config.sweep import Sweep
from policies.models import Effect, Rule
from policies.thresholds import Threshold
from registry import services as registry
from registry.models import OwnTool, Tool, Toolset
from tests.console import scenery
from tests.database import Databases
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent
from tests.gateway.conftest import AddRule, Play
from tests.processes import Stack
from tests.sealing import seal, seal_all
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)
HOST = Actor("system", None, "root on db1")


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


@pytest.fixture
def send_mail(olga: User, scout: AgentRow) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


def end_pause(superuser: psycopg.Connection[Any]) -> None:
    """The application's role may not."""
    superuser.execute("UPDATE calls_pause SET ended_at = clock_timestamp()")


def make_a_copy(superuser: psycopg.Connection[Any]) -> None:
    """As after pg_restore: the table that holds this row is another one."""
    superuser.execute("UPDATE audit_origin SET table_oid = table_oid + 1")


def test_what_waits_does_not_start(
    scout: AgentRow, send_mail: Tool, superuser: psycopg.Connection[Any]
) -> None:
    Rule.objects.create(name="All", effect="allow")
    queued = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    assert pauses.begin("moving", by=HOST)
    assert not pauses.begin("again", by=HOST)

    assert claim_next(owner="here") is None
    assert claim(queued, owner="here") is None
    assert Call.objects.get(pk=queued).state == State.QUEUED

    end_pause(superuser)

    assert claim(queued, owner="here") is not None
    assert Entry.objects.filter(action="pause.began", actor="root on db1").exists()


def test_the_application_cannot_end_a_pause() -> None:
    pauses.begin("moving", by=HOST)

    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        pauses.end(by=HOST)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        origins.begin(2, index=0, kept=0)

    assert Pause.objects.holding().exists()


async def test_agents_are_told_to_come_again(
    play: Play,
    scout: AgentRow,
    bob: User,
    upstream: Recorder,
    superuser: psycopg.Connection[Any],
) -> None:
    agent = await anew(play, scout, bob)
    assert (await agent.call("rec.echo", {"text": "x"})).text == "x"
    await sync_to_async(pauses.begin)("moving the database", by=HOST)

    # No waiting until a process has noticed: the record that a call needs says so.
    reply = await agent.call("rec.echo", {"text": "y"})

    assert reply.result["isError"] is True
    assert "by root on db1: moving the database" in reply.text
    assert len(upstream.calls) == 1
    end_pause(superuser)


async def anew(play: Play, scout: AgentRow, bob: User) -> Agent:
    return play(token=await sync_to_async(accounts.issue_token)(scout, by=bob))


async def test_rest_answers_503(
    stack: Stack,
    http: aiohttp.ClientSession,
    play: Play,
    scout: AgentRow,
    bob: User,
) -> None:
    assert stack.web
    await sync_to_async(pauses.begin)("moving", by=HOST)
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    ask = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "x"}}
    headers = {"Authorization": f"Bearer {token}"}

    async with http.post(f"{stack.web_url}/api/calls", json=ask, headers=headers) as response:
        assert response.status == 503
        assert "Paused since" in (await response.json())["detail"]


def test_every_page_says_so(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "Nothing is sent." not in client.get("/queue/").text
    pauses.begin("moving the database", by=HOST)

    page = client.get("/queue/").text

    assert "Nothing is sent." in page
    assert "by root on db1: moving the database" in page


def test_in_a_copy_nothing_is_sent_decided_or_sealed(
    scout: AgentRow, send_mail: Tool, alice: User, superuser: psycopg.Connection[Any]
) -> None:
    Rule.objects.create(name="All", effect="allow")
    queued = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    held = scenery.call(scout, send_mail, {**scenery.MAIL, "body": "Another."}, State.HELD)
    seal_all()
    signed = Checkpoint.objects.count()
    make_a_copy(superuser)

    assert claim(queued, owner="here") is None
    approval = Approval.objects.for_queue().get(pk=held)
    for approve in (True, False):
        with pytest.raises(DecisionRefused, match="restored from a backup or copied"):
            services.vote(
                approval, by=alice, approve=approve, seen_digest=approval.call.call_digest
            )
    Call.objects.filter(pk=held).update(decide_by="2020-01-01T00:00Z")
    Approval.objects.filter(pk=held).update(decide_by="2020-01-01T00:00Z")
    Sweep()._once()
    assert seal() == 0

    assert Checkpoint.objects.count() == signed
    states = dict(Call.objects.values_list("pk", "state"))
    assert states == {queued: State.QUEUED, held: State.HELD}


async def test_in_a_copy_agents_are_refused(
    play: Play,
    scout: AgentRow,
    bob: User,
    upstream: Recorder,
    superuser: psycopg.Connection[Any],
) -> None:
    make_a_copy(superuser)
    # As a restore changes it, by another table's number.
    superuser.execute("UPDATE core_generation SET n = n + 1")

    reply = await (await anew(play, scout, bob)).call("rec.echo", {"text": "y"})

    assert "restored from a backup or copied" in reply.text
    assert upstream.calls == []


@pytest.mark.long
def test_in_a_copy_no_open_call_is_changed(
    client: Client,
    scout: AgentRow,
    send_mail: Tool,
    alice: User,
    bob: User,
    superuser: psycopg.Connection[Any],
) -> None:
    """What the declaration closes, nobody is told to have withdrawn, cancelled or changed."""
    carol = scenery.person("carol", Role.APPROVER)
    two = (Threshold(approve=2),)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=two)
    queued = scenery.call(scout, send_mail, {**scenery.MAIL, "body": "Another."}, State.QUEUED)
    approval = Approval.objects.for_queue().get(pk=held)
    digest = approval.call.call_digest
    services.vote(approval, by=alice, approve=True, seen_digest=digest)
    entries = Entry.objects.exclude(call_id=None).exclude(action="payload.viewed")
    before = entries.count()
    make_a_copy(superuser)

    client.force_login(bob)
    for call_id in (held, queued):
        page = client.post(f"/calls/{call_id}/cancel/", follow=True).text
        assert "restored from a backup or copied" in page
        assert "Nothing was changed." in page
        assert "is being cancelled" not in page
    client.force_login(alice)
    page = client.post(f"/queue/{held}/take-back/", follow=True).text
    assert "Nothing was changed." in page
    changed = Edit(digest, orjson.dumps({**scenery.MAIL, "subject": "Changed"}))
    with pytest.raises(services.Undeclared):
        editing.edit(approval, changed, by=carol)

    assert dict(Call.objects.values_list("pk", "state")) == {
        queued: State.QUEUED,
        held: State.HELD,
    }
    assert entries.count() == before
    assert Vote.objects.standing().count() == 1


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN, LEGACY[0]])
async def test_in_a_copy_agents_cancel_nothing(
    play: Play,
    scout: AgentRow,
    bob: User,
    toolset: Toolset,
    rule: AddRule,
    stack: Stack,
    http: aiohttp.ClientSession,
    superuser: psycopg.Connection[Any],
    revision: str,
) -> None:
    assert stack.web
    await sync_to_async(registry.set_own_tools)(toolset, OwnTool.values, by=None)
    await rule(Effect.ASK, "echo")
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    agent = play(token=token, capabilities=TASKS)
    task = (await agent.call("rec.echo", {"text": "x"})).result
    call_id = task["_meta"]["countersign/call"]
    superuser.execute("UPDATE audit_origin SET table_oid = table_oid + 1")

    asker = agent if revision == MODERN else play(revision, token=token)
    replies = [await asker.call("countersign.cancel_call", {"call_id": call_id})]
    if revision == MODERN:
        replies.append(await agent.ask("tasks/cancel", {"taskId": task["taskId"]}))
    for reply in replies:
        assert reply.status == 503
        assert "restored from a backup or copied" in reply.error["message"]
        assert reply.error["message"].endswith("Nothing was changed.")
        assert reply.error["data"]["call"] == call_id
    url = f"{stack.web_url}/api/calls/{call_id}/cancel"
    async with http.post(url, headers={"Authorization": f"Bearer {token}"}) as response:
        said = await response.json()
    assert (response.status, said["recorded"], said["call"]) == (503, "no", call_id)
    assert "restored from a backup or copied" in said["detail"]

    assert (await Call.objects.aget(pk=call_id)).state == State.HELD


@pytest.fixture
def remembered() -> Iterator[None]:
    """Puts back how far this host had seen the database come."""
    kept = position._path().read_bytes() if position._path().exists() else None
    yield
    position._path().unlink(missing_ok=True)
    if kept is not None:
        position._path().write_bytes(kept)


@pytest.mark.alone
def test_files_that_are_older_than_what_this_host_saw_send_nothing(
    scout: AgentRow, send_mail: Tool, remembered: None
) -> None:
    Rule.objects.create(name="All", effect="allow")
    first = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    second = scenery.call(scout, send_mail, {**scenery.MAIL, "body": "B"}, State.QUEUED)
    assert claim(first, owner="here") is not None
    seen = position.read()
    assert seen.transaction > 0
    assert not rollback.has_gone_back()
    # What the host would have seen, had it gone on for a while before its files were replaced.
    position.note(KnownPosition(seen.place, seen.transaction + 1_000_000))

    assert claim(second, owner="here") is None

    assert "this host has seen" in Rollback.objects.get().reason
    assert not origins.is_at_home()
    assert Origin.objects.count() == 1
    assert "manage.py restore --declare" in pauses.why_paused()


def test_of_another_cluster_or_origin_nothing_is_remembered(remembered: None) -> None:
    position.note(KnownPosition("another cluster/1", 10**18))

    assert not rollback.has_gone_back()


def test_a_position_only_ever_grows(remembered: None) -> None:
    position.note(KnownPosition("a/1", 5))
    position.note(KnownPosition("a/1", 3))
    assert position.read() == KnownPosition("a/1", 5)
    position.note(KnownPosition("b/1", 3))
    assert position.read() == KnownPosition("b/1", 3)
    position._path().write_bytes(b"half a")
    assert position.read() == KnownPosition()
