"""Automatic tools become long ones by how long they take, and short ones again."""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from calls import measuring
from calls.measuring import ENOUGH, LAST
from calls.models import Call
from calls.record.states import State
from calls.tasks import measure_tools
from calls.views import duration_estimate
from core.ids import uuid7_floor
from registry.models import Server, Tool
from registry.publishing import published_catalogue
from tests.console import scenery
from tests.database import Databases

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def add(olga: User) -> Tool:
    server: Server = scenery.server("calculator", olga, scenery.ADD)
    return server.tools.for_catalogue().get()


Took = Callable[..., None]


@pytest.fixture
def took(scout: Agent, add: Tool, databases: Databases) -> Took:
    """Calls of `add` that lasted so long. When one ended is written once: only a superuser can
    change it."""

    def took(seconds: float, *, count: int = ENOUGH, task: str = "") -> None:
        # Never queued: a worker that still listens to this database would take some.
        calls = [scenery.call(scout, add, {"a": 1, "b": 2}, State.RUNNING) for _ in range(count)]
        for call_id in calls:
            scenery.finish(call_id, {"content": []})
        lasted = """
            UPDATE calls_call SET finished_at = sent_at + %s, upstream_task = %s WHERE id = ANY(%s)
        """
        with databases.superuser(os.environ) as past:
            past.execute("SET session_replication_role = replica")
            past.execute(lasted, [timedelta(seconds=seconds), task, calls])

    return took


def generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT n FROM core_generation")
        return int(cursor.fetchone()[0])


def mode(tool: Tool) -> str:
    found = published_catalogue.load().tool(tool.pk)
    assert found is not None
    return found.mode


def test_a_slow_automatic_tool_is_run_by_workers(add: Tool, took: Took) -> None:
    took(6.0)
    before = generation()

    measure_tools()

    assert mode(add) == Tool.Mode.BACKGROUND
    assert generation() > before, "gateways must hear of it"


def test_how_long_a_task_took_is_what_its_server_says(add: Tool, took: Took) -> None:
    took(60.0, task='{"id":"task-1","modern":true,"poll_s":5,"token":0,"took_s":1.5}')

    measure_tools()

    assert mode(add) != Tool.Mode.BACKGROUND
    took(2.5, task='{"id":"task-1","modern":true,"poll_s":5}')
    last = Call.objects.filter(tool=add).latest("id")
    assert duration_estimate.seconds(last) == pytest.approx(1.5)


def test_a_fast_one_stays_and_nobody_reads_anew(add: Tool, took: Took) -> None:
    took(4.9)
    before = generation()

    measure_tools()

    add.refresh_from_db()
    assert (add.p95_ms, add.measured, mode(add)) == (4900, ENOUGH, Tool.Mode.AUTO)
    assert generation() == before


def test_a_few_calls_say_nothing(add: Tool, took: Took) -> None:
    took(60.0, count=ENOUGH - 1)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


@pytest.mark.long
def test_it_goes_back_only_when_it_is_clearly_short(add: Tool, took: Took) -> None:
    Tool.objects.update(is_long=True)
    took(4.5)
    measure_tools()
    assert mode(add) == Tool.Mode.BACKGROUND

    took(1.0, count=LAST)
    measure_tools()
    assert mode(add) == Tool.Mode.AUTO


def test_one_slow_call_of_many_does_not_make_a_long_tool(add: Tool, took: Took) -> None:
    took(60.0, count=1)
    took(0.1, count=30)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


def test_only_its_last_calls_count(add: Tool, took: Took, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LAST > ENOUGH
    monkeypatch.setattr("calls.measuring.LAST", ENOUGH)
    took(60.0)
    took(0.1)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


@pytest.mark.parametrize("chosen", [Tool.Mode.INLINE, Tool.Mode.BACKGROUND])
def test_what_an_operator_chose_counts_more(add: Tool, took: Took, chosen: str) -> None:
    Tool.objects.update(mode=chosen)
    took(6.0)

    measure_tools()

    assert mode(add) == chosen


def test_the_tools_page_says_which_and_why(
    client: Client, add: Tool, took: Took, olga: User
) -> None:
    client.force_login(olga)
    address = reverse("registry:tool", args=[add.exposed_name])
    assert "It was not measured yet." in client.get(address).text

    took(6.0)
    measure_tools()

    text = client.get(address).text
    assert "long, run by a worker" in text
    assert f"p95 of its last {ENOUGH} calls: 6 s" in text


def test_what_was_called_before_this_process_began_is_measured_too(
    scout: Agent, add: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour_ago = uuid7_floor(timezone.now() - timedelta(hours=1))
    call = scenery.call(scout, add, {"a": 1, "b": 2}, State.RUNNING, id=hour_ago)
    scenery.finish(call, {"content": []})
    used = Tool.objects.filter(used_on__isnull=False)
    monkeypatch.setattr(measuring._Looked, "far", True)
    measure_tools()
    assert not used.exists()

    monkeypatch.setattr(measuring._Looked, "far", False)
    measure_tools()

    assert used.get() == add
