"""Coverage of rules: the published tools they cover, and rules that never decide."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from itertools import permutations
from typing import Any, NamedTuple

from django.db.models import F

from core.english import gettext as _
from inspection.results import rules_of
from inspection.strictness import combine_rules
from policies.decide import SAYS, STRICTNESS
from policies.feasibility import why_unmeetable
from policies.models import Effect, Limit, Rule
from policies.thresholds import DEFAULT, BadThresholds, Decider, combine, parse
from policies.unsatisfiable import why_never
from registry.models import IS_METHOD, Definition, Server, Tool
from registry.schemas import definitions

# What is understood of a rule. One that says more than this covers less than it seems.
_WHERE = {"id", "position", "name", "effect", "server", "tool", "hint", "when"}
_WHAT = {"reason", "instead", "unnamed", "results"}
_WHO = {"thresholds", "decide_within", "start_within", "confirm_grants", "shows_arguments"}
_UNDERSTOOD = _WHERE | _WHAT | _WHO
_WIDER = {Rule.Hint.ANY: set(Rule.Hint), Rule.Hint.WRITES: {Rule.Hint.DESTRUCTIVE}}
# Of more published tools, nobody counts the rest.
MOST_TOOLS = 20_000
_wild = re.compile(r"[*?\[]").search


class Covered(NamedTuple):
    """Numbers of published tools, and of methods beside them."""

    tools: int
    methods: int


def covered(tools: Set[int], methods: Set[int]) -> Covered:
    """`tools`: what a rule covers, methods too, as everywhere else in this module."""
    return Covered(len(tools - methods), len(tools & methods))


def published_methods() -> set[int]:
    methods = Tool.objects.filter(IS_METHOD, state=Tool.State.PUBLISHED, server__enabled=True)
    return set(methods.values_list("pk", flat=True))


def covered_tools(rules: Sequence[Rule]) -> dict[int, set[int]]:
    """The published tools and methods that each rule's patterns and hint cover."""
    return dict(zip((rule.pk for rule in rules), _tools(rules), strict=True))


def why_covers_nothing(covering: Rule | Limit) -> str:
    """Why its patterns cover no tool of today, as a sentence; "" where they cover one."""
    if _tools([covering])[0]:
        return ""
    fits = re.compile(translate(covering.server)).match
    if not any(map(fits, Server.objects.kept().values_list("slug", flat=True))):
        return _("It covers nothing today: no server is called “%s”.") % covering.server
    return _("It covers nothing today: no published tool fits its patterns and hint.")


def _tools(rules: Sequence[Rule | Limit]) -> list[set[int]]:
    tools = list(_published({Rule.Hint(rule.hint) for rule in rules}))
    return [set(_covered(rule, tools)) for rule in rules]


PublishedRow = tuple[int, str, str, dict[str, bool]]


def _published(looked_at: set[Rule.Hint]) -> Iterator[PublishedRow]:
    """`looked_at`: the hints that rules ask for."""
    tools = Tool.objects.filter(state=Tool.State.PUBLISHED, server__enabled=True)
    columns = ("pk", "slug", "name", "published_id", "hints", "risk")
    rows = tools.annotate(slug=F("server__slug")).values_list(*columns)[:MOST_TOOLS]
    if Rule.Hint.OPEN_WORLD not in looked_at:
        return ((pk, slug, name, _claimed(*said)) for pk, slug, name, _id, *said in rows)
    # Definitions, of which there is much to read, only for what a tool's row does not say.
    bodies = Definition.objects.filter(pk__in=tools.values("published_id"))
    found = {one.pk: definitions.hints(one.content) for one in bodies}
    return ((pk, slug, name, found[definition]) for pk, slug, name, definition, *_said in rows)


def _claimed(hints: list[str], risk: str) -> dict[str, bool]:
    """The server's hints about a tool, but for a world that is not open."""
    claimed = dict.fromkeys(hints, True)
    return {"destructiveHint": False, **claimed} if risk == Tool.Risk.CHANGES else claimed


def _covered(rule: Rule | Limit, tools: Iterable[PublishedRow]) -> Iterator[int]:
    server, tool = re.compile(translate(rule.server)), re.compile(translate(rule.tool))
    says = SAYS[Rule.Hint(rule.hint)]
    for pk, slug, name, hints in tools:
        if server.match(slug) and tool.match(name) and says(hints):
            yield pk


@dataclass(frozen=True, slots=True)
class Shadow:
    """On so many of the tools and methods that `rule` covers, `other` decides in its place.

    `always`: by what the two rules say, whatever will be published.
    """

    rule: Rule
    other: Rule
    tools: int
    of: int
    always: bool = False

    @property
    def is_whole(self) -> bool:
        return self.always or self.tools == self.of

    @property
    def is_redundant(self) -> bool:
        """Both require approval: it would be required by `rule` too, and no less."""
        return self.rule.effect == self.other.effect == Effect.ASK


@dataclass(frozen=True, slots=True)
class Shadows:
    """Shadowing between rules: `over` a rule, and which ones it shadows."""

    covered: Covered
    over: list[Shadow]
    cast: list[Shadow]

    @property
    def whole(self) -> Shadow | None:
        """The one that leaves the rule nothing: for good, if there is such a one."""
        whole = [shadow for shadow in self.over if shadow.is_whole]
        return next((one for one in whole if one.always), whole[0] if whole else None)

    @property
    def partial(self) -> list[Shadow]:
        return [] if self.whole else self.over


def shadows(
    rules: Sequence[Rule], tools: Mapping[int, set[int]], methods: Set[int] = frozenset()
) -> list[Shadows]:
    """The shadows of each rule, by patterns and by the tools that they cover now."""
    over: dict[int, list[Shadow]] = defaultdict(list)
    cast: dict[int, list[Shadow]] = defaultdict(list)
    for shadow in _shadows(rules, tools):
        over[shadow.rule.pk].append(shadow)
        cast[shadow.other.pk].append(shadow)
    return [
        Shadows(covered(tools[rule.pk], methods), over[rule.pk], cast[rule.pk]) for rule in rules
    ]


def _shadows(rules: Sequence[Rule], tools: Mapping[int, set[int]]) -> Iterator[Shadow]:
    speaking = [rule for rule in rules if rule.mode != Rule.Mode.OFF]
    for rule in speaking:
        mine = tools[rule.pk]
        for other in speaking:
            if other.pk == rule.pk or not _goes_first(other, rule) or not _speaks_for(other, rule):
                continue
            both = len(mine & tools[other.pk])
            shadow = Shadow(rule, other, both, len(mine), _is_wider(other, rule))
            # Which of two that say the same is named on some tools, is of no interest.
            if shadow.always or (both and (both == len(mine) or other.effect != rule.effect)):
                yield shadow


def nevers(rules: Iterable[Rule]) -> dict[int, str]:
    """The reason, by rule, why its condition can never hold."""
    asked = [rule for rule in rules if rule.mode != Rule.Mode.OFF and rule.when]
    schemas = _schemas(asked)
    found = (
        (rule.pk, why_never(rule.when, server=rule.server, tool=rule.tool,
                            schema=schemas.get((rule.server, rule.tool))))
        for rule in asked
    )  # fmt: skip
    return {pk: why for pk, why in found if why}


def unmet(
    rules: Sequence[Rule], able: Sequence[Decider], tools: Mapping[int, set[int]]
) -> dict[int, str]:
    """The reason, by rule, why nobody can ever meet its thresholds, alone or with those of a rule
    that covers the same tools."""
    asking = [one for one in rules if one.mode == Rule.Mode.ENFORCE and one.effect == Effect.ASK]
    asked = {rule.pk: parse(rule.thresholds) or DEFAULT for rule in asking}
    found = {pk: why_unmeetable(thresholds, able) for pk, thresholds in asked.items()}
    for rule, other in permutations(asking, 2):
        if found[rule.pk] or found[other.pk] or not tools[rule.pk] & tools[other.pk]:
            continue
        why = why_unmeetable(combine(asked[rule.pk], asked[other.pk]), able)
        if why and _speaks_for(other, rule):
            said = _("Where “%(rule)s” requires approval too: %(why)s")
            found[rule.pk] = said % {"rule": other.name, "why": why}
    return {pk: why for pk, why in found.items() if why}


def _schemas(rules: list[Rule]) -> dict[tuple[str, str], dict[str, Any]]:
    """Schemas of the tools that rules name without patterns."""
    named = Tool.objects.filter(
        server__slug__in={rule.server for rule in rules},
        name__in={rule.tool for rule in rules},
    ).select_related("server", "latest")
    return {
        (tool.server.slug, tool.name): tool.latest.content.get("inputSchema") or {}
        for tool in named
        if tool.latest
    }


def _goes_first(other: Rule, rule: Rule) -> bool:
    if other.effect != Effect.DENY and not _demands_no_less(other, rule):
        return False
    # A condition that cannot be judged asks, also where its rule would have allowed.
    effect = Effect.ASK if rule.when and rule.effect == Effect.ALLOW else Effect(rule.effect)
    looser = STRICTNESS[effect] - STRICTNESS[Effect(other.effect)]
    if looser:
        return looser > 0
    earlier = (other.position, other.pk) < (rule.position, rule.pk)
    return earlier and (effect != Effect.ASK or _asks_no_less(other, rule))


def _asks_no_less(other: Rule, rule: Rule) -> bool:
    """All rules that ask have to be satisfied: does `rule` add nothing to what `other` asks?"""
    try:
        theirs = parse(other.thresholds) or DEFAULT
        together = combine(theirs, parse(rule.thresholds) or DEFAULT)
    except BadThresholds:
        return False
    return (
        together == combine(theirs)
        and _is_sooner(other.decide_within, rule.decide_within)
        and _is_sooner(other.start_within, rule.start_within)
        and (other.confirm_grants or not rule.confirm_grants)
        and (rule.shows_arguments or not other.shows_arguments)
    )


def _demands_no_less(other: Rule, rule: Rule) -> bool:
    """Whether `rule` adds nothing to what `other` demands for results."""
    theirs, own = rules_of(other.results), rules_of(rule.results)
    return combine_rules((theirs, own)) == combine_rules((theirs,))


def _is_sooner(other: int | None, rule: int | None) -> bool:
    return rule is None or (other is not None and other <= rule)


def _speaks_for(other: Rule, rule: Rule) -> bool:
    """Whether `other` applies to every call of this tool that `rule` applies to."""
    return (
        _says_no_more(other)
        and other.when in ("", rule.when)
        and _everybody_of(other.agents.all(), rule.agents.all())
        and _everybody_of(other.owner_groups.all(), rule.owner_groups.all())
    )


def _is_wider(other: Rule, rule: Rule) -> bool:
    return (
        _wider(other.server, rule.server)
        and _wider(other.tool, rule.tool)
        and (other.hint == rule.hint or rule.hint in _WIDER.get(Rule.Hint(other.hint), ()))
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
    """Whether the selection covers the other; an empty one covers everybody."""
    mine, theirs = set(named), set(others)
    return not mine or bool(theirs and theirs <= mine)
