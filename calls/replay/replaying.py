"""Recorded calls judged again, by the rules of now and by others: what would have been different.

The decisions are those of RuleBook.decide, as for a call that an agent makes. Limits are not
replayed: what they count depends on the calls before, which would have been others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from django.db import transaction

from calls.record.states import State
from calls.replay.recorded_calls import CallSample, RecordedCall, SubjectReader, stream
from policies import lookback
from policies.decide import Decision, RuleBook, Subject
from policies.models import Effect
from policies.thresholds import clauses

# Calls whose past is read for conditions: each takes a query of up to 0.2 s, all of them so long.
LOOKBACKS_MAX, LOOKBACKS_S = 5_000, 30.0
ROWS_MAX = 200
NAMED_MAX = 1_000
EXAMPLES_MAX = 10


class ChangedDecision(NamedTuple):
    """The two decisions on a call where they differ."""

    call: RecordedCall
    tool: str
    agent: str
    before: Decision
    after: Decision

    @property
    def effects(self) -> tuple[str, str]:
        return self.before.effect.value, self.after.effect.value


@dataclass(slots=True)
class ReplayResult:
    """Counts over the calls that were replayed."""

    sample: CallSample
    taken: int = 0
    # Decided by the rules of now as the record says of then.
    as_recorded: int = 0
    changed: int = 0
    effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_rule: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    by_agent: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    by_tool: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    # By who decides, as a sentence: calls that people would be asked about, and were not.
    asked: Counter[str] = field(default_factory=Counter)
    # By tool: votes that more, or fewer, calls need.
    votes: Counter[str] = field(default_factory=Counter)
    # The same of those among them whose past was read, and how many those are.
    votes_by_past: Counter[str] = field(default_factory=Counter)
    past_read: int = 0
    # Calls that the rules of CallReplay.alone decide, and those of them that people denied.
    matched: int = 0
    people_denied: int = 0
    would_run: list[dict[str, Any]] = field(default_factory=list)
    would_run_total: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    # Of the facts of these calls, not all are known as they were.
    approximate: int = 0
    # Left out: arguments or a past that could not be read, or more pasts than are read.
    unread: int = 0
    first_at: datetime | None = None

    @property
    def bound_points(self) -> float | None:
        """None where the calls that were judged are not drawn by chance from all."""
        return None if self.unread else round(100 * self.sample.bound(self.taken), 2)

    def all_votes(self) -> dict[str, float] | None:
        """By tool, of all calls: those of the sample stand for the rest, and those whose past was
        read for those whose past was not. None where it was read of none."""
        if self.unread and not self.past_read:
            return None
        unread = self.unread / self.past_read if self.unread else 0.0
        return {
            tool: self.sample.factor * (n + unread * self.votes_by_past[tool])
            for tool, n in self.votes.items()
        }

    def plain(self) -> dict[str, Any]:
        """The counts as JSON, with the most frequent rows only."""
        before_after = ("before", "after", "calls")
        return {
            "since": self.sample.since.isoformat(),
            "until": self.sample.until.isoformat(),
            "calls": self.sample.total,
            "replayed": self.taken,
            "is_sample": not self.sample.is_whole,
            "bound_points": self.bound_points,
            "as_recorded": self.as_recorded,
            "approximate": self.approximate,
            "unread": self.unread,
            "changed": self.changed,
            "effects": _rows(self.effects, *before_after),
            "by_rule": _rows(self.by_rule, "rule_before", "rule_after", *before_after),
            "by_agent": _rows(self.by_agent, "agent", *before_after),
            "by_tool": _rows(self.by_tool, "tool", *before_after),
            "asked": _rows(Counter({(who,): n for who, n in self.asked.items()}), "who", "calls"),
            "would_run": self.would_run,
            "would_run_total": self.would_run_total,
            "examples": self.examples,
        }


def _rows(counted: Counter[Any], *names: str) -> list[dict[str, Any]]:
    ordered = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return [dict(zip(names, (*key, n), strict=True)) for key, n in ordered[:ROWS_MAX]]


@dataclass(slots=True)
class CallReplay:
    before: RuleBook
    after: RuleBook
    reader: SubjectReader
    # Of tools that have other labels with the other rules.
    labels_after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Some of the other rules, whose calls are counted whatever the rest decides.
    alone: RuleBook = field(default_factory=lambda: RuleBook(()))
    lookbacks_left: int = LOOKBACKS_MAX
    lookbacks_left_s: float = LOOKBACKS_S
    # What a book remembers is right for one set of groups only.
    _books: dict[frozenset[str], tuple[RuleBook, RuleBook, RuleBook]] = field(default_factory=dict)

    def run(self, sample: CallSample) -> ReplayResult:
        result = ReplayResult(sample)
        with transaction.atomic():
            for call in stream(sample):
                self._add(result, call)
        return result

    def decide(self, call: RecordedCall) -> tuple[Decision, Decision] | None:
        """By the rules of now and by the others; None where its facts cannot be read."""
        subject = self._subject(call)
        return None if subject is None else self._decide(call, subject)[:2]

    def _subject(self, call: RecordedCall) -> Subject | None:
        try:
            subject = self.reader.subject(call, with_arguments=self._is_conditional)
        except ValueError:
            return None
        return subject if self._read_past(call, subject) else None

    def _decide(self, call: RecordedCall, subject: Subject) -> tuple[Decision, Decision, Decision]:
        """The third by the rules that are looked at alone."""
        before, after, alone = self._books_of(subject.groups)
        decided = before.decide(subject)
        subject.labels = self.labels_after.get(self.reader.tool_of(call), subject.labels)
        return decided, after.decide(subject), alone.decide(subject)

    @property
    def _is_conditional(self) -> bool:
        return any(rule.when is not None for rule in (*self.before.rules, *self.after.rules))

    def _books_of(self, groups: frozenset[str]) -> tuple[RuleBook, RuleBook, RuleBook]:
        if groups not in self._books:
            three = (self.before, self.after, self.alone)
            before, after, alone = (RuleBook(one.rules, one.backward) for one in three)
            self._books[groups] = (before, after, alone)
        return self._books[groups]

    def _read_past(self, call: RecordedCall, subject: Subject) -> bool:
        """Whether what conditions ask for could be read."""
        wanted = self._past_of(subject)
        if not wanted:
            return True
        if not self.lookbacks_left or self.lookbacks_left_s <= 0:
            return False
        began = monotonic()
        self.lookbacks_left -= 1
        both = RuleBook((*self.before.rules, *self.after.rules), backward=True)
        lookback.read(both, subject, but=call.id, at=call.asked_at)
        self.lookbacks_left_s -= monotonic() - began
        return all(getattr(subject, root) is not None for root in wanted)

    def _past_of(self, subject: Subject) -> set[str]:
        """The parts of the past that conditions ask for."""
        return {*self.before.lookbacks(subject), *self.after.lookbacks(subject)}

    def _add(self, result: ReplayResult, call: RecordedCall) -> None:
        subject = self._subject(call)
        if subject is None:
            result.unread += 1
            return
        has_past = bool(self._past_of(subject))
        before, after, alone = self._decide(call, subject)
        result.taken += 1
        result.past_read += has_past
        result.first_at = min(call.asked_at, result.first_at or call.asked_at)
        result.as_recorded += before.effect == call.effect
        result.approximate += not self.reader.is_exact(call)
        if alone.rule_id is not None:
            result.matched += 1
            result.people_denied += call.state == State.DENIED
        if is_other(before, after):
            agent, tool = self.reader.agent_of(call), self.reader.tool_of(call)
            _count(result, ChangedDecision(call, tool, agent, before, after), has_past=has_past)


def is_other(before: Decision, after: Decision) -> bool:
    """Another effect, or other people to ask."""
    if before.effect != after.effect:
        return True
    return after.effect == Effect.ASK and before.thresholds != after.thresholds


def _count(result: ReplayResult, one: ChangedDecision, *, has_past: bool) -> None:
    result.changed += 1
    result.effects[one.effects] += 1
    result.by_rule[one.before.rule, one.after.rule, *one.effects] += 1
    result.by_agent[one.agent, *one.effects] += 1
    result.by_tool[one.tool, *one.effects] += 1
    if one.after.effect == Effect.ASK:
        result.asked[one.after.who] += 1
    votes = _votes(one.after) - _votes(one.before)
    result.votes[one.tool] += votes
    result.votes_by_past[one.tool] += votes * has_past
    if len(result.examples) < EXAMPLES_MAX:
        result.examples.append(_named(one))
    if one.after.effect == Effect.ALLOW and is_denied(one.call):
        result.would_run_total += 1
        if len(result.would_run) < NAMED_MAX:
            result.would_run.append(_named(one))


def is_denied(call: RecordedCall) -> bool:
    """By rules, or by people."""
    return _denied_by(call) is not None


def _denied_by(call: RecordedCall) -> str | None:
    if call.state == State.DENIED:
        return "people"
    return "rules" if call.effect == Effect.DENY else None


def _votes(decision: Decision) -> int:
    """How many approvals it takes at most: one vote may count for several rules."""
    if decision.effect != Effect.ASK:
        return 0
    return sum(min(one.approve for one in clause) for clause in clauses(decision.thresholds))


def _named(one: ChangedDecision) -> dict[str, Any]:
    call = one.call
    return {
        "call": str(call.id),
        "at": call.asked_at.isoformat(),
        "agent": one.agent,
        "tool": one.tool,
        "denied_by": _denied_by(call),
        "rule_before": one.before.rule,
        "rule_after": one.after.rule,
        "before": one.before.effect.value,
        "after": one.after.effect.value,
    }
