"""The page after sign-in: where it leads, who sees what of it, its figures, and the checklist."""

import os
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from accounts.services import create_agent
from approvals import freezes
from approvals.models import Approval
from approvals.pending import LOOKED_AT
from approvals.services import vote
from audit.services import SYSTEM
from benchmarks.pages import QUERIES_MAX
from calls.record.states import State
from calls.views import charts, range_figures, time_ranges
from calls.views.range_figures import RangeFigures
from core.ids import first_id
from notifications.models import Delivery, MailRecipient, Webhook
from notifications.services import set_mail
from policies.models import Rule
from policies.services import save_rule
from registry.models import Server, Tool, Toolset
from tests.console import scenery
from tests.publishing import publish_as_read

pytestmark = pytest.mark.django_db

OVERVIEW = "/overview/"
RANGES = list(time_ranges.RANGES)


def page(client: Client, **query: str) -> Any:
    response = client.get(OVERVIEW, query)
    assert response.status_code == 200
    return response


def flat(client: Client, **query: str) -> str:
    """The page's text without its tags."""
    main = page(client, **query).text.partition("<main")[2]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", main))


def figures(client: Client, **query: str) -> RangeFigures:
    found = page(client, **query).context["figures"]
    assert isinstance(found, RangeFigures)
    return found


def make_call(
    agent: Agent, tool: Tool, state: State, ago: timedelta = timedelta(), **changes: Any
) -> UUID:
    """A call of that state, so long ago by its id."""
    number = first_id(timezone.now() - ago).int | int.from_bytes(os.urandom(10), "big")
    first = state if state in (State.HELD, State.REFUSED, State.INVALID) else State.QUEUED
    mail = {**scenery.MAIL, "subject": str(number)}
    call = scenery.call(agent, tool, mail, first, id=UUID(int=number), **changes)
    if first == State.QUEUED:
        scenery.run(call)
        scenery.finish(call, {"content": []}, state)
    return call


# -- Where signing in leads ------------------------------------------------------------------------


def test_who_has_something_to_decide_begins_with_the_queue(as_alice: Client, held: UUID) -> None:
    assert as_alice.get("/")["Location"] == reverse("approvals:queue")


def test_others_begin_with_the_overview(client: Client, held: UUID, bob: User, vera: User) -> None:
    for person in (bob, vera):
        client.force_login(person)
        # bob approves as well, and the agent is his.
        assert client.get("/")["Location"] == OVERVIEW


def test_who_has_voted_begins_with_the_overview(as_alice: Client, alice: User, held: UUID) -> None:
    approval = Approval.objects.get(pk=held)

    vote(approval, by=alice, approve=False, seen_digest=approval.call.call_digest)

    assert as_alice.get("/")["Location"] == OVERVIEW
    assert "to approve or deny" not in flat(as_alice)


def test_a_stranger_signs_in_first_and_takes_no_post(client: Client, mallory: User) -> None:
    assert client.get("/")["Location"] == "/sign-in/?next=/"
    assert client.get(OVERVIEW)["Location"] == f"/sign-in/?next={OVERVIEW}"
    client.force_login(mallory)
    assert client.get("/")["Location"] == OVERVIEW
    assert client.get(OVERVIEW).status_code == 403
    assert client.post("/").status_code == 405


# -- What needs people -----------------------------------------------------------------------------


@pytest.mark.long
def test_each_is_told_of_what_they_may_do(
    client: Client, alice: User, bob: User, olga: User, vera: User, held: UUID, mailer: Server
) -> None:
    scenery.see(mailer, scenery.ADD)
    Server.objects.update(health=Server.Health.DOWN)
    freezes.begin(by=olga, reason="Look first.", server=mailer)
    told = {}
    for person in (alice, bob, olga, vera):
        client.force_login(person)
        told[person.username] = {need.sentence for need in page(client).context["needs"]}

    every = {"1 emergency stop in force", "1 server unreachable"}
    assert told["alice"] == {*every, "1 call to approve or deny"}
    assert told["bob"] == told["vera"] == every
    assert told["olga"] == {*every, "1 definition to review"}


@pytest.mark.long
def test_unresolved_outcomes_are_for_those_who_resolve_them(
    client: Client, olga: User, vera: User, scout: Agent, send_mail: Tool
) -> None:
    make_call(scout, send_mail, State.UNKNOWN)

    client.force_login(olga)
    assert "1 unresolved outcome" in flat(client)
    client.force_login(vera)
    assert "unresolved outcome" not in flat(client)
    assert "Pending approval" not in flat(client)


def test_nothing_to_do_is_said(client: Client, vera: User) -> None:
    client.force_login(vera)

    assert "Nothing needs you now." in flat(client)


def test_beside_what_others_decide_both_numbers_are_said(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    # On her own agent's call others decide.
    own = create_agent("alices", owner=alice, by=alice)
    make_call(own, send_mail, State.HELD)
    for _ in range(2):
        make_call(scout, send_mail, State.HELD)

    assert "2 of 3 pending calls are for you to decide" in flat(as_alice)


@pytest.mark.long
def test_of_many_the_oldest_are_looked_at(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    for _ in range(LOOKED_AT + 2):
        make_call(scout, send_mail, State.HELD)

    assert f"{LOOKED_AT}+ calls to approve or deny" in flat(as_alice)


# -- Figures ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_figures_add_up(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    ended = (State.SUCCEEDED, State.SUCCEEDED, State.TOOL_ERROR, State.REFUSED, State.INVALID)
    for state in (*ended, State.HELD):
        make_call(scout, send_mail, state)

    shown = figures(as_alice)

    expected = {"succeeded": 2, "error": 1, "stopped": 1, "invalid": 1, "live": 1}
    assert (shown.total.calls, shown.total.by_outcome) == (6, expected)
    assert sum(step.counts.calls for step in shown.steps) == 6
    assert all(sum(s.counts.by_outcome.values()) == s.counts.calls for s in shown.steps)
    assert shown.total.error_percent == pytest.approx(100 / 3)
    assert shown.durations.p95 is not None
    assert "33.3%" in flat(as_alice)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tool", "agent", "server"])
def test_who_calls_most_stands_first(
    as_alice: Client, scout: Agent, send_mail: Tool, alice: User, mailer: Server, kind: str
) -> None:
    other = Agent.objects.create(name="raven", owner=scout.owner)
    add = scenery.server("reckoner", alice, scenery.ADD).tools.get()
    for _ in range(2):
        make_call(scout, send_mail, State.SUCCEEDED)
    make_call(other, add, State.FAILED)

    tops = figures(as_alice).tops[kind]

    names = {"tool": ["mailer.send_mail", "reckoner.add"], "agent": ["scout", "raven"]}
    assert [one.name for one in tops] == names.get(kind, ["mailer", "reckoner"])
    assert [(one.calls, one.ended, one.error_percent) for one in tops] == [(2, 2, 0), (1, 1, 100)]
    assert '100% <span class="muted small">of 1 ended</span>' in as_alice.get("/overview/").text


@pytest.mark.long
def test_of_a_step_with_few_calls_all_are_looked_at(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    for state in (State.FAILED, *[State.SUCCEEDED] * 29):
        make_call(scout, send_mail, state)

    shown = figures(as_alice, range="90d")

    assert shown.tops["tool"][0].error_percent == pytest.approx(100 / 30)
    assert not shown.is_sampled


@pytest.mark.long
def test_of_a_step_with_many_calls_some_are_looked_at(
    as_alice: Client, scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_figures, "LOOKED_AT", 8)
    for _ in range(10):
        make_call(scout, send_mail, State.SUCCEEDED)

    shown = figures(as_alice)

    assert (shown.total.calls, shown.tops["agent"][0].calls) == (10, 10)
    assert "of up to 200 calls of each step" in flat(as_alice)


@pytest.mark.long
def test_they_are_compared_with_the_time_before(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    make_call(scout, send_mail, State.SUCCEEDED)
    for hours in (30, 31):
        make_call(scout, send_mail, State.SUCCEEDED, timedelta(hours=hours))

    assert figures(as_alice).change_percent == -50
    assert "▼ 50% fewer than before" in flat(as_alice)
    week = figures(as_alice, range="7d")
    assert (week.total.calls, week.change_percent) == (3, None)


@pytest.mark.long
@pytest.mark.parametrize("name", RANGES)
def test_a_bar_leads_to_its_calls(
    as_alice: Client, scout: Agent, send_mail: Tool, name: str
) -> None:
    make_call(scout, send_mail, State.SUCCEEDED)
    make_call(scout, send_mail, State.SUCCEEDED, timedelta(days=200))
    bars = [bar for bar in page(as_alice, range=name).context["chart"].bars if bar.parts]

    rows = as_alice.get(bars[-1].address).context["page"].rows

    assert len(bars) == len(rows) == 1
    assert f'href="{bars[0].address.replace("&", "&amp;")}"' in page(as_alice, range=name).text


def test_a_time_without_calls_says_so(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    make_call(scout, send_mail, State.SUCCEEDED, timedelta(days=3))

    assert "No calls in this time" in flat(as_alice)
    assert "Calls by outcome" in flat(as_alice, range="7d")


@pytest.mark.long
@pytest.mark.parametrize("name", ["", "2h", "'"])
def test_an_unknown_range_is_the_usual_one(
    as_alice: Client, scout: Agent, send_mail: Tool, name: str
) -> None:
    make_call(scout, send_mail, State.SUCCEEDED)

    assert page(as_alice, range=name).context["range"].name == "24h"


@pytest.mark.long
def test_it_asks_little(client: Client, scout: Agent, send_mail: Tool, held: UUID) -> None:
    client.force_login(scenery.person("ada", *Role))
    for state in (State.SUCCEEDED, State.TOOL_ERROR, State.UNKNOWN):
        make_call(scout, send_mail, state)
    page(client)

    for name in RANGES:
        with CaptureQueriesContext(connection) as asked:
            page(client, range=name)
        reads = [q["sql"] for q in asked if q["sql"].lstrip().startswith(("SELECT", "WITH"))]
        assert len(reads) <= QUERIES_MAX, reads


# -- The list of calls, from and until -------------------------------------------------------------


@pytest.mark.long
def test_calls_are_listed_from_one_time_until_another(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    User.objects.filter(pk=alice.pk).update(time_zone="Asia/Shanghai")
    old, new = (make_call(scout, send_mail, State.SUCCEEDED, timedelta(hours=h)) for h in (5, 0))
    between = timezone.now() - timedelta(hours=2)
    typed = f"{between.astimezone(ZoneInfo('Asia/Shanghai')):%Y-%m-%dT%H:%M}"

    def listed(**query: str) -> list[UUID]:
        return [call.pk for call in as_alice.get("/calls/", query).context["page"].rows]

    assert listed(since=typed) == [new]
    assert listed(until=typed) == [old]
    assert listed(since=between.isoformat(), until=between.isoformat()) == []
    assert listed(since="yesterday", until="9999-99-99") == [new, old]


# -- Steps of time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Europe/Brussels", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize("name", RANGES)
def test_steps_follow_each_other_to_now(name: str, zone: str) -> None:
    chosen = time_ranges.RANGES[name]
    # After a clock was put back, after it was put forward, and at midnight.
    for now in ("2026-11-01T12:31", "2026-03-29T09:00", "2026-07-01T00:00"):
        at = datetime.fromisoformat(now).replace(tzinfo=UTC)
        edges = chosen.edges(at, ZoneInfo(zone))

        assert len(edges) == chosen.count + 1
        assert edges == sorted(edges, key=datetime.timestamp)
        assert edges[-2] <= at < edges[-1]


def test_parts_of_a_bar_stand_on_each_other() -> None:
    low, high = charts.stack(1, 4, [("a", 30), ("b", 0), ("c", 10)], 40)

    assert (low.name, high.name) == ("a", "c")
    assert low.y + low.height == charts.HEIGHT
    assert high.y + high.height == low.y
    assert high.y == 0


@pytest.mark.parametrize(
    ("most", "end"), [(0, 2), (1, 2), (3, 4), (7, 8), (10, 10), (11, 20), (61, 80), (4321, 6000)]
)
def test_an_axis_ends_at_a_round_number(most: int, end: int) -> None:
    assert charts.rounded_up(most) == end


@pytest.mark.parametrize(
    ("slowest", "end"), [(0, 0), (0.0014, 0.002), (0.011, 0.02), (0.138, 0.2), (3.4, 4), (75, 80)]
)
def test_an_axis_of_times_ends_at_a_round_number(slowest: float, end: float) -> None:
    assert charts.rounded_up_time(slowest) == end


# -- The checklist ---------------------------------------------------------------------------------


def list_ticks(client: Client) -> list[str]:
    return [str(one.title) for one in page(client).context["checklist"] if one.is_done]


@pytest.mark.long
def test_a_new_installation_shows_what_is_to_be_done(client: Client, db: None) -> None:
    client.force_login(scenery.person("ada", *Role))

    text = page(client).text

    assert list_ticks(client) == []
    assert "Set up this installation" in text
    assert "<svg viewBox" not in text.partition("<main")[2].partition("Set up")[0]
    for name in ("registry:register", "registry:toolsets", "accounts:add_agent", "accounts:invite"):
        assert f'href="{reverse(name)}"' in text


@pytest.mark.long
def test_facts_tick_it(client: Client, db: None) -> None:
    ada = scenery.person("ada", *Role)
    client.force_login(ada)
    offering = scenery.server("mailer", ada, scenery.SEND, publish=False)
    Server.objects.update(health=Server.Health.OK)
    assert list_ticks(client) == ["Connect a server"]
    publish_as_read(offering, by=ada)
    agent = Agent.objects.create(name="scout", owner=ada)
    assert list_ticks(client)[1:] == ["Publish a tool"]
    tool = scenery.offered(agent, offering.tools.get())
    assert list_ticks(client)[2:] == ["Add it to a toolset", "Create an agent"]
    save_rule(Rule(name="Mails", effect="allow", server="mailer"), by=SYSTEM)
    assert list_ticks(client)[4:] == ["Cover the tools with a rule"]

    make_call(agent, tool, State.SUCCEEDED)
    assert list_ticks(client)[5:] == ["Make the first call"]
    assert "Setup: 6 of 8 done" in flat(client)
    alice = scenery.person("alice", Role.APPROVER)
    # She counts as the user who let her in.
    User.objects.filter(pk=alice.pk).update(unconfirmed_until=timezone.now() + timedelta(days=1))
    assert len(list_ticks(client)) == 6
    User.objects.filter(pk=alice.pk).update(unconfirmed_until=None)
    # An address that nobody confirmed is no receiver, nor is a webhook that is disabled.
    set_mail(ada, "ada@example.org", [])
    Webhook.objects.create(
        name="ledger", url="https://example.org", sealed_secret=b"", enabled=False
    )
    assert len(list_ticks(client)) == 7
    MailRecipient.objects.update(confirmed_at=timezone.now())
    assert list_ticks(client)[7:] == ["Get notified"]
    assert "Setup:" not in flat(client)
    MailRecipient.objects.all().delete()
    Webhook.objects.update(enabled=True)
    assert len(list_ticks(client)) == 8


def test_what_was_given_up_needs_those_who_can_send_it_again(
    client: Client, olga: User, vera: User
) -> None:
    webhook = Webhook.objects.create(name="ledger", url="https://example.org", sealed_secret=b"")
    Delivery.objects.create(
        entry_id=1, event="test", channel="webhook", webhook=webhook, state="dead"
    )

    client.force_login(olga)
    assert "1 notification given up" in flat(client)
    client.force_login(vera)
    assert "given up" not in flat(client)


def test_disabled_agents_and_removed_members_tick_nothing(client: Client, olga: User) -> None:
    client.force_login(olga)
    toolset = Toolset.objects.create(slug="office")
    toolset.agents.add(Agent.objects.create(name="scout", owner=olga, enabled=False))

    assert list_ticks(client) == []


def test_who_may_not_do_it_gets_no_link(client: Client, vera: User) -> None:
    client.force_login(vera)

    text = page(client).text.partition("<main")[2]

    assert "Needs another role" in text
    assert reverse("registry:register") not in text
