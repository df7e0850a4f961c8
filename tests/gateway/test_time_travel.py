"""Recorded calls, judged again by the rules of their own time: they are decided as it is recorded.

The rules of each time come out of the record (time_travel.py). Between them groups, names of
owners, tags and labels change too.
`TRAVEL_CALLS=10000 python3 manage.py test -o faulthandler_timeout=7200
tests/gateway/test_time_travel.py` makes so many calls, for which ten minutes are not enough.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import Group

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from audit.services import SYSTEM
from calls.models import Call
from policies import services
from policies.models import Rule
from registry.models import Tool, Toolset
from registry.services import set_tags
from tests.console import scenery
from tests.gateway.service_api import Program
from tests.gateway.time_travel import compared

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
CALLS = int(os.environ.get("TRAVEL_CALLS", "240"))
CHANGES = 60
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
    """Two agents, and changes drawn by chance: the same ones each time, however many calls."""

    agents: list[Program]
    olga: User
    carol: User
    dice: Random
    calls_dice: Random

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
        arguments: dict[str, Any] = {"a": self.calls_dice.randrange(100), "b": number / 100}
        tool = "mailer_add"
        if self.calls_dice.random() < 0.4:
            tool, arguments = "mailer_send_mail", {**scenery.MAIL, "subject": f"Invoice {number}"}
        asked = {"toolset": "desk", "tool": tool, "arguments": arguments}
        answer = self.calls_dice.choice(self.agents).ask("POST", "calls?wait=0", asked)
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
    return House(agents, olga, carol, Random(22), Random(23))


def test_each_call_is_decided_as_it_is_recorded(house: House) -> None:
    for place in range(CHANGES):
        house.change(place)
        house.wait_for_rules()
        for number in range(place * CALLS // CHANGES, (place + 1) * CALLS // CHANGES):
            house.call(number)

    differing, exact, total = compared()
    assert differing == []
    assert total == CALLS
    # Those before the one change of tags are marked.
    assert CALLS * 0.8 < exact < CALLS
    effects = set(Call.objects.values_list("effect", flat=True))
    assert effects == {"allow", "ask", "deny"}
    assert Call.objects.values("reason").distinct().count() > len(POOL) / 2
