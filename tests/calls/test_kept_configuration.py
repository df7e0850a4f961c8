"""Workers keep what they judged the last calls by, and yet go by what has changed since."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Agent, User
from calls.models import Call
from calls.queue import recheck
from calls.queue.claiming import claim
from calls.record.states import State
from config.embedded.service import wait_until
from core.listen import GENERATION
from policies.models import Effect, Rule
from registry import services as registry
from registry.models import Server, ShownTool, Tool, Toolset
from tests.console import scenery
from tests.database import Databases
from tests.gateway.conftest import add_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def add(olga: User, scout: Agent) -> Tool:
    tool = scenery.offered(scout, scenery.server("calculator", olga, scenery.ADD).tools.get())
    add_rule(Effect.ALLOW, "*")
    return tool


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        yield link


def claimed(agent: Agent, tool: Tool) -> tuple[Any, str]:
    """Of a new call: what a worker would send, and why it would not."""
    call_id = scenery.call(agent, tool, {"a": 1, "b": 2}, State.QUEUED)
    found = claim(call_id, owner="worker")
    return found, Call.objects.get(pk=call_id).outcome


def forbid(agent: Agent, tool: Tool) -> None:
    add_rule(Effect.DENY, tool.name, position=1, reason="Not today.")


def ask_people(agent: Agent, tool: Tool) -> None:
    Rule.objects.update(effect=Effect.ASK)


def withdraw(agent: Agent, tool: Tool) -> None:
    registry.retire(tool, by=agent.owner)


def take_from_agent(agent: Agent, tool: Tool) -> None:
    Toolset.objects.get(agents=agent).agents.remove(agent)


def take_from_toolset(agent: Agent, tool: Tool) -> None:
    Toolset.objects.get(agents=agent).tools.remove(tool)


def pin(agent: Agent, tool: Tool) -> None:
    toolset = Toolset.objects.get(agents=agent)
    ShownTool.objects.create(toolset=toolset, tool=tool, pinned='{"a": 5}')


def disable(agent: Agent, tool: Tool) -> None:
    Agent.objects.filter(pk=agent.pk).update(enabled=False)


def join_group(agent: Agent, tool: Tool) -> None:
    """Whose rule was there before."""
    agent.owner.groups.add(Group.objects.get(name="interns"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (forbid, "Not today."),
        (ask_people, "Policy now requires approval first"),
        (withdraw, "no longer published"),
        (take_from_agent, "no longer offers the tool"),
        (take_from_toolset, "no longer offers the tool"),
        (pin, "now fixes arguments"),
        (disable, "was disabled"),
        (join_group, "No interns."),
    ],
)
def test_what_changed_since_the_last_call_counts_for_the_next(
    scout: Agent, add: Tool, change: Callable[[Agent, Tool], None], why: str
) -> None:
    interns = Group.objects.create(name="interns")
    no_interns = add_rule(Effect.DENY, "*", position=1, reason="No interns.")
    no_interns.owner_groups.add(interns)
    assert claimed(scout, add)[0] is not None
    assert claimed(scout, add)[0] is not None

    change(scout, add)

    execution_request, said = claimed(scout, add)
    assert execution_request is None
    assert why in said


def test_a_server_that_moved_is_reached_where_it_is_now(scout: Agent, add: Tool) -> None:
    assert claimed(scout, add)[0].tool.connection.url == "http://127.0.0.1:9/mcp"

    type(add.server).objects.filter(pk=add.server_id).update(url="http://127.0.0.1:10/mcp")

    assert claimed(scout, add)[0].tool.connection.url == "http://127.0.0.1:10/mcp"


def test_without_a_change_nothing_of_it_is_read_again(scout: Agent, add: Tool) -> None:
    claimed(scout, add)
    queued = scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED)

    with CaptureQueriesContext(connection) as read:
        assert claim(queued, owner="worker") is not None

    tables = ("registry_", "policies_", "accounts_user_groups", "auth_group")
    assert [q["sql"] for q in read if any(table in q["sql"] for table in tables)] == []


def test_what_was_undone_is_not_kept(scout: Agent, add: Tool) -> None:
    """A transaction that changes something sees its number, which others get for their change."""
    claimed(scout, add)
    with undone():
        forbid(scout, add)
        assert claimed(scout, add)[0] is None

    assert claimed(scout, add)[0] is not None
    with undone():
        Rule.objects.all().delete()
        assert claimed(scout, add)[0] is None
    ask_people(scout, add)
    assert "requires approval" in claimed(scout, add)[1]


def test_of_many_tools_and_agents_few_are_kept(
    scout: Agent, add: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calls.configuration.KEPT_MAX", 2)

    for _ in range(3):
        assert claimed(scout, add)[0] is not None
    assert len(recheck._kept._known) <= 2


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("auth_group", "name"),
        ("registry_tag", "name"),
        ("registry_tool", "name"),
        ("registry_tool", "server_id"),
        ("registry_server", "command"),
    ],
)
def test_what_only_the_database_can_change_counts_as_well(
    scout: Agent, add: Tool, table: str, column: str
) -> None:
    before = generation()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {column}")
    assert generation() > before


def test_a_command_of_the_host_is_read_for_each_call(
    scout: Agent, add: Tool, tmp_path: Path, settings: Any
) -> None:
    """Its file is the host's, whose changes nothing counts."""
    settings.STDIO_CATALOGUE = tmp_path / "commands.json"
    program = {"argv": ["/bin/calc"], "env": {"MODE": "old"}}
    settings.STDIO_CATALOGUE.write_text(json.dumps({"calc": program}))
    Server.objects.update(transport="stdio", url="", command="calc", argv=["/bin/calc"])
    assert claimed(scout, add)[0].tool.connection.env == {"MODE": "old"}

    settings.STDIO_CATALOGUE.write_text(json.dumps({"calc": {**program, "env": {"MODE": "new"}}}))
    assert claimed(scout, add)[0].tool.connection.env == {"MODE": "new"}

    settings.STDIO_CATALOGUE.write_text("{}")
    assert claimed(scout, add)[0] is None
    settings.STDIO_CATALOGUE.write_text(json.dumps({"calc": program}))
    assert claimed(scout, add)[0] is not None


def test_a_server_that_lost_the_last_changes_counts_them_again(scout: Agent, add: Tool) -> None:
    claimed(scout, add)
    kept = recheck._kept
    assert kept.generation is not None
    later = kept.generation._replace(began_at=kept.generation.began_at + timedelta(seconds=1))

    assert recheck._kept_at(kept.generation) is kept
    assert recheck._kept_at(later) is not kept


@pytest.mark.parametrize("change", [forbid, ask_people, take_from_agent, disable])
def test_what_changes_while_the_claim_waits_for_its_locks_counts(
    scout: Agent, add: Tool, change: Callable[[Agent, Tool], None]
) -> None:
    """Another claim of the agent holds them, for as long as that takes."""
    claimed(scout, add)
    queued = scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED)
    found: list[Any] = []
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT pg_advisory_xact_lock(71001, %s)", [scout.pk])
        claiming = threading.Thread(target=lambda: found.append(claimed_alone(queued)))
        claiming.start()
        wait_until(waits_for_a_lock, seconds=20)
        change(scout, add)
    claiming.join()

    assert found == [None]
    assert Call.objects.get(pk=queued).state == State.SUPERSEDED


def claimed_alone(call_id: UUID) -> Any:
    try:
        return claim(call_id, owner="worker")
    finally:
        connection.close()


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            " AND classid = 71001 AND database = (SELECT oid FROM pg_database"
            " WHERE datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


def test_a_token_that_is_gone_lets_nothing_be_sent(
    scout: Agent, add: Tool, superuser: psycopg.Connection[Any]
) -> None:
    """And stops no worker."""
    token = scout.tokens.create(
        public_id="gone", digest=b"x" * 32, expires_at=timezone.now() + timedelta(days=1)
    )
    queued = scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED, token_id=token.pk)
    superuser.execute("DELETE FROM accounts_agenttoken")

    assert claim(queued, owner="worker") is None
    assert "revoked or has expired" in Call.objects.get(pk=queued).outcome


def generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute(GENERATION)
        return int(cursor.fetchone()[0])
