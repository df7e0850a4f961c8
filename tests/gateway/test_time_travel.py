"""Recorded calls, judged again by the rules of their own time: they are decided as it is recorded.

The rules of each time come out of the record: the entries of their changes. Between them groups,
names of owners, tags and labels change too.
`TRAVEL_CALLS=10000 python3 manage.py test tests/gateway/test_time_travel.py` makes so many calls.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.replay.recorded_calls import RecordedCall, SubjectReader, sample, stream
from calls.replay.replaying import CallReplay
from policies import decide, services
from policies.decide import Decision, RuleBook
from policies.models import Rule
from registry.models import Tool, Toolset
from registry.services import set_tags
from tests.console import scenery
from tests.gateway.service_api import Program

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
CALLS = int(os.environ.get("TRAVEL_CALLS", "240"))
CHANGES = 60
MEMBERS = ("effect", "mode", "server", "tool", "hint", "when")
POOL: tuple[dict[str, Any], ...] = (
    {"effect": "allow"},
    {"effect": "allow", "tool": "add"},
    {"effect": "ask", "tool": "send_*"},
    {"effect": "deny", "server": "mail*", "tool": "send_mail"},
    {"effect": "deny", "hint": "destructive"},
    {"effect": "ask", "hint": "writes"},
    {"effect": "ask", "tool": "add", "thresholds": [{"approve": 2}]},
    {"effect": "allow", "when": "'payments' in agent.groups"},
    {"effect": "deny", "when": "agent.owner == 'carol'"},
    {"effect": "deny", "when": "has(args.a) && args.a > 50"},
    {"effect": "ask", "when": "args.a > 20"},
    {"effect": "allow", "tool": "send_mail", "when": "args.subject.contains('7')"},
    {"effect": "deny", "tool": "add", "when": "tool.risk == 'reads' && args.b < 10"},
    {"effect": "ask", "tool": "add", "when": "history.calls_1h > 7"},
    {"effect": "deny", "when": "'sums' in tool.tags && args.a < 9"},
    {"effect": "ask", "when": "now.getFullYear() > 2000 && args.b > 80"},
)


@dataclass
class House:
    """Two agents, and changes drawn by chance, the same ones each time."""

    agents: list[Program]
    olga: User
    carol: User
    dice: Random

    def change(self, place: int) -> None:
        self._change_rule()
        if self.dice.random() < 0.3:
            group = Group.objects.filter(name="payments")
            wanted = [] if self.carol.groups.filter(name="payments").exists() else [*group]
            accounts.set_groups(self.carol, wanted, by=self.olga)
        if self.dice.random() < 0.2:
            accounts.rename(self.carol, f"carol{place}", by=self.olga)
            self.carol.refresh_from_db()
        if place == CHANGES // 10:
            set_tags(Tool.objects.get(name="add"), ["sums"], by=self.olga)

    def _change_rule(self) -> None:
        place = self.dice.randrange(len(POOL))
        known = Rule.objects.filter(name=f"rule {place}").first()
        if known is not None and self.dice.random() < 0.5:
            services.remove_rule(known, by=SYSTEM)
            return
        rule = known or Rule(name=f"rule {place}", position=services.last_position(), **POOL[place])
        rule.mode = self.dice.choice(["enforce", "enforce", "enforce", "shadow", "off"])
        groups = Group.objects.filter(name="payments") if self.dice.random() < 0.1 else []
        named = Agent.objects.filter(name="scout") if self.dice.random() < 0.1 else []
        services.save_rule(rule, by=SYSTEM, agents=[*named], owner_groups=[*groups])

    def call(self, number: int) -> None:
        arguments: dict[str, Any] = {"a": self.dice.randrange(100), "b": number / 100}
        tool = "mailer_add"
        if self.dice.random() < 0.4:
            tool, arguments = "mailer_send_mail", {**scenery.MAIL, "subject": f"Invoice {number}"}
        asked = {"toolset": "desk", "tool": tool, "arguments": arguments}
        answer = self.dice.choice(self.agents).ask("POST", "calls?wait=0", asked)
        assert answer.status_code in (200, 201, 202, 403), answer.content

    def wait_for_rules(self) -> None:
        """What is explained is what there is now."""
        asked = {"toolset": "desk", "tool": "mailer_add", "arguments": {"a": 1, "b": 2}}
        assert self.agents[0].ask("POST", "explain", asked).status_code == 200


@pytest.fixture
def house(transactional_db: None, settings: Any) -> House:
    settings.AGENT_QUEUE = settings.QUEUE = 10 * CALLS
    olga = scenery.person("olga", *Role)
    bob, carol = scenery.person("bob"), scenery.person("carol")
    for name in ("alice", "anna"):
        scenery.person(name, Role.APPROVER)
    Group.objects.create(name="payments")
    scenery.server("mailer", olga, scenery.SEND, scenery.ADD)
    desk = Toolset.objects.create(slug="desk")
    desk.tools.set(Tool.objects.all())
    agents = []
    for name, owner in (("scout", bob), ("robin", carol)):
        agent = accounts.create_agent(name, owner=owner, by=olga)
        desk.agents.add(agent)
        agents.append(Program(accounts.issue_token(agent, by=olga, days=1), "/api/"))
    return House(agents, olga, carol, Random(22))


def test_each_call_is_decided_as_it_is_recorded(house: House) -> None:
    for place in range(CHANGES):
        house.change(place)
        house.wait_for_rules()
        for number in range(place * CALLS // CHANGES, (place + 1) * CALLS // CHANGES):
            house.call(number)

    differing, exact, total = [], 0, 0
    for call, decided, is_exact in replayed():
        total += 1
        exact += is_exact
        recorded = Call.objects.get(pk=call.id)
        # The reason names the rule.
        if (decided.effect, decided.reason) != (recorded.effect, recorded.reason) and is_exact:
            differing.append((recorded.reason, decided))
    assert differing == []
    assert total == CALLS
    # Those before the one change of tags are marked.
    assert CALLS * 0.8 < exact < CALLS
    effects = set(Call.objects.values_list("effect", flat=True))
    assert effects == {"allow", "ask", "deny"}
    assert Call.objects.values("reason").distinct().count() > len(POOL) / 2


def replayed() -> Iterator[tuple[RecordedCall, Decision, bool]]:
    """Each call with its decision by the rules of its time, and whether all facts are of then."""
    times, books = rules_then()
    taken = sample(days=1, most=10**6, until=timezone.now() + timedelta(minutes=1))
    reader = SubjectReader(taken.since)
    replays = [
        CallReplay(one, one, reader, lookbacks_left=10**6, lookbacks_left_s=1e6) for one in books
    ]
    with transaction.atomic():
        for call in stream(taken):
            yield call, decision_at(call, times, replays), reader.is_exact(call)


def decision_at(call: RecordedCall, times: list[datetime], replays: list[CallReplay]) -> Decision:
    decided = replays[bisect_right(times, call.asked_at) - 1].decide(call)
    assert decided is not None, "its facts cannot be read"
    return decided[0]


def rules_then() -> tuple[list[datetime], list[RuleBook]]:
    """When rules were changed, and all of them from then on, out of the entries."""
    rules: dict[str, dict[str, Any]] = {}
    times, books = [], []
    changes = Entry.objects.filter(action__in=("rule.saved", "rule.removed")).order_by("id")
    for at, action, details in changes.values_list("at", "action", "details"):
        if action == "rule.removed":
            del rules[details["rule"]]
        else:
            rules[details["rule"]] = details
        times.append(at)
        books.append(book_of(list(rules.values())))
    return times, books


def book_of(rules: list[dict[str, Any]]) -> RuleBook:
    """Written, read and taken back."""
    with transaction.atomic():
        Rule.objects.all().delete()
        for place, facts in enumerate(rules):
            made = Rule.objects.create(
                name=facts["rule"],
                position=place,
                thresholds=facts["rule_thresholds"],
                **{name: facts[f"rule_{name}"] for name in MEMBERS},
            )
            made.agents.set(Agent.objects.filter(name__in=facts["rule_agents"]))
            made.owner_groups.set(Group.objects.filter(name__in=facts["rule_groups"]))
        book = decide.load()
        transaction.set_rollback(True)
    return book
