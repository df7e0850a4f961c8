"""What rules say: strictest first, and silence asks."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts.models import Agent, User
from audit.models import Entry
from policies import decide, services
from policies.decide import Decision, Subject
from policies.models import Effect, Rule

pytestmark = pytest.mark.django_db

READS = {"readOnlyHint": True}
DESTROYS = {"readOnlyHint": False, "destructiveHint": True}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}


@pytest.fixture
def scout() -> Agent:
    bob = User.objects.create(username="bob")
    return Agent.objects.create(name="scout", owner=bob)


def rule(effect: Effect, position: int = 100, **values: Any) -> Rule:
    name = values.pop("name", f"{effect} {position}")
    return Rule.objects.create(name=name, effect=effect, position=position, **values)


def decided(
    agent: Agent, tool: str = "mailer.send", hints: dict[str, bool] | None = None
) -> Decision:
    server, name = tool.split(".")
    groups = frozenset(agent.owner.groups.values_list("name", flat=True))
    subject = Subject(agent.pk, agent.name, groups, 1, server, name, hints or {})
    return decide.load().decide(subject)


def test_what_no_rule_covers_asks(scout: Agent) -> None:
    decision = decided(scout)

    assert decision.effect == Effect.ASK
    assert decision.rule_id is None
    assert "No rule covers" in decision.reason


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (["allow"], "allow"),
        (["allow", "ask"], "ask"),
        (["ask", "allow"], "ask"),
        (["allow", "deny"], "deny"),
        (["ask", "deny", "allow"], "deny"),
        (["deny", "ask"], "deny"),
    ],
)
def test_deny_beats_ask_beats_allow_in_any_order(
    scout: Agent, effects: list[str], expected: str
) -> None:
    for position, effect in enumerate(effects):
        rule(Effect(effect), position)

    assert decided(scout).effect == expected


def test_the_first_rule_of_the_strictest_effect_is_named(scout: Agent) -> None:
    rule(Effect.ASK, 3, name="later")
    rule(Effect.ASK, 2, name="earlier", reason="Mail leaves the house.")

    decision = decided(scout)

    assert (decision.rule, decision.reason) == ("earlier", "Mail leaves the house.")


@pytest.mark.parametrize(
    ("server", "tool", "covered"),
    [
        ("*", "*", True),
        ("mailer", "send", True),
        ("mail*", "se?d", True),
        ("mailer", "[rs]end", True),
        ("Mailer", "*", False),
        ("mail", "*", False),
        ("*", "sen", False),
        ("*", "resend", False),
    ],
)
def test_patterns_cover_whole_names(scout: Agent, server: str, tool: str, covered: bool) -> None:
    rule(Effect.DENY, server=server, tool=tool)

    assert (decided(scout).effect == Effect.DENY) is covered


@pytest.mark.parametrize(
    ("hint", "hints", "covered"),
    [
        (Rule.Hint.ANY, {}, True),
        (Rule.Hint.WRITES, READS, False),
        (Rule.Hint.WRITES, ADDS, True),
        (Rule.Hint.WRITES, {}, True),
        (Rule.Hint.DESTRUCTIVE, DESTROYS, True),
        (Rule.Hint.DESTRUCTIVE, {}, True),
        (Rule.Hint.DESTRUCTIVE, ADDS, False),
        (Rule.Hint.DESTRUCTIVE, {**READS, "destructiveHint": True}, False),
        (Rule.Hint.OPEN_WORLD, {}, True),
        (Rule.Hint.OPEN_WORLD, ADDS, False),
    ],
)
def test_an_absent_hint_means_the_worst(
    scout: Agent, hint: Rule.Hint, hints: dict[str, bool], covered: bool
) -> None:
    rule(Effect.DENY, hint=hint)

    assert (decided(scout, hints=hints).effect == Effect.DENY) is covered


def test_a_rule_for_one_agent_leaves_others_alone(scout: Agent) -> None:
    other = Agent.objects.create(name="other", owner=scout.owner)
    rule(Effect.ALLOW).agents.add(scout)

    assert decided(scout).effect == Effect.ALLOW
    assert decided(other).effect == Effect.ASK


def test_a_rule_for_a_group_follows_the_agents_owner(scout: Agent) -> None:
    payments = Group.objects.create(name="payments")
    rule(Effect.ALLOW).owner_groups.add(payments)
    assert decided(scout).effect == Effect.ASK

    scout.owner.groups.add(payments)

    assert decided(scout).effect == Effect.ALLOW


def test_a_rule_that_is_off_says_nothing(scout: Agent) -> None:
    rule(Effect.ALLOW, mode=Rule.Mode.OFF)

    assert decided(scout).effect == Effect.ASK


def test_hints_may_not_loosen(scout: Agent) -> None:
    loose = Rule(name="trusting", effect=Effect.ALLOW, hint=Rule.Hint.WRITES)

    with pytest.raises(ValidationError, match="cannot rest on a server's hints"):
        services.save_rule(loose, by=scout.owner.actor)
    with pytest.raises(IntegrityError), transaction.atomic():
        loose.save()


def test_saving_and_removing_are_recorded(scout: Agent) -> None:
    saved = services.save_rule(
        Rule(name="mail", effect=Effect.ASK, server="mailer"),
        by=scout.owner.actor,
        agents=[scout],
    )
    services.remove_rule(saved, by=scout.owner.actor)

    entries = list(Entry.objects.filter(action__startswith="rule.").order_by("id"))
    assert [entry.action for entry in entries] == ["rule.saved", "rule.removed"]
    assert entries[0].details["rule_agents"] == ["scout"]
    assert {entry.actor for entry in entries} == {"bob"}
