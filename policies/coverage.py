"""What a rule can reach: the published tools it covers, and rules that never get a word in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase, translate
from typing import Any

from django.db.models import F

from policies.decide import SAYS, STRICTNESS
from policies.models import Effect, Rule
from policies.never import why_never
from registry import definitions
from registry.models import Definition, Tool

# What `shadowed()` understands. A rule that says more than this covers less than it seems.
_UNDERSTOOD = {"id", "position", "name", "effect", "server", "tool", "hint", "reason", "when"}
_WIDER = {Rule.Hint.ANY: set(Rule.Hint), Rule.Hint.WRITES: {Rule.Hint.DESTRUCTIVE}}
_wild = re.compile(r"[*?\[]").search


def covered(rules: Iterable[Rule]) -> list[int]:
    """For each rule, how many published tools its patterns and hint cover."""
    asked = list(rules)
    hinted = any(rule.hint for rule in asked)
    tools = list(_published(hinted))
    return [_count(rule, tools) for rule in asked]


def _published(hinted: bool) -> Iterator[tuple[str, str, dict[str, bool]]]:
    tools = Tool.objects.filter(state=Tool.State.PUBLISHED, server__enabled=True)
    # Definitions are read only for rules that look at what they say.
    rows = tools.annotate(slug=F("server__slug")).values_list("slug", "name", "published_id")
    if not hinted:
        return ((slug, name, {}) for slug, name, _definition in rows)
    bodies = Definition.objects.filter(pk__in=tools.values("published_id"))
    said = {one.pk: definitions.hints(one.content) for one in bodies}
    return ((slug, name, said[definition]) for slug, name, definition in rows)


def _count(rule: Rule, tools: Iterable[tuple[str, str, dict[str, bool]]]) -> int:
    server, tool = re.compile(translate(rule.server)), re.compile(translate(rule.tool))
    says = SAYS[Rule.Hint(rule.hint)]
    return sum(
        1 for slug, name, hints in tools if server.match(slug) and tool.match(name) and says(hints)
    )


def shadowed(rules: Iterable[Rule]) -> dict[int, Rule]:
    """By rule: another that decides wherever it would, so that it never matters.

    Only what is certain is said: two patterns that happen to cover the same are not compared.
    """
    speaking = [rule for rule in rules if rule.mode != Rule.Mode.OFF]
    found = ((rule, _shadow(rule, speaking)) for rule in speaking)
    return {rule.pk: other for rule, other in found if other}


def nevers(rules: Iterable[Rule]) -> dict[int, str]:
    """By rule: why its condition can never hold."""
    asked = [rule for rule in rules if rule.mode != Rule.Mode.OFF and rule.when]
    schemas = _schemas(asked)
    found = (
        (rule.pk, why_never(rule.when, server=rule.server, tool=rule.tool,
                            schema=schemas.get((rule.server, rule.tool))))
        for rule in asked
    )  # fmt: skip
    return {pk: why for pk, why in found if why}


def _schemas(rules: list[Rule]) -> dict[tuple[str, str], dict[str, Any]]:
    """Of the tools that rules name without patterns."""
    named = Tool.objects.filter(
        server__slug__in={rule.server for rule in rules},
        name__in={rule.tool for rule in rules},
    ).select_related("server", "latest")
    return {
        (tool.server.slug, tool.name): tool.latest.content.get("inputSchema") or {}
        for tool in named
        if tool.latest
    }


def _shadow(rule: Rule, rules: list[Rule]) -> Rule | None:
    return next(
        (
            other
            for other in rules
            if other.pk != rule.pk and _goes_first(other, rule) and _covers_all(other, rule)
        ),
        None,
    )


def _goes_first(other: Rule, rule: Rule) -> bool:
    # A condition that cannot be judged asks, also where its rule would have allowed.
    effect = Effect.ASK if rule.when and rule.effect == Effect.ALLOW else Effect(rule.effect)
    looser = STRICTNESS[effect] - STRICTNESS[Effect(other.effect)]
    earlier = (other.position, other.pk) < (rule.position, rule.pk)
    return looser > 0 or (looser == 0 and earlier)


def _covers_all(other: Rule, rule: Rule) -> bool:
    return (
        _says_no_more(other)
        and other.when in ("", rule.when)
        and _wider(other.server, rule.server)
        and _wider(other.tool, rule.tool)
        and (other.hint == rule.hint or rule.hint in _WIDER.get(Rule.Hint(other.hint), ()))
        and _everybody_of(other.agents.all(), rule.agents.all())
        and _everybody_of(other.owner_groups.all(), rule.owner_groups.all())
    )


def _says_no_more(rule: Rule) -> bool:
    return all(
        getattr(rule, field.attname) == field.get_default()
        for field in rule._meta.concrete_fields
        if field.name not in _UNDERSTOOD
    )


def _wider(pattern: str, other: str) -> bool:
    if pattern in ("*", other):
        return True
    if not _wild(other):
        return fnmatchcase(other, pattern)
    start, star, rest = pattern.partition("*")
    wild = _wild(other)
    fixed = other[: wild.start()] if wild else other
    return bool(star) and not rest and not _wild(start) and fixed.startswith(start)


def _everybody_of(named: Iterable[object], others: Iterable[object]) -> bool:
    """Nobody named means everybody."""
    mine, theirs = set(named), set(others)
    return not mine or bool(theirs and theirs <= mine)
