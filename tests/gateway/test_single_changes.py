"""Between approval and sending anything may change: then nothing is sent, and everybody reads why.

SINGLE_CHANGES says how many the long test draws.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Group
from django.test import Client, override_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from approvals import services as approvals
from approvals.models import Approval
from audit.services import SYSTEM
from calls.content.answers import Answer, load_status
from calls.models import Call
from calls.queue.worker import work
from calls.record.states import State
from calls.record.transitions import Amending, amend_now
from calls.running import runtime
from calls.services import cancel, end_the_late
from core import loop
from gateway.protocol import replies
from policies.models import Effect
from policies.thresholds import parse
from registry import services
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.database import Cleaner
from tests.gateway.changes import CHANGES, STATES, World, put_back
from tests.gateway.conftest import add_rule
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

SOME, ALL = 40, int(os.environ.get("SINGLE_CHANGES", "1000"))
ONE = {"approve": 1, "from": "group:payments"}
START = {"name": "start", "description": "Begins.", "inputSchema": {"type": "object"}}
TEXTS = st.text(max_size=20).filter(lambda text: "\0" not in text)


NOBODY_LISTENS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


@pytest.fixture
def as_worker(stack: Stack) -> Iterator[None]:
    """This process is the only one that starts calls, and tells no pages of it."""
    running = stack.started.get("worker")
    if running:
        running.kill()
    with override_settings(CHANNEL_LAYERS=NOBODY_LISTENS):
        yield
    if made := runtime.started():
        loop.run(made.aclose())
        runtime._background = None
    if running:
        running.start()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A file that a program leaves when it is started."""
    return tmp_path / "started"


@pytest.fixture
def commands(tmp_path: Path, marks: Path) -> Iterator[Path]:
    """The host's catalogue of commands: one program."""
    catalogue = tmp_path / "commands.json"
    argv = [sys.executable, "-c", f"import pathlib; pathlib.Path({str(marks)!r}).touch()"]
    catalogue.write_text(json.dumps({"program": {"argv": argv}}))
    with override_settings(STDIO_CATALOGUE=catalogue):
        yield catalogue


@pytest.fixture
def world(
    toolset: Toolset,
    upstream: Recorder,
    scout: Agent,
    scout_token: str,
    alice: User,
    bob: User,
    commands: Path,
    cleaner: Cleaner,
    as_worker: None,
) -> World:
    bob.groups.add(Group.objects.get(name=Role.OPERATOR))
    Group.objects.create(name="payments").user_set.add(alice)
    ada = scenery.person("ada", Role.ADMINISTRATOR, Role.OPERATOR)
    for name, group in (("dan", "payments"), ("erin", "payments"), ("fay", "board")):
        member = scenery.person(name, Role.APPROVER)
        member.groups.add(Group.objects.get_or_create(name=group)[0])
    program = services.register(
        "local", transport="stdio", command="program", owner=bob, by=bob, publish=True
    )
    scenery.see(program, START)
    services.publish_all(program, by=bob)
    services.add_server(toolset, program, by=bob)
    rule = add_rule(Effect.ASK, "*")
    rule.thresholds = [ONE]
    rule.save()
    return World(
        ada=ada,
        alice=alice,
        bob=bob,
        scout=scout,
        token=AgentToken.objects.get(),
        toolset=toolset,
        rule=rule,
        url=upstream.url,
        commands=commands,
        past=cleaner.connection,
    )


def approved(world: World, name: str, text: str, *, edited: bool) -> Call:
    """By alice, and perhaps with other arguments than were asked for."""
    tool = Tool.objects.select_related("server", "latest").get(name=name)
    bound = {"toolset": "desk", "token_id": world.token.pk, "rule_id": world.rule.pk}
    asked = parse(world.rule.thresholds)
    pk = scenery.call(
        world.scout, tool, {"text": text}, State.HELD, thresholds=asked, rule="ask *", **bound
    )
    if edited:
        edit(world, pk)
    approval = Approval.objects.select_related("call__agent").get(pk=pk)
    digest = approval.call.call_digest
    approvals.vote(approval, by=world.alice, approve=True, seen_digest=digest)
    return the_call(pk)


def edit(world: World, pk: UUID) -> None:
    call = Call.objects.get(pk=pk)
    other = call.to_send.replace(b'{"text":', b'{"edited":true,"text":')
    by = world.ada.actor
    assert amend_now(Amending(pk, call.call_digest, call.statement, other, person=by))


def the_call(pk: UUID) -> Call:
    return Call.objects.select_related("amendment", "definition").get(pk=pk)


def turn() -> None:
    """What a worker does every second, and when it is rung for."""
    work()
    end_the_late()


def told(call: Call) -> str:
    """What its agent gets."""

    pool = runtime.background().pool

    async def answer() -> Answer | None:
        async with pool.connection() as link:
            return (await load_status(link, [call.pk]))[call.pk].answer

    found = loop.run(answer())
    if found is None:
        return ""
    result = orjson.loads(replies.result_of(found, modern=True))
    assert result["isError"]
    assert result["_meta"]["countersign/executed"] == "no"
    return str(result["content"][0]["text"])


# Beside others a thousand of them take longer than a test may.
@pytest.mark.long
@pytest.mark.parametrize(
    "cases", [SOME, pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.alone], id="all")]
)
def test_no_single_change_after_approval_is_sent(
    world: World, upstream: Recorder, marks: Path, client: Client, cases: int
) -> None:
    client.force_login(world.ada)
    drawn: Counter[str] = Counter()
    read: set[tuple[str, str]] = set()

    def check(call: Call, name: str, said: str) -> None:
        turn()
        assert upstream.received == []
        assert not marks.exists()
        call = the_call(call.pk)
        assert call.state == STATES.get(name, State.SUPERSEDED)
        if call.state == State.QUEUED:
            # It stands still, which every page says.
            assert said in client.get(f"/calls/{call.pk}/").text
            return
        assert call.executed == "no"
        assert said in call.outcome
        assert call.outcome in told(call)
        if (name, said) not in read:
            assert call.outcome in page(client, call)
            read.add((name, said))

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.sampled_from(sorted(CHANGES)),
        st.sampled_from(["echo", "echo", "start"]),
        TEXTS,
        st.booleans(),
        st.data(),
    )
    def one(name: str, tool: str, text: str, edited: bool, data: st.DataObject) -> None:
        call = approved(world, tool, text, edited=edited)
        making = CHANGES[name](world, call, data.draw)
        try:
            said = next(making)
        except BaseException:
            # Hypothesis drew no further: a call without its change would be sent.
            assert cancel(call.pk, by=SYSTEM)
            raise
        try:
            check(call, name, said)
        finally:
            put_back(making)
        drawn[name] += 1

    one()

    assert drawn.total() >= cases
    assert set(drawn) == set(CHANGES) or cases < 1000


def page(client: Client, call: Call) -> str:
    return unescape(client.get(f"/calls/{call.pk}/").text)


@pytest.mark.long
@pytest.mark.parametrize("edited", [False, True])
def test_without_a_change_it_is_sent(
    world: World, upstream: Recorder, marks: Path, edited: bool
) -> None:
    mail, program = (approved(world, name, "x", edited=edited) for name in ("echo", "start"))

    turn()

    assert [one.arguments for one in upstream.calls] == [mail.to_send]
    assert the_call(mail.pk).state == State.SUCCEEDED
    assert marks.exists()
    assert the_call(program.pk).state != State.SUPERSEDED
