"""What rules say about one agent and one tool.

Rules are compiled once a change of configuration; a decision that does not look at arguments is
then remembered, so that the agents' path pays a dictionary look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate

from django.utils.translation import gettext as _

from policies.models import Effect, Rule

STRICTEST_FIRST = (Effect.DENY, Effect.ASK, Effect.ALLOW)
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


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules look at; plain values."""

    agent_id: int
    agent: str
    groups: frozenset[str]
    definition_id: int
    server: str
    tool: str
    hints: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    rule_id: int | None
    rule: str
    # For people: agents and approvers read it.
    reason: str


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

    def covers(self, subject: Subject) -> bool:
        return (
            self.server.match(subject.server) is not None
            and self.tool.match(subject.tool) is not None
            and (not self.agents or subject.agent_id in self.agents)
            and (not self.groups or not self.groups.isdisjoint(subject.groups))
            and SAYS[self.hint](subject.hints)
        )

    def decision(self) -> Decision:
        why = self.reason or _("Rule “%(rule)s” says so.") % {"rule": self.name}
        return Decision(self.effect, self.id, self.name, why)


@dataclass(slots=True)
class RuleBook:
    rules: tuple[CompiledRule, ...]
    _known: dict[tuple[int, int], Decision] = field(default_factory=dict)

    def decide(self, subject: Subject) -> Decision:
        key = (subject.agent_id, subject.definition_id)
        decision = self._known.get(key)
        if decision is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            decision = self._known[key] = self._decide(subject)
        return decision

    def _decide(self, subject: Subject) -> Decision:
        covering = [rule for rule in self.rules if rule.covers(subject)]
        for effect in STRICTEST_FIRST:
            for rule in covering:
                if rule.effect == effect:
                    return rule.decision()
        return Decision(Effect.ASK, None, "", _("No rule covers this call, so a person decides."))


def load() -> RuleBook:
    rules = Rule.objects.filter(enabled=True).in_order().prefetch_related("agents", "owner_groups")
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
    )
