"""Limits as rows: what is saved, what each change leaves in the record, what they cover."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import connection

from accounts.models import Agent
from audit.models import Entry
from audit.services import SYSTEM
from calls.tasks import expire_results
from core.ids import uuid7
from policies.decide import Subject
from policies.limits import compiled, services
from policies.limits.sweeping import sweep_counters
from policies.limits.words import measure, wait
from policies.models import Limit, LimitCounter, LimitUse
from tests.gateway.limiting import add_limit

pytestmark = pytest.mark.django_db


def covering(agent: Agent, tool: str = "mailer.send", **hints: bool) -> list[str]:
    server, name = tool.split(".")
    groups = frozenset(agent.owner.groups.values_list("name", flat=True))
    subject = Subject(agent.pk, agent.name, groups, 1, server, name, hints)
    return [one.name for one in compiled.load().covering(subject)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"period": ""}, "Choose a period."),
        ({"amount": "1.5"}, "Give a whole number."),
        ({"amount": 0}, "greater than or equal to"),
        ({"kind": "cost", "cost": None}, "Give either the cost"),
        ({"kind": "cost", "cost_argument": "a..b", "cost": None}, "Give names joined by dots"),
        ({"kind": "cost", "cost_result": "a."}, "Give names joined by dots"),
        ({"kind": "cost", "cost": None, "cost_result": "a"}, "Give either the cost"),
        ({"kind": "cost", "unit": ""}, "Give a unit"),
        ({"effect": "allow"}, "is not a valid choice"),
        ({"kind": "failures", "minutes": 0}, "greater than or equal to"),
    ],
)
def test_what_makes_no_sense_is_not_saved(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        add_limit(**given)

    assert said in str(refused.value)


def test_what_does_not_belong_to_its_kind_is_left_out() -> None:
    more = {"cost": 3, "cost_result": "cost", "unit": "EUR"}
    made = add_limit("concurrency", 2, period="day", burst=5, minutes=4, **more)

    assert (made.period, made.unit, made.cost_result) == ("", "", "")
    assert (made.burst, made.cost, made.minutes) == (None, None, None)
    assert add_limit("repeats").minutes == 10


def test_every_change_is_an_entry(scout: Agent) -> None:
    made = add_limit(name="Few", agents=[scout], reason="People read it.")
    services.set_limit_enabled(made, False, by=SYSTEM)
    assert not services.set_limit_enabled(made, False, by=SYSTEM)
    services.set_limit_enabled(made, True, by=SYSTEM)
    services.remove_limit(made, by=SYSTEM)

    entries = Entry.objects.filter(action__startswith="limit.").order_by("pk")
    assert [one.action for one in entries] == [
        "limit.saved",
        "limit.disabled",
        "limit.enabled",
        "limit.removed",
    ]
    assert entries[0].details["limit_agents"] == ["scout"]
    assert entries[0].details["limit_amount"] == "3"


def test_what_was_used_counts_on_unless_something_else_is_counted() -> None:
    made = add_limit()
    counter = LimitCounter.objects.create(limit=made, key="agent:1", label="scout")
    LimitUse.objects.create(
        counter=counter, call_id="0197e000-0000-7000-8000-000000000000", amount=1
    )

    made.amount = 5
    services.save_limit(made, by=SYSTEM)
    assert LimitCounter.objects.exists()

    made.per = ["tool"]
    services.save_limit(made, by=SYSTEM)
    assert not LimitCounter.objects.exists()
    assert not LimitUse.objects.exists()


def test_it_covers_as_rules_do(scout: Agent) -> None:
    add_limit(name="all")
    add_limit(name="mails", server="mail*", tool="se?d")
    add_limit(name="others", tool="receive")
    add_limit(name="mine", agents=[scout])
    add_limit(name="destroys", hint="destructive")
    add_limit(name="off", mode="off")
    finance = Group.objects.create(name="finance")
    add_limit(name="finance", owner_groups=[finance])

    assert covering(scout) == ["all", "mails", "mine", "destroys"]
    assert covering(scout, readOnlyHint=True) == ["all", "mails", "mine"]
    another = Agent.objects.create(name="another", owner=scout.owner)
    assert covering(another, "files.list", readOnlyHint=True) == ["all"]
    scout.owner.groups.add(finance)
    assert covering(another, "files.list", readOnlyHint=True) == ["all", "finance"]


def test_a_change_raises_the_generation() -> None:
    def generation() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT n FROM core_generation")
            return int(cursor.fetchone()[0])

    before = generation()
    made = add_limit()
    after = generation()
    assert after > before
    LimitCounter.objects.create(limit=made, key="", label="")
    assert generation() == after


def test_it_is_said_in_few_words() -> None:
    said = [
        measure(Limit(kind="calls", amount=1, period="second")),
        measure(Limit(kind="calls", amount=1200, period="minute")),
        measure(Limit(kind="cost", amount=Decimal("12.50"), period="month", unit="EUR")),
        measure(Limit(kind="concurrency", amount=2)),
        measure(Limit(kind="failures", amount=3)),
        measure(Limit(kind="failures", amount=1)),
        measure(Limit(kind="repeats", amount=1)),
    ]
    assert said == [
        "1 call per second",
        "1,200 calls per minute",
        "12.5 EUR per month",
        "2 calls at the same time",
        "3 failures in a row",
        "1 failure in a row",
        "1 identical call in a row",
    ]
    assert [wait(s) for s in (0.2, 61, 121, 7201, 200_000)] == [
        "1 s",
        "61 s",
        "3 min",
        "3 h",
        "3 days",
    ]


def test_counters_that_say_nothing_more_are_swept() -> None:
    long_ago, now = datetime(2026, 1, 1, tzinfo=UTC), datetime.now(UTC)
    rate, budget = add_limit(), add_limit("cost", 9, period="month")
    at_once, loop = add_limit("concurrency", 2), add_limit("repeats", 3)
    make = LimitCounter.objects.create
    for limit, used, unused in (
        (rate, {"tat": now}, {"tat": long_ago}),
        (budget, {"since": now, "spent": 2}, {"since": long_ago, "spent": 2}),
        (at_once, {"spent": 1}, {}),
        (loop, {"spent": 1}, {"until": long_ago}),
        (loop, {"until": now + timedelta(hours=1)}, {}),
    ):
        n = LimitCounter.objects.count()
        make(limit=limit, key=f"used {n}", label="", **used)
        make(limit=limit, key=f"unused {n}", label="", **unused)
    held = make(limit=budget, key="used by a pending call", label="", since=long_ago)
    LimitUse.objects.create(counter=held, call_id=uuid7(), amount=0)
    make(limit_id=0, key="unused: its limit is gone", label="")

    expire_results()

    assert LimitCounter.objects.count() == 6
    assert not LimitCounter.objects.filter(key__startswith="unused").exists()
    assert sweep_counters() == 0
