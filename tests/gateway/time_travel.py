"""Recorded calls, judged again by the rules of their own time: out of the entries of their changes.

`python -m tests.gateway.time_travel` does so with all calls of a database and prints what it found.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import django

if __name__ == "__main__":
    django.setup()

from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from accounts.models import Agent
from audit.models import Entry
from calls.models import Call
from calls.replay.recorded_calls import SubjectReader, sample, stream
from calls.replay.replaying import CallReplay
from policies import decide
from policies.models import Rule

if TYPE_CHECKING:
    from calls.replay.recorded_calls import RecordedCall
    from policies.decide import Decision, RuleBook

TRIES = 5
DAYS = 40
MEMBERS = ("effect", "mode", "server", "tool", "hint", "when")


class Comparison(NamedTuple):
    """`differing`: recorded reason and decision, of calls all of whose facts are of then."""

    differing: list[tuple[str, Decision]]
    exact: int
    total: int


def compared() -> Comparison:
    names = dict(Rule.objects.values_list("pk", "name"))
    differing, exact, total = [], 0, 0
    for call, decided, is_exact in replayed():
        total += 1
        exact += is_exact
        recorded = Call.objects.get(pk=call.id)
        # The reason names the rule, unless that has a reason, which entries do not keep.
        by = names.get(recorded.rule_id or 0, "")
        is_same = decided.reason == recorded.reason or (bool(by) and decided.rule == by)
        if is_exact and not (is_same and decided.effect == recorded.effect):
            differing.append((recorded.reason, decided))
    return Comparison(differing, exact, total)


def replayed() -> Iterator[tuple[RecordedCall, Decision, bool]]:
    """Each call with its decision by the rules of its time, and whether all facts are of then."""
    times, books = rules_then()
    taken = sample(days=DAYS, most=10**6, until=timezone.now() + timedelta(minutes=1))
    reader = SubjectReader(taken.since)
    replays = [
        CallReplay(one, one, reader, lookbacks_left=10**6, lookbacks_left_s=1e6) for one in books
    ]
    with transaction.atomic():
        for call in stream(taken):
            yield call, decision_at(call, times, replays), reader.is_exact(call)


def decision_at(call: RecordedCall, times: list[datetime], replays: list[CallReplay]) -> Decision:
    replay = replays[bisect_right(times, call.asked_at) - 1]
    # A busy machine can be too slow once to look back in time.
    decided = next(filter(None, (replay.decide(call) for _ in range(TRIES))), None)
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


def main() -> None:
    found = compared()
    differing = [f"{reason} | {decision.reason}" for reason, decision in found.differing]
    effects = sorted(set(Call.objects.values_list("effect", flat=True)))
    told = {"differing": differing, "exact": found.exact, "total": found.total}
    sys.stdout.write(json.dumps({**told, "effects": effects, "calls": Call.objects.count()}))


if __name__ == "__main__":
    main()
