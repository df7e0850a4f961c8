"""Automatic tools become long ones by how long they take, and short ones again."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from calls.measuring import ENOUGH, LAST
from calls.models import Call
from calls.record.states import State
from calls.tasks import measure_tools
from registry.models import Server, Tool
from registry.publishing import published_catalogue
from tests.console import scenery


@pytest.fixture
def add(olga: User) -> Tool:
    server: Server = scenery.server("calculator", olga, scenery.ADD)
    return server.tools.for_catalogue().get()


def calls_took(scout: Agent, tool: Tool, seconds: float, *, count: int = ENOUGH) -> None:
    for _ in range(count):
        call_id = scenery.call(scout, tool, {"a": 1, "b": 2}, State.QUEUED)
        scenery.run(call_id)
        scenery.finish(call_id, {"content": []})
        end = F("sent_at") + timedelta(seconds=seconds)
        Call.objects.filter(pk=call_id).update(finished_at=end)


def generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT n FROM core_generation")
        return int(cursor.fetchone()[0])


def mode(tool: Tool) -> str:
    found = published_catalogue.load().tool(tool.pk)
    assert found is not None
    return found.mode


def test_a_slow_automatic_tool_is_run_by_workers(scout: Agent, add: Tool) -> None:
    calls_took(scout, add, 6.0)
    before = generation()

    measure_tools()

    assert mode(add) == Tool.Mode.BACKGROUND
    assert generation() > before, "gateways must hear of it"


def test_a_fast_one_stays_and_nobody_reads_anew(scout: Agent, add: Tool) -> None:
    calls_took(scout, add, 4.9)
    before = generation()

    measure_tools()

    add.refresh_from_db()
    assert (add.p95_ms, add.measured, mode(add)) == (4900, ENOUGH, Tool.Mode.AUTO)
    assert generation() == before


def test_a_few_calls_say_nothing(scout: Agent, add: Tool) -> None:
    calls_took(scout, add, 60.0, count=ENOUGH - 1)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


def test_it_goes_back_only_when_it_is_clearly_short(scout: Agent, add: Tool) -> None:
    Tool.objects.update(is_long=True)
    calls_took(scout, add, 4.5)
    measure_tools()
    assert mode(add) == Tool.Mode.BACKGROUND

    Call.objects.update(finished_at=F("sent_at") + timedelta(seconds=1))
    measure_tools()
    assert mode(add) == Tool.Mode.AUTO


def test_one_slow_call_of_many_does_not_make_a_long_tool(scout: Agent, add: Tool) -> None:
    calls_took(scout, add, 60.0, count=1)
    calls_took(scout, add, 0.1, count=30)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


def test_only_its_last_calls_count(
    scout: Agent, add: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LAST > ENOUGH
    monkeypatch.setattr("calls.measuring.LAST", ENOUGH)
    calls_took(scout, add, 60.0)
    calls_took(scout, add, 0.1)

    measure_tools()

    assert mode(add) == Tool.Mode.AUTO


@pytest.mark.parametrize("chosen", [Tool.Mode.INLINE, Tool.Mode.BACKGROUND])
def test_what_an_operator_chose_counts_more(scout: Agent, add: Tool, chosen: str) -> None:
    Tool.objects.update(mode=chosen)
    calls_took(scout, add, 6.0)

    measure_tools()

    assert mode(add) == chosen


def test_the_tools_page_says_which_and_why(
    client: Client, scout: Agent, add: Tool, olga: User
) -> None:
    client.force_login(olga)
    address = reverse("registry:tool", args=[add.exposed_name])
    assert "It was not measured yet." in client.get(address).text

    calls_took(scout, add, 6.0)
    measure_tools()

    text = client.get(address).text
    assert "long, run by a worker" in text
    assert f"p95 of its last {ENOUGH} calls: 6 s" in text
