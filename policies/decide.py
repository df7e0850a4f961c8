"""What rules say about one call.

Rules are compiled once a change of configuration. Where no rule that covers an agent and a
definition has a condition, the decision is remembered, so that the agents' path pays a dictionary
look-up; otherwise the rules that cover them are, and their conditions run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import translate
from typing import Any

from django.utils.translation import gettext as _

from policies import conditions
from policies.conditions import BadCondition, Condition, Undecided
from policies.models import Effect, Rule

STRICTNESS = {Effect.DENY: 0, Effect.ASK: 1, Effect.ALLOW: 2}
REMEMBERED = 100_000

# What a hint means when it is absent is the worst that it could mean (MCP, tool annotations).
SAYS: dict[Rule.Hint, Callable[[Mapping[str, bool]], bool]] = {
    Rule.Hint.ANY: lambda hints: True,
    Rule.Hint.WRITES: lambda hints: not hints.get("readOnlyHint", False),
    Rule.Hint.DESTRUCTIVE: lambda hints: (
        not hints.get("readOnlyHint", False) and hints.get("destructiveHint", True)
    ),
    Rule.Hint.OPEN_WORLD: lambda hints: hints.get("openWorldHint", True),
}


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class Subject:
    """What rules look at; plain values. `size`: of the arguments, in bytes."""

    agent_id: int
    agent: str
    groups: frozenset[str]
    definition_id: int
    server: str
    tool: str
    hints: Mapping[str, bool]
    owner: str = ""
    arguments: Any = field(default_factory=dict)
    size: int = 0

    def facts(self) -> dict[str, Any]:
        """For conditions."""
        return {
            "args": self.arguments,
            "tool.server": self.server,
            "tool.name": self.tool,
            conditions.HINTS: dict(self.hints),
            "agent.name": self.agent,
            "agent.owner": self.owner,
            "agent.groups": sorted(self.groups),
            "now": datetime.now(UTC),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    rule_id: int | None
    rule: str
    # For people: agents and approvers read it.
    reason: str
    # What rules that are only watched would have made of it, where that is something else.
    would: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompiledRule:
    id: int
    name: str
    effect: Effect
    server: re.Pattern[str]
    tool: re.Pattern[str]
    hint: Rule.Hint
    agents: frozenset[int]
    groups: frozenset[str]
    reason: str
    # A text instead of a condition: why it cannot be used.
    when: Condition | str | None = None
    shadow: bool = False

    def covers(self, subject: Subject) -> bool:
        return next(self.gaps(subject), None) is None

    def gaps(self, subject: Subject) -> Iterator[str]:
        """What of the rule is not so in this case."""
        if self.server.match(subject.server) is None:
            yield _("another server")
        if self.tool.match(subject.tool) is None:
            yield _("another tool")
        if self.agents and subject.agent_id not in self.agents:
            yield _("other agents")
        if self.groups and self.groups.isdisjoint(subject.groups):
            yield _("owners in other groups")
        if not SAYS[self.hint](subject.hints):
            yield _("the tool's hints")

    def verdict(self, subject: Subject, facts: Mapping[str, Any]) -> Decision | None:
        """What the rule says of a call that it covers; None if its condition does not hold."""
        if self.when is None:
            return self.decision()
        try:
            if isinstance(self.when, str):
                raise Undecided(self.when)
            return self.decision() if self.when.holds(facts, subject.size) else None
        except Undecided as error:
            said = _("The condition of rule “%(rule)s” could not be judged: %(why)s.")
            why = said % {"rule": self.name, "why": str(error).rstrip(".")}
            return Decision(Effect.ASK, self.id, self.name, why)

    def decision(self) -> Decision:
        why = self.reason or _("Rule “%(rule)s” says so.") % {"rule": self.name}
        return Decision(self.effect, self.id, self.name, why)


Covering = tuple[CompiledRule, ...]


@dataclass(slots=True)
class RuleBook:
    rules: Covering
    _known: dict[tuple[int, int], Decision | Covering] = field(default_factory=dict)

    def decide(self, subject: Subject) -> Decision:
        key = (subject.agent_id, subject.definition_id)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._settled(subject)
        return known if isinstance(known, Decision) else judged(known, subject)

    def _settled(self, subject: Subject) -> Decision | Covering:
        covering = tuple(rule for rule in self.rules if rule.covers(subject))
        if all(rule.when is None for rule in covering):
            return judged(covering, subject)
        return _mattering(covering)


def _mattering(covering: Covering) -> Covering:
    """Of the rules that always speak, only the first of the strictest is ever heard."""
    always = [rule for rule in covering if rule.when is None and not rule.shadow]
    heard = min(always, key=lambda rule: STRICTNESS[rule.effect], default=None)
    return tuple(rule for rule in covering if rule not in always or rule is heard)


def judged(covering: Covering, subject: Subject) -> Decision:
    facts = subject.facts()
    said = [
        (rule.shadow, verdict) for rule in covering if (verdict := rule.verdict(subject, facts))
    ]
    decision = _strictest(verdict for shadow, verdict in said if not shadow)
    would = _strictest(verdict for _shadow, verdict in said)
    if would.effect == decision.effect:
        return decision
    return replace(decision, would={"effect": would.effect.value, "rule": would.rule})


def _strictest(verdicts: Iterable[Decision]) -> Decision:
    """The first of the strictest; silence asks."""
    silence = Decision(Effect.ASK, None, "", _("No rule covers this call, so a person decides."))
    return min(verdicts, key=lambda verdict: STRICTNESS[verdict.effect], default=silence)


@dataclass(frozen=True, slots=True)
class Heard:
    """One rule about one call. `gaps`: what keeps it from covering the call."""

    rule: CompiledRule
    gaps: list[str]
    # What it says; None if it does not cover the call or its condition does not hold.
    verdict: Decision | None

    @property
    def came_close(self) -> bool:
        return len(self.gaps) == 1 or (not self.gaps and self.verdict is None)


@dataclass(frozen=True, slots=True)
class Explanation:
    decision: Decision
    # In the order of the rules: those that spoke, and those that came close.
    heard: list[Heard]


def explain(book: RuleBook, subject: Subject) -> Explanation:
    facts = subject.facts()
    every = [_heard(rule, subject, facts) for rule in book.rules]
    told = [heard for heard in every if heard.verdict or heard.came_close]
    return Explanation(book.decide(subject), told)


def _heard(rule: CompiledRule, subject: Subject, facts: Mapping[str, Any]) -> Heard:
    gaps = list(rule.gaps(subject))
    return Heard(rule, gaps, None if gaps else rule.verdict(subject, facts))


def load() -> RuleBook:
    rules = Rule.objects.speaking().in_order().prefetch_related("agents", "owner_groups")
    return RuleBook(tuple(_compiled(rule) for rule in rules))


def _compiled(rule: Rule) -> CompiledRule:
    return CompiledRule(
        id=rule.pk,
        name=rule.name,
        effect=Effect(rule.effect),
        server=re.compile(translate(rule.server)),
        tool=re.compile(translate(rule.tool)),
        hint=Rule.Hint(rule.hint),
        agents=frozenset(agent.pk for agent in rule.agents.all()),
        groups=frozenset(group.name for group in rule.owner_groups.all()),
        reason=rule.reason,
        when=_condition(rule),
        shadow=rule.mode == Rule.Mode.SHADOW,
    )


def _condition(rule: Rule) -> Condition | str | None:
    if not rule.when:
        return None
    try:
        return conditions.compiled(rule.when, hints=rule.effect != Effect.ALLOW)
    except BadCondition as error:
        return str(error)
