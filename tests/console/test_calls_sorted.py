"""The list of calls sorted by time and duration, and its column of p95."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import DurationField, Value
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from calls.models import Call
from calls.record.states import State
from calls.views.usage_figures import p95_of_tools
from core.paging import SIZE, DurationOrder, paged
from registry.models import Tool
from tests.console import scenery

HERE = reverse("calls:list")


def end(agent: Agent, tool: Tool, n: int = 1) -> list[UUID]:
    found = []
    for _call in range(n):
        call_id = scenery.call(agent, tool, scenery.MAIL, State.QUEUED)
        scenery.run(call_id)
        scenery.finish(call_id, {"content": []})
        found.append(call_id)
    return found


def walk(client: Client, direction: str, **filters: str) -> list[UUID]:
    """All calls, page after page in one direction; backwards from the last page."""
    found: list[UUID] = []
    given = dict(filters)
    while True:
        page = client.get(HERE, given).context["page"]
        ids = [call.pk for call in page.rows]
        found = [*found, *ids] if direction == "next" else [*ids, *found]
        key = getattr(page, direction)
        if not key:
            return found
        given = {**filters, "beyond" if direction == "next" else "back": key}


@pytest.mark.long
@pytest.mark.parametrize(("order", "down"), [("slowest", True), ("fastest", False)])
def test_calls_are_paged_by_duration_in_both_directions(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID, order: str, down: bool
) -> None:
    end(scout, send_mail, SIZE + 3)
    ended = [call for call in Call.objects.all() if call.finished_at]
    ended.sort(key=lambda call: (call.duration_s, call.pk), reverse=down)
    expected = [call.pk for call in ended]

    # One that was never sent has no duration.
    assert held not in expected
    assert walk(as_alice, "next", order=order) == expected
    last = DurationOrder("-took").key_of(Call.objects.with_duration().get(pk=expected[-1]))
    assert walk(as_alice, "previous", order=order, back=last) == expected[:-1]


def test_calls_of_one_duration_are_paged_by_their_ids(scout: Agent, send_mail: Tool) -> None:
    ids = end(scout, send_mail, 5)
    equal = Call.objects.annotate(took=Value(timedelta(seconds=1), output_field=DurationField()))
    order, found, key = DurationOrder("-took"), [], ""
    for _page in range(3):
        page = paged(equal, order, {"beyond": key}, size=2)
        found += [call.pk for call in page.rows]
        key = page.next

    assert found == ids[::-1]
    back = paged(equal, order, {"back": f"1000000.{ids[0]}"}, size=2)
    assert [call.pk for call in back.rows] == [ids[2], ids[1]]


@pytest.mark.parametrize(
    "key", ["nonsense", "1.nonsense", f"1.{UUID(int=1)}", "9" * 40, ".", "1e9."]
)
def test_a_mistyped_key_shows_a_page(
    as_alice: Client, scout: Agent, send_mail: Tool, key: str
) -> None:
    end(scout, send_mail)

    for name in ("beyond", "back"):
        assert as_alice.get(HERE, {"order": "slowest", name: key}).status_code == 200


def heads(page: str) -> dict[str, str]:
    """The direction that each head says, by its words; "" of one that does not sort."""
    found = re.findall(r"<th scope=\"col\"([^>]*)>(.*?)</th>", page, re.S)
    said = [(words, re.search(r'aria-sort="(\w+)"', given)) for given, words in found]
    return {
        re.sub(r"<[^>]+>|[↑↓↕]", "", words).strip(): sorts[1] if sorts else ""
        for words, sorts in said
    }


def test_the_heads_say_which_columns_sort_and_how(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    end(scout, send_mail)

    page = as_alice.get(HERE).text
    assert (heads(page)["Duration"], heads(page)["Asked"]) == ("none", "descending")
    assert 'href="?order=slowest"' in page
    assert "Asked sorts the list" not in page
    page = as_alice.get(HERE, {"order": "slowest", "range": "7d"}).text
    assert (heads(page)["Duration"], heads(page)["Asked"]) == ("descending", "none")
    assert 'href="?range=7d&amp;order=fastest"' in page
    # New calls are announced only above the newest.
    assert 'hx-trigger="live:calls' not in page
    page = as_alice.get(HERE, {"order": "fastest"}).text
    assert heads(page)["Duration"] == "ascending"
    assert heads(page)["Tool"] == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "filters", [{"agent": "scout"}, {"tool": "mailer.send_mail"}, {"state": "succeeded"}]
)
def test_what_no_index_sorts_is_sorted_by_time(
    as_alice: Client, scout: Agent, send_mail: Tool, filters: dict[str, str]
) -> None:
    ids = end(scout, send_mail, 3)

    answer = as_alice.get(HERE, {"order": "slowest", **filters})

    assert [call.pk for call in answer.context["page"].rows] == ids[::-1]
    assert heads(answer.text)["Duration"] == ""
    assert "Duration only without a filter of state, agent or tool." in answer.text


def test_p95_is_of_the_tools_newest_calls_that_were_sent(
    as_alice: Client, olga: User, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    add = scenery.server("sums", olga, scenery.ADD).tools.for_catalogue().get()
    assert p95_of_tools([send_mail.pk, add.pk]) == {}
    calls = Call.objects.filter(pk__in=end(scout, send_mail, 3))

    found = p95_of_tools([send_mail.pk, add.pk])

    assert list(found) == [send_mail.pk]
    took = [call.duration_s or 0 for call in calls]
    assert min(took) <= found[send_mail.pk] <= max(took)
    text = as_alice.get(HERE).text
    assert text.count('data-label="p95 of the tool"') == 4
    assert "p95 is of the tool’s newest 200 calls." in text


@pytest.mark.long
def test_any_order_asks_little_of_the_database(
    as_alice: Client, scout: Agent, send_mail: Tool, django_assert_max_num_queries: Any
) -> None:
    end(scout, send_mail, 10)
    for order in ("", "oldest", "slowest", "fastest"):
        with django_assert_max_num_queries(12):
            as_alice.get(HERE, {"order": order})


@pytest.mark.parametrize("key", ["-took", "took"])
def test_an_index_has_the_order(scout: Agent, send_mail: Tool, key: str) -> None:
    (call_id,) = end(scout, send_mail)
    order = DurationOrder(key)
    found = Call.objects.with_duration().for_list()
    beyond = order.beyond(order.key_of(found.get(pk=call_id)))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off")
    plan = found.filter(beyond).order_by(*order.fields)[: SIZE + 1].explain()

    assert "Sort" not in re.sub("Sort Key", "", plan)
    assert re.search(r"Index Cond: \(\(finished_at - sent_at\) [<>]= ", plan)
