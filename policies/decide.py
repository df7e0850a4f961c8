"""Decisions of rules on one call.

Rules are compiled once a change of configuration. Where no rule that covers an agent and a
definition has a condition, the decision is remembered, so that the agents' path pays a dictionary
look-up; otherwise the rules that cover them are, and their conditions run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import translate
from typing import Any, NamedTuple

from core.english import gettext as _
from inspection.results import ResultRules, rules_of
from inspection.strictness import combine_rules
from inspection.words import result_sentences
from policies import conditions, thresholds
from policies.conditions import CPU_MAX_S, BadCondition, Condition
from policies.flow import Flow
from policies.history import History
from policies.models import Effect, Limit, Rule
from policies.outgoing import Facts
from policies.thresholds import DEFAULT, BadThresholds, Threshold
from policies.tree import paths, tree
from policies.undecided import Undecided
from policies.unusual import Unusual
from registry.labels import Label
from registry.versions.search_index import risk

STRICTNESS = {Effect.DENY: 0, Effect.ASK: 1, Effect.ALLOW: 2}
REMEMBERED = 100_000
Thresholds = tuple[Threshold, ...]
SHOWN = 200
_MISSING = object()

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
    """The facts of a call that rules see, as plain values. `size`: of the arguments, in bytes."""

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
    # As agents name it.
    exposed: str = ""
    tags: tuple[str, ...] = ()
    # For information flow (registry/labels.py).
    labels: tuple[str, ...] = ()
    # The person whose credential the call carries to its server; "": nobody's own.
    credential: str = ""
    # The OAuth client by which the agent signed in; empty with a token of ours.
    client: str = ""
    # The groups in its token, an identity provider's; none with a token of ours. None: not known.
    token_groups: tuple[str, ...] | None = ()
    # To be read where RuleBook.lookbacks says so; without it, conditions that want it ask.
    history: History | None = None
    flow: Flow | None = None
    unusual: Unusual | None = None
    # What conditions take for the time of day; None: now.
    at: datetime | None = None

    def facts(self) -> Facts:
        """The values that conditions read."""
        groups = sorted(self.groups)
        facts = Facts(
            {
                "args": self.arguments,
                "tool.server": self.server,
                "tool.name": self.tool,
                "tool.tags": list(self.tags),
                conditions.HINTS: dict(self.hints),
                conditions.RISK: risk(self.hints).value,
                conditions.LABELS: list(self.labels),
                "agent.name": self.agent,
                "agent.owner": self.owner,
                "agent.groups": groups,
                # The person for whom an agent acts is its owner.
                "person.groups": groups,
                "credential.owner": self.credential,
                "client.id": self.client,
                "now": self.at or datetime.now(UTC),
            }
        )
        if self.token_groups is not None:
            facts[conditions.PROVIDER_GROUPS] = list(self.token_groups)
        for past in (self.history, self.flow, self.unusual):
            if past is not None:
                facts.update(past.facts())
        return facts


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    rule_id: int | None
    rule: str
    # For people: agents and approvers read it.
    reason: str
    # What rules that are only watched would have made of it, where that is something else.
    shadow_effect: Mapping[str, str] = field(default_factory=dict)
    # Of all rules that ask, together: who is asked, and for how long. None: as the installation
    # is set.
    thresholds: Thresholds = DEFAULT
    decide_within_s: int | None = None
    start_within_s: int | None = None
    confirm_grants: bool = False
    # Whether messages to approvers have the arguments: only if every rule that asks says so.
    shows_arguments: bool = False
    # Of the rule that decides, for agents: its name, if they may know it, and what it would allow.
    public_rule: str = ""
    instead: str = ""
    # Other arguments may be judged otherwise.
    conditional: bool = False
    # What all rules that apply demand for the call's results, beside the choices of its tool.
    results: ResultRules | None = None

    @property
    def who(self) -> str:
        """Whose yes it takes, as a sentence."""
        return thresholds.describe(self.thresholds)


class CallScope(NamedTuple):
    """The calls that a rule or a limit is about."""

    server: re.Pattern[str]
    tool: re.Pattern[str]
    hint: Rule.Hint
    agents: frozenset[int]
    groups: frozenset[str]

    @classmethod
    def of(cls, row: Rule | Limit) -> CallScope:
        return cls(
            re.compile(translate(row.server)),
            re.compile(translate(row.tool)),
            Rule.Hint(row.hint),
            frozenset(agent.pk for agent in row.agents.all()),
            frozenset(group.name for group in row.owner_groups.all()),
        )

    @property
    def for_every_agent(self) -> CallScope:
        return self._replace(agents=frozenset(), groups=frozenset())

    def covers(self, subject: Subject) -> bool:
        return next(self.gaps(subject), None) is None

    def gaps(self, subject: Subject) -> Iterator[str]:
        """The reasons why the call is none of them."""
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


@dataclass(frozen=True, slots=True)
class CompiledRule:
    id: int
    name: str
    effect: Effect
    scope: CallScope
    reason: str
    # A text instead of a condition: why it cannot be used.
    when: Condition | str | None = None
    shadow: bool = False
    thresholds: Thresholds = DEFAULT
    decide_within_s: int | None = None
    start_within_s: int | None = None
    confirm_grants: bool = False
    shows_arguments: bool = False
    instead: str = ""
    unnamed: bool = False
    results: ResultRules | None = None

    @property
    def asks(self) -> bool:
        """Whether people are asked because of it."""
        return self.effect == Effect.ASK and not self.shadow

    @property
    def lookbacks(self) -> frozenset[str]:
        return self.when.lookbacks if isinstance(self.when, Condition) else frozenset()

    def verdict(
        self, subject: Subject, facts: Mapping[str, Any], *, late: bool = False
    ) -> Decision | None:
        """The rule's verdict on a call that it covers; None if its condition does not hold.

        `late`: the conditions before took all the time that there is.
        """
        if self.when is None:
            return self.decision()
        try:
            if isinstance(self.when, str):
                raise Undecided(self.when)
            if late:
                raise Undecided(_("the conditions before it timed out"))
            return self.decision() if self.when.holds(facts, subject.size) else None
        except Undecided as error:
            return self._decision(Effect.ASK, self._undecided(str(error).rstrip(".")))

    def _undecided(self, why: str) -> str:
        if self.unnamed:
            return _("The condition of a rule could not be judged.")
        said = _("The condition of rule “%(rule)s” could not be judged: %(why)s.")
        return said % {"rule": self.name, "why": why}

    def decision(self) -> Decision:
        return self._decision(self.effect, self.reason or self._says_so())

    def _says_so(self) -> str:
        if self.unnamed:
            return _("A rule says so.")
        return _("Rule “%(rule)s” says so.") % {"rule": self.name}

    def _decision(self, effect: Effect, why: str) -> Decision:
        return Decision(
            effect,
            self.id,
            self.name,
            why,
            thresholds=self.thresholds,
            decide_within_s=self.decide_within_s,
            start_within_s=self.start_within_s,
            confirm_grants=self.confirm_grants,
            shows_arguments=self.shows_arguments,
            public_rule="" if self.unnamed else self.name,
            instead=self.instead,
            conditional=self.when is not None,
            results=self.results,
        )


Covering = tuple[CompiledRule, ...]


@dataclass(slots=True)
class RuleBook:
    rules: Covering
    # Whether any rule asks for what was before at all: else nobody looks further.
    backward: bool = False
    _known: dict[tuple[int, int], Decision | Covering] = field(default_factory=dict)

    def decide(self, subject: Subject) -> Decision:
        key = (subject.agent_id, subject.definition_id)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._settled(subject)
        return known if isinstance(known, Decision) else judged(known, subject)

    def always_denies(self, subject: Subject) -> bool:
        """Whether no condition, and so no argument, could change that it is denied."""
        return any(
            rule.effect == Effect.DENY and rule.when is None and not rule.shadow
            for rule in self.rules
            if rule.scope.covers(subject)
        )

    def lookbacks(self, subject: Subject) -> frozenset[str]:
        """The facts of the past that rules which cover it ask for; these are then read."""
        if not self.backward:
            return frozenset()
        asking = (rule for rule in self.rules if rule.lookbacks and rule.scope.covers(subject))
        return frozenset().union(*(rule.lookbacks for rule in asking))

    def _settled(self, subject: Subject) -> Decision | Covering:
        covering = tuple(rule for rule in self.rules if rule.scope.covers(subject))
        if all(rule.when is None for rule in covering):
            return judged(covering, subject)
        return _mattering(covering)


def _mattering(covering: Covering) -> Covering:
    """Drops unconditional rules that cannot decide: of these only the first of the strictest
    counts, and all that require approval or demand something of results."""
    always = [rule for rule in covering if rule.when is None and not rule.shadow]
    heard = min(always, key=lambda rule: STRICTNESS[rule.effect], default=None)
    if heard is not None and heard.effect == Effect.ASK:
        always = [rule for rule in always if rule.effect != Effect.ASK]
    return tuple(rule for rule in covering if rule not in always or rule is heard or rule.results)


def judged(covering: Covering, subject: Subject) -> Decision:
    facts = subject.facts()
    said = []
    began = time.thread_time()
    for rule in covering:
        late = rule.when is not None and time.thread_time() - began > CPU_MAX_S
        if verdict := rule.verdict(subject, facts, late=late):
            said.append((rule.shadow, verdict))
    enforced = [verdict for shadow, verdict in said if not shadow]
    watched = [verdict for shadow, verdict in said if shadow]
    decision = _combined(enforced)
    if not watched:
        return decision
    return replace(decision, shadow_effect=_shadow_effect(decision, enforced, watched))


def _combined(verdicts: Sequence[Decision]) -> Decision:
    """The deciding verdict, with what all of them demand for results."""
    decision = _deciding(verdicts)
    results = combine_rules(one.results for one in verdicts)
    return decision if results == decision.results else replace(decision, results=results)


def _deciding(verdicts: Sequence[Decision]) -> Decision:
    """The first of the strictest; but all rules that ask have to be satisfied. Silence asks."""
    silence = Decision(Effect.ASK, None, "", _("No rule covers this call, so a person decides."))
    first = min(verdicts, key=lambda verdict: STRICTNESS[verdict.effect], default=silence)
    if first.effect != Effect.ASK:
        return first
    asking = [verdict for verdict in verdicts if verdict.effect == Effect.ASK]
    return first if len(asking) < 2 else _as_strict_as_all(first, asking)


def _as_strict_as_all(first: Decision, asking: Sequence[Decision]) -> Decision:
    return replace(
        first,
        thresholds=thresholds.combine(*(one.thresholds for one in asking)),
        decide_within_s=_shortest(one.decide_within_s for one in asking),
        start_within_s=_shortest(one.start_within_s for one in asking),
        confirm_grants=any(one.confirm_grants for one in asking),
        shows_arguments=all(one.shows_arguments for one in asking),
    )


def _shortest(seconds: Iterable[int | None]) -> int | None:
    return min((one for one in seconds if one is not None), default=None)


def _shadow_effect(
    decision: Decision, enforced: Sequence[Decision], watched: Sequence[Decision]
) -> dict[str, str]:
    """The decision if monitor-only rules were enforced, where it differs; else {}."""
    shadow = _combined([*enforced, *watched])
    if shadow.effect != decision.effect:
        return {"effect": shadow.effect.value, "rule": shadow.rule}
    if shadow.thresholds == decision.thresholds:
        return {}
    return {"effect": shadow.effect.value, "rule": _asks_more(decision, watched), "who": shadow.who}


def _asks_more(decision: Decision, watched: Iterable[Decision]) -> str:
    asking = [verdict for verdict in watched if verdict.effect == Effect.ASK]
    now = decision.thresholds
    return next(
        (one.rule for one in asking if thresholds.combine(now, one.thresholds) != now),
        asking[0].rule,
    )


@dataclass(frozen=True, slots=True)
class RuleEvaluation:
    """One rule about one call. `gaps`: what keeps it from covering the call."""

    rule: CompiledRule
    gaps: list[str]
    # What it says; None if it does not cover the call or its condition does not hold.
    verdict: Decision | None
    # What its condition looked at, and what stood there; what is not there is left out.
    values: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def shown(self) -> list[tuple[str, str]]:
        return [(path, str(value)[:SHOWN]) for path, value in self.values]

    @property
    def demands(self) -> list[str]:
        """Its demands for the call's results, in sentences."""
        applies = self.verdict is not None and not self.rule.shadow
        return result_sentences(self.rule.results) if applies else []

    @property
    def came_close(self) -> bool:
        return len(self.gaps) == 1 or (not self.gaps and self.verdict is None)


@dataclass(frozen=True, slots=True)
class Explanation:
    decision: Decision
    # In the order of the rules: those that spoke, and those that came close.
    heard: list[RuleEvaluation]
    # Why nobody could approve it, where it asks.
    unmet: str = ""
    # Which limits cover it (policies/limits/explained.py), and what was used of them.
    limits: Sequence[Any] = ()
    # What is done to the tool's results, in sentences.
    results: Sequence[str] = ()
    # Of the tool, for information flow; and what its agent read lately, as far as that is known.
    labels: Sequence[Label] = ()
    flow: Flow | None = None

    @property
    def shadow_effect(self) -> Effect:
        """The effect if monitor-only rules were enforced."""
        return Effect(self.decision.shadow_effect["effect"])

    @property
    def limit_effect(self) -> Effect | None:
        """The effect of limits on it, where that is stricter than what rules do."""
        found = [one.effect for one in self.limits if one.effect]
        strictest = min(found, key=STRICTNESS.__getitem__, default=self.decision.effect)
        is_stricter = STRICTNESS[strictest] < STRICTNESS[self.decision.effect]
        return strictest if is_stricter else None

    @property
    def deciding_first(self) -> list[RuleEvaluation]:
        """The deciding rule, those that match too, and those that came close."""
        return sorted(self.heard, key=self._place)

    def _place(self, heard: RuleEvaluation) -> tuple[bool, bool, bool]:
        is_deciding = heard.verdict is not None and heard.rule.id == self.decision.rule_id
        return (not is_deciding, heard.verdict is None, heard.rule.shadow)


def explain(book: RuleBook, subject: Subject) -> Explanation:
    facts = subject.facts()
    every = [_evaluate(rule, subject, facts) for rule in book.rules]
    told = [heard for heard in every if heard.verdict or heard.came_close]
    return Explanation(book.decide(subject), told)


def _evaluate(rule: CompiledRule, subject: Subject, facts: Mapping[str, Any]) -> RuleEvaluation:
    gaps = list(rule.scope.gaps(subject))
    if gaps:
        return RuleEvaluation(rule, gaps, None)
    return RuleEvaluation(rule, gaps, rule.verdict(subject, facts), list(_values(rule, facts)))


def _values(rule: CompiledRule, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if not isinstance(rule.when, Condition):
        return
    for path in dict.fromkeys(paths(tree(rule.when.expression))):
        found = facts.get(path, _MISSING)
        if found is _MISSING and path.startswith("args."):
            found = _within(facts["args"], path.split(".")[1:])
        if found is not _MISSING:
            yield path, found


def _within(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def load() -> RuleBook:
    rules = Rule.objects.speaking().in_order().prefetch_related("agents", "owner_groups")
    book = tuple(_compiled(rule) for rule in rules)
    return RuleBook(book, backward=any(rule.lookbacks for rule in book))


def _compiled(rule: Rule) -> CompiledRule:
    return CompiledRule(
        id=rule.pk,
        name=rule.name,
        effect=Effect(rule.effect),
        scope=CallScope.of(rule),
        reason=rule.reason,
        when=_condition(rule),
        shadow=rule.mode == Rule.Mode.SHADOW,
        thresholds=_thresholds(rule),
        decide_within_s=rule.decide_within,
        start_within_s=rule.start_within,
        confirm_grants=rule.confirm_grants,
        shows_arguments=rule.shows_arguments,
        instead=rule.instead,
        unnamed=rule.unnamed,
        results=combine_rules([rules_of(rule.results)]),
    )


def _thresholds(rule: Rule) -> Thresholds:
    try:
        return thresholds.parse(rule.thresholds) or DEFAULT
    except BadThresholds:
        # Written past the forms, and no reason to decide nothing else.
        return (thresholds.NOBODY,)


def _condition(rule: Rule) -> Condition | str | None:
    if not rule.when:
        return None
    try:
        return conditions.compiled(rule.when, hints=rule.effect != Effect.ALLOW)
    except BadCondition as error:
        return str(error)
