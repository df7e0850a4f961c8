"""Unusual use by an agent: counted from the record, with reasons, and never a reason to allow."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import agent_addresses
from accounts.agent_addresses import note_address
from accounts.models import Agent, AgentAddress, User
from accounts.roles import Role
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import State
from policies import decide, lookback, unusual, unusual_use
from policies.conditions import BadCondition, compiled
from policies.decide import Subject
from policies.drafts import read_template
from policies.models import Effect, Rule, UnusualUse
from policies.simulate import suppose
from policies.unusual import Unusual
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


def call(scout: Agent, send: Tool, state: State, n: int = 0) -> Any:
    return scenery.call(scout, send, {**scenery.MAIL, "subject": str(n)}, state)


def found(agent: Agent, tool: str = "mailer.send_mail", **about: Any) -> Unusual:
    rows = lookback.fetch(unusual.SQL, unusual.parameters(agent.pk, tool, **about))
    assert rows is not None
    return unusual.of_rows(rows)


def test_an_agent_without_calls_is_not_unusual(scout: Agent) -> None:
    assert list(found(scout).reasons()) == []
    assert found(scout).facts() == {
        "unusual.hour": False,
        "unusual.rate": 0.0,
        "unusual.refusals": 0,
        "unusual.first_use": True,
        "unusual.address": False,
    }


def test_refusals_in_a_row_are_counted_until_a_call_is_sent(scout: Agent, send: Tool) -> None:
    call(scout, send, State.REFUSED)
    call(scout, send, State.RUNNING)
    assert found(scout).refusals == 0
    for n in range(5):
        last = call(scout, send, State.REFUSED, n)

    assert found(scout).refusals == 5
    assert found(scout, but=last).refusals == 4
    assert list(found(scout).reasons()) == ["Its last 5 calls were blocked or denied."]
    assert not found(scout).is_first_use


def test_the_record_is_counted_by_hours_and_days(scout: Agent, send: Tool) -> None:
    for n in range(3):
        call(scout, send, State.QUEUED, n)

    later = found(scout, at=datetime.now(UTC) + timedelta(days=1))

    assert (later.days, later.at_hour, later.lately, later.before) == (1, 3, 0, 3)
    assert later.hours_before == 1
    now = found(scout)
    assert (now.days, now.at_hour, now.lately, now.before) == (0, 0, 3, 0)


@pytest.mark.parametrize(
    ("counts", "is_new"),
    [
        ({"days": 7}, True),
        ({"days": 6}, False),
        ({"days": 7, "at_hour": 1}, False),
    ],
)
def test_a_new_hour_takes_a_week_to_know(counts: dict[str, Any], is_new: bool) -> None:
    known = Unusual(hour=3, lately=1, **counts)

    assert known.is_new_hour == is_new
    assert list(known.reasons()) == (
        ["It never called between 03:00 and 04:00 UTC on 7 earlier days."] if is_new else []
    )


def test_ten_times_as_many_calls_are_told() -> None:
    usual: dict[str, Any] = {"before": 48, "hours_before": 24}

    assert Unusual(lately=19, **usual).rate == 9.5
    assert list(Unusual(lately=19, **usual).reasons()) == []
    assert list(Unusual(lately=20, **usual).reasons()) == [
        "20 calls in the last hour are 10 times as many as usual."
    ]
    assert Unusual(lately=900, before=23, hours_before=23).rate == 0.0


def test_more_entries_than_are_looked_at_are_unusual_themselves(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        call(scout, send, State.QUEUED, n)
    assert not found(scout).is_flood
    monkeypatch.setattr(unusual, "SQL", unusual.SQL.replace("5000", "4"))

    flood = found(scout)

    assert flood.is_flood
    assert flood.facts()["unusual.rate"] >= 1_000_000
    assert flood.facts()["unusual.hour"] is True
    # An agent that is always so busy would be unusual for ever.
    assert list(flood.reasons()) == []
    # Days that are long enough to know what is usual.
    later = found(scout, at=datetime.now(UTC) + timedelta(days=8))
    assert (later.is_flood, later.rate, later.is_new_hour) == (False, 0.0, False)


def test_the_template_holds_a_flood(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = read_template("unusual", "", "UTC").rule()
    rule.full_clean()
    rule.save()
    Rule.objects.create(name="the rest", effect=Effect.ALLOW)
    call(scout, send, State.RUNNING)
    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.ALLOW

    monkeypatch.setattr(unusual, "SQL", unusual.SQL.replace("5000", "2"))

    assert suppose("scout", "mailer.send_mail").decision.effect == Effect.ASK


def test_the_template_holds(scout: Agent, send: Tool) -> None:
    rule = read_template("unusual", "", "UTC").rule()
    rule.full_clean()
    rule.save()
    Rule.objects.create(name="the rest", effect=Effect.ALLOW)

    def decision() -> Effect:
        return suppose("scout", "mailer.send_mail").decision.effect

    # Its first use of a tool that sends outside.
    assert decision() == Effect.ASK
    call(scout, send, State.RUNNING)
    assert decision() == Effect.ALLOW
    for n in range(5):
        call(scout, send, State.REFUSED, n)
    assert decision() == Effect.ASK


def test_it_never_allows() -> None:
    with pytest.raises(BadCondition, match="cannot rest on how usual a call is"):
        compiled("unusual.refusals == 0", hints=False)


def test_unread_it_asks(scout: Agent, send: Tool) -> None:
    Rule.objects.create(name="much", effect=Effect.DENY, when="unusual.rate > 10.0")
    asked = Subject(scout.pk, "scout", frozenset(), 1, "mailer", "send_mail", {})

    decision = decide.load().decide(asked)

    assert decision.effect == Effect.ASK
    assert "what happened before could not be read" in decision.reason


def test_it_is_told_once_while_it_lasts_and_again_after_a_day(scout: Agent, send: Tool) -> None:
    call(scout, send, State.RUNNING)
    assert unusual_use.watch() == 0
    for n in range(5):
        call(scout, send, State.REFUSED, n)

    assert [unusual_use.watch() for _ in range(2)] == [1, 0]

    (entry,) = Entry.objects.filter(action="agent.unusual")
    assert (entry.agent, entry.reason) == ("scout", "Its last 5 calls were blocked or denied.")
    assert entry.details == {"kinds": ["refusals"]}
    later = timezone.now() - timedelta(hours=25)
    UnusualUse.objects.update(kinds_seen={"refusals": later.timestamp()})
    assert unusual_use.watch() == 1


def test_a_kind_is_told_again_after_a_day_while_another_lasts(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(scout, send, State.RUNNING)
    often: dict[str, Any] = {"before": 48, "hours_before": 24, "lately": 40}
    start, told = timezone.now(), []
    for hour in range(72):
        many = Unusual(**often, refusals=5 if hour in (0, 1, 20, 60) else 0)
        monkeypatch.setattr(unusual_use, "read_unusual", lambda _agent, many=many: many)
        now = start + timedelta(hours=hour)
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        told += [hour] * unusual_use.watch()

    assert told == [0, 60]
    kinds = [entry.details["kinds"] for entry in Entry.objects.filter(action="agent.unusual")]
    assert sorted(kinds) == [["rate", "refusals"], ["refusals"]]


def test_rounds_take_turns_where_agents_are_too_many(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [Agent.objects.create(name=f"a{n}", owner=scout.owner) for n in range(4)]
    for n, agent in enumerate([scout, *more]):
        call(agent, send, State.RUNNING, n)
    monkeypatch.setattr(unusual_use, "MOST_AGENTS", 2)
    start = timezone.now()

    rounds = [unusual_use._active_agents(start + timedelta(minutes=n)) for n in range(3)]

    assert [len(one) for one in rounds] == [2, 2, 2]
    assert {agent.name for one in rounds for agent in one} == {"scout", "a0", "a1", "a2", "a3"}


def test_an_entry_about_an_agent_is_no_call(scout: Agent) -> None:
    record("agent.enabled", actor=SYSTEM, agent=(scout.pk, scout.name))

    assert unusual_use._active_agents(timezone.now()) == []


def test_a_look_that_fails_is_logged(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    call(scout, send, State.RUNNING)
    monkeypatch.setattr(unusual_use, "read_unusual", lambda _agent: None)

    assert unusual_use.watch() == 0
    assert "1 agents could not be read in time" in caplog.text


def test_a_flood_is_information_and_no_finding(
    client: Client, scout: Agent, send: Tool, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        call(scout, send, State.QUEUED, n)
    monkeypatch.setattr(unusual, "SQL", unusual.SQL.replace("5000", "4"))
    client.force_login(bob)

    page = client.get(reverse("policies:agent_unusual", args=["scout"])).text

    assert "hours and rates are not compared" in page
    assert "Nothing unusual" not in page
    assert unusual_use.watch() == 0
    assert not UnusualUse.objects.exists()


def test_an_agent_that_does_not_call_is_not_looked_at(
    scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        call(scout, send, State.REFUSED, n)
    monkeypatch.setattr(unusual_use, "LATELY_S", -1)

    assert unusual_use.watch() == 0


def test_the_overview_leads_to_the_list_of_such_agents(
    client: Client, scout: Agent, send: Tool, bob: User, mallory: User
) -> None:
    for n in range(5):
        call(scout, send, State.REFUSED, n)
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    assert "unusual use" not in client.get(reverse("overview")).text
    unusual_use.watch()

    there = reverse("policies:unusual")
    assert "1 agent with unusual use" in client.get(reverse("overview")).text
    assert there in client.get(reverse("overview")).text
    assert "Its last 5 calls were blocked or denied." in client.get(there).text
    client.force_login(bob)
    assert "scout" in client.get(there).text
    client.force_login(mallory)
    assert "scout" not in client.get(there).text


def test_the_agents_page_shows_reasons_to_whom_it_is_shown(
    client: Client, scout: Agent, send: Tool, bob: User, mallory: User
) -> None:
    there = reverse("policies:agent_unusual", args=["scout"])
    client.force_login(bob)
    assert "Nothing unusual in its latest calls." in client.get(there).text
    for n in range(5):
        call(scout, send, State.REFUSED, n)

    assert "Its last 5 calls were blocked or denied." in client.get(there).text
    assert there in client.get(reverse("accounts:agent", args=["scout"])).text
    client.force_login(mallory)
    assert client.get(there).status_code == 404
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    assert client.get(there).status_code == 200


def seen(agent: Agent, address: str, days_ago: float) -> None:
    at = timezone.now() - timedelta(days=days_ago)
    AgentAddress.objects.create(agent=agent, address=address, first_at=at, last_at=at)


@pytest.mark.parametrize(
    ("before", "is_new"),
    [([], False), ([("192.0.2.1", 6)], False), ([("192.0.2.1", 8)], True)],
    ids=["its first", "not known for long", "beside an old one"],
)
def test_an_address_is_new_beside_others_of_a_week_ago(
    scout: Agent, send: Tool, before: list[tuple[str, float]], *, is_new: bool
) -> None:
    for address, days in before:
        seen(scout, address, days)
    call(scout, send, State.QUEUED)
    note_address(scout.pk, "198.51.100.7")

    now = found(scout)

    assert now.facts()["unusual.address"] is is_new
    said = "It called from 198.51.100.7, where it never called from before the last 12 hours."
    assert list(now.reasons()) == ([said] if is_new else [])
    tomorrow = found(scout, at=datetime.now(UTC) + timedelta(hours=13))
    assert not tomorrow.facts()["unusual.address"]


def test_the_first_use_of_a_tool_that_sends_outside_takes_a_week_to_know(
    scout: Agent, send: Tool
) -> None:
    call(scout, send, State.QUEUED)
    said = "It used mailer.send_mail, which sends outside, for the first time in the last 12 hours."

    now = found(scout, "")

    assert now.sink == "mailer.send_mail"
    assert list(now.reasons()) == []
    assert list(replace(now, days=7, at_hour=1).reasons()) == [said]
    assert list(replace(now, days=7, at_hour=1, sight_h=20.0).reasons()) == []
    assert found(scout).sink == ""
    assert found(scout, "", at=datetime.now(UTC) + timedelta(hours=13)).sink == ""


def test_a_tool_that_sends_nothing_outside_is_no_such_finding(scout: Agent, send: Tool) -> None:
    Tool.objects.update(labels=["untrusted", "sensitive"])
    call(scout, send, State.QUEUED)

    assert found(scout, "").sink == ""


def test_the_same_address_again_is_one_and_ipv6_counts_by_network(scout: Agent) -> None:
    for address in ("2001:db8::1", "2001:db8::ffff:2", "192.0.2.1", "192.0.2.1"):
        note_address(scout.pk, address)

    known = AgentAddress.objects.order_by("pk").values_list("address", flat=True)
    assert list(known) == ["2001:db8::/64", "192.0.2.1"]


def test_no_more_are_kept_than_may_be_and_old_ones_are_forgotten(
    scout: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = timezone.now() - timedelta(days=91)
    AgentAddress.objects.bulk_create(
        AgentAddress(agent=scout, address=f"10.0.{n // 250}.{n % 250}", first_at=old, last_at=old)
        for n in range(agent_addresses.KEPT_MAX)
    )
    note_address(scout.pk, "192.0.2.1")
    note_address(scout.pk, "10.0.0.0")
    assert AgentAddress.objects.count() == agent_addresses.KEPT_MAX

    unusual_use.watch()

    assert [one.address for one in AgentAddress.objects.all()] == ["10.0.0.0"]
