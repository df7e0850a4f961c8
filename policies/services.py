"""Changing rules, each change with its entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from accounts.models import Agent
from audit.services import Actor, record
from policies import removal
from policies.models import Rule
from registry import managed

STEP = 10


@transaction.atomic
def save_rule(
    rule: Rule, *, by: Actor, agents: Sequence[Agent] = (), owner_groups: Sequence[Group] = ()
) -> Rule:
    """Create or change a rule; raises ValidationError for one that could not be right."""
    managed.check(managed.RULES, by=by)
    rule.full_clean()
    rule.save()
    rule.agents.set(agents)
    rule.owner_groups.set(owner_groups)
    record("rule.saved", actor=by, **facts(rule))
    return rule


@transaction.atomic
def remove_rule(rule: Rule, *, by: Actor) -> None:
    managed.check(managed.RULES, by=by)
    removal.prepare(rule, by)
    record("rule.removed", actor=by, **facts(rule))
    rule.delete()


@transaction.atomic
def move_rule(rule: Rule, *, earlier: bool, by: Actor) -> bool:
    """Let it change places with its neighbour; False at the ends of the list."""
    order = _ordered()
    here = _place(rule, order)
    return _put(rule, order, here - 1 if earlier else here + 1, by=by)


@transaction.atomic
def place_rule(rule: Rule, place: int, *, by: Actor) -> bool:
    """Let it be the `place`th, from 1; False if it is, or if there is no such place."""
    return _put(rule, _ordered(), place - 1, by=by)


def _ordered() -> list[Rule]:
    return list(Rule.objects.in_order().select_for_update())


def _place(rule: Rule, order: list[Rule]) -> int:
    return next(n for n, one in enumerate(order) if one.pk == rule.pk)


def _put(rule: Rule, order: list[Rule], there: int, *, by: Actor) -> bool:
    managed.check(managed.RULES, by=by)
    here = _place(rule, order)
    if here == there or not 0 <= there < len(order):
        return False
    order.insert(there, order.pop(here))
    for n, one in enumerate(order, start=1):
        one.position = n * STEP
    Rule.objects.bulk_update(order, ["position"])
    record("rule.moved", actor=by, rule=rule.name, place=there + 1)
    return True


@transaction.atomic
def order_rules(names: Collection[str], by: Actor) -> None:
    """Puts the rules in this order, which names all of them."""
    place = {name: n for n, name in enumerate(names, start=1)}
    before = _ordered()
    after = sorted(before, key=lambda rule: place[rule.name])
    for n, rule in enumerate(after, start=1):
        rule.position = n * STEP
    Rule.objects.bulk_update(after, ["position"])
    for was, rule in zip(before, after, strict=True):
        if was.pk != rule.pk:
            record("rule.moved", actor=by, rule=rule.name, place=place[rule.name])


def last_position() -> int:
    last = Rule.objects.in_order().last()
    return last.position + STEP if last else STEP


def facts(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "rule_effect": rule.effect,
        "rule_mode": rule.mode,
        "rule_server": rule.server,
        "rule_tool": rule.tool,
        "rule_hint": rule.hint,
        "rule_when": rule.when,
        "rule_agents": [agent.name for agent in rule.agents.all()],
        "rule_groups": [group.name for group in rule.owner_groups.all()],
        "rule_thresholds": rule.thresholds,
        "rule_decide_within": rule.decide_within,
        "rule_start_within": rule.start_within,
        "rule_confirm_grants": rule.confirm_grants,
        "rule_shows_arguments": rule.shows_arguments,
        "rule_instead": rule.instead,
        "rule_unnamed": rule.unnamed,
        "rule_results": rule.results,
    }
