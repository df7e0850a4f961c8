"""The workload of approvers in one week: how much they decided, how fast, and what they might not
have to be asked. Eight queries, whatever there is.

The time to decide is from when the card was first shown to the person to their vote. Votes on calls
whose card was never shown to them count as decided, and in no time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import connection
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from accounts.models import User, shown_name
from approvals import expired_calls
from approvals.expired_calls import ExpiredCall
from calls.models import Amendment
from policies.models import Rule

Key = TypeVar("Key")
SEE_RULES = "policies.view_rule"
WEEK = timedelta(days=7)
LOOKED_AT = 20_000
# So many approvals by one person within so short a time are an outlier.
BURST = 10
BURST_WITHIN = timedelta(minutes=3)
# A rule that asked so often for one tool in four weeks, and always got a yes, is proposed.
PROPOSE_FROM = 10
PROPOSE_OVER = timedelta(days=28)

_VOTES = """
SELECT v.person_id, u.username, u.first_name, v.approve, v.at,
       extract(epoch FROM v.at - s.at)::float, c.rule_id
FROM (
    SELECT * FROM approvals_vote
    WHERE fallen_at IS NULL AND at >= %(since)s AND at < %(until)s ORDER BY at DESC LIMIT %(most)s
) v
JOIN accounts_user u ON u.id = v.person_id
JOIN calls_call c ON c.id = v.approval_id
LEFT JOIN approvals_cardview s
    ON s.call_id = v.approval_id AND s.person_id = v.person_id AND s.at <= v.at
ORDER BY v.at
"""
_RULES = """
SELECT c.rule_id, c.tool_name, array_agg(DISTINCT c.agent_id) FILTER (WHERE m.ours),
       count(*) FILTER (WHERE m.ours)
FROM calls_call c JOIN approvals_approval a ON a.call_id = c.id
-- Of a reader who sees groups: the calls on which people of these groups voted.
CROSS JOIN LATERAL (SELECT %(people)s::int[] IS NULL OR EXISTS (
    SELECT FROM approvals_vote v WHERE v.approval_id = a.call_id AND v.fallen_at IS NULL
        AND v.person_id = ANY(%(people)s)) AS ours) m
WHERE a.decided_at >= %(since)s AND a.decided_at < %(until)s AND a.state <> 'withdrawn'
  AND c.rule_id IS NOT NULL
GROUP BY c.rule_id, c.tool_name
HAVING count(*) FILTER (WHERE m.ours) >= %(least)s
   AND bool_and(a.state = 'approved' AND c.amendment_id IS NULL)
ORDER BY 4 DESC LIMIT 20
"""
# The newest call of each that the reader approved alone: a standing approval is made from it.
_ALONE = """
SELECT DISTINCT ON (c.rule_id, c.tool_name) c.rule_id, c.tool_name, c.id
FROM calls_call c JOIN approvals_approval a ON a.call_id = c.id
JOIN approvals_vote v ON v.approval_id = a.call_id
WHERE c.rule_id = ANY(%(rules)s) AND a.state = 'approved' AND a.decided_at >= %(since)s
  AND v.person_id = %(person)s AND v.approve AND v.fallen_at IS NULL
  AND NOT EXISTS (SELECT FROM approvals_vote o WHERE o.approval_id = a.call_id
                  AND o.person_id <> v.person_id AND o.approve AND o.fallen_at IS NULL)
ORDER BY c.rule_id, c.tool_name, a.decided_at DESC
"""


class TimedVote(NamedTuple):
    """One vote that stands; `seconds` from when its card was shown, if it was."""

    person: int
    username: str
    display: str
    approve: bool
    at: datetime
    seconds: float | None
    # Of the rule that held the call.
    rule: int | None = None


class TimedEdit(NamedTuple):
    """One edit of a call that a rule held."""

    person: int
    username: str
    display: str
    at: datetime
    rule: int | None


class Burst(NamedTuple):
    """Many approvals of one person in a short time."""

    name: str
    approvals: int
    seconds: float
    at: datetime


@dataclass
class WorkloadRow:
    """The figures of one person, group, rule or hour. `key`: of the person or the rule, if it is
    still there."""

    name: str
    key: int | None = None
    votes: list[TimedVote] = field(default_factory=list)
    edits: int = 0
    # Calls that these people could have decided, or that the rule held, or that ended in the hour.
    expired: int = 0
    # Of those, how many were shown to one of these people, or to anybody.
    abandoned: int = 0

    @property
    def decided(self) -> int:
        return len(self.votes)

    @property
    def denied_percent(self) -> int:
        denied = sum(not vote.approve for vote in self.votes)
        return round(100 * denied / len(self.votes)) if self.votes else 0

    @property
    def timed(self) -> int:
        return sum(vote.seconds is not None for vote in self.votes)

    @property
    def median_s(self) -> float | None:
        known = [vote.seconds for vote in self.votes if vote.seconds is not None]
        return median(known) if known else None


@dataclass(frozen=True, slots=True)
class RuleProposal:
    """A rule that asks about a tool and always got a yes."""

    rule: Rule
    tool: str
    agents: Sequence[int]
    asked: int

    @property
    def query(self) -> list[tuple[str, str]]:
        server, _dot, tool = self.tool.partition(".")
        named = [("agent", str(one)) for one in self.agents[:20]]
        return [("relax", str(self.rule.pk)), ("server", server), ("tool", tool), *named]


@dataclass(frozen=True, slots=True)
class Workload:
    groups: list[WorkloadRow]
    people: list[WorkloadRow]
    rules: list[WorkloadRow]
    bursts: list[Burst]
    # Of the day, in the reader's time zone; without those in which there was nothing.
    hours: list[WorkloadRow]
    expired: int
    # Of those, how many cards somebody had been shown.
    abandoned: int
    proposals: list[RuleProposal]
    is_sampled: bool


def sees_all(person: User) -> bool:
    """Whether the figures of all groups and all approvers are shown to this person."""
    return person.has_perm("accounts.view_user")


def read_for(person: User, since: datetime) -> Workload:
    """The week from `since` on, as far as this person may see it."""
    everybodys = sees_all(person)
    groups = None if everybodys else person.group_names
    found = read(groups, since, own=None if everybodys else person)
    return found if person.has_perm(SEE_RULES) else replace(found, rules=[], proposals=[])


def read(groups: Collection[str] | None, since: datetime, *, own: User | None = None) -> Workload:
    """`groups`: the reader's, None for all; `own`: the only person whose own row is shown, None for
    everybody's."""
    given: dict[str, Any] = {"since": since, "until": since + WEEK, "most": LOOKED_AT}
    every = [TimedVote(*row) for row in _rows(_VOTES, given)]
    members = _members(groups)
    counted = None if groups is None else [*members, *([own.pk] if own else [])]
    ended, names = expired_calls.read_expired(given)
    facts = _Facts(
        [one for one in every if counted is None or one.person in counted],
        [one for one in _edits(given) if counted is None or one.person in counted],
        ended,
    )
    people = _people(facts, names, counted)
    # Of a reader who sees groups: the calls that they could have decided.
    seen = facts._replace(expired=[one for one in ended if own is None or own.pk in one.asked])
    return Workload(
        groups=_groups(people, members, ended),
        people=[row for pk, row in people.items() if own is None or pk == own.pk],
        rules=_by_rule(seen),
        bursts=[one for pk, row in people.items() if own is None or pk == own.pk
                for one in find_bursts(row.name, row.votes)],
        hours=_by_hour(seen),
        expired=len(seen.expired),
        abandoned=sum(bool(one.shown) for one in seen.expired),
        proposals=_proposals(since + WEEK, counted),
        is_sampled=LOOKED_AT in (len(every), len(ended)),
    )  # fmt: skip


def find_bursts(name: str, votes: Iterable[TimedVote]) -> list[Burst]:
    """Stretches of approvals, each within BURST_WITHIN, from the first on."""
    found, times = [], [vote.at for vote in votes if vote.approve]
    first = 0
    while first < len(times):
        last = first
        while last + 1 < len(times) and times[last + 1] - times[first] <= BURST_WITHIN:
            last += 1
        if last - first + 1 >= BURST:
            seconds = (times[last] - times[first]).total_seconds()
            found.append(Burst(name, last - first + 1, seconds, times[first]))
            first = last
        first += 1
    return found


class _Facts(NamedTuple):
    """Votes, edits and expired calls of one week."""

    votes: Sequence[TimedVote]
    edits: Sequence[TimedEdit]
    expired: Sequence[ExpiredCall]

    def rows_by(
        self, key: Callable[[TimedVote | TimedEdit | ExpiredCall], Key]
    ) -> dict[Key, WorkloadRow]:
        rows: dict[Key, WorkloadRow] = defaultdict(lambda: WorkloadRow(""))
        for vote in self.votes:
            rows[key(vote)].votes.append(vote)
        for edit in self.edits:
            rows[key(edit)].edits += 1
        for call in self.expired:
            rows[key(call)].expired += 1
            rows[key(call)].abandoned += bool(call.shown)
        return rows


def _people(
    facts: _Facts, names: Mapping[int, str], counted: Collection[int] | None
) -> dict[int, WorkloadRow]:
    """Rows of all who voted, edited, or could have decided on a call that expired."""
    rows: dict[int, WorkloadRow] = {}
    for vote in facts.votes:
        name = shown_name(vote.username, vote.display)
        rows.setdefault(vote.person, WorkloadRow(name, vote.person)).votes.append(vote)
    for one in facts.edits:
        name = shown_name(one.username, one.display)
        rows.setdefault(one.person, WorkloadRow(name, one.person)).edits += 1
    for call in facts.expired:
        for person in call.asked if counted is None else call.asked.intersection(counted):
            row = rows.setdefault(person, WorkloadRow(names[person], person))
            row.expired += 1
            row.abandoned += person in call.shown
    ordered = sorted(rows.items(), key=lambda item: (-item[1].decided, item[1].name))
    return dict(ordered)


def _groups(
    people: dict[int, WorkloadRow],
    members: dict[int, list[str]],
    expired: Iterable[ExpiredCall],
) -> list[WorkloadRow]:
    rows: dict[str, WorkloadRow] = {}
    for person, row in people.items():
        for name in members.get(person, ()):
            group = rows.setdefault(name, WorkloadRow(name))
            group.votes += row.votes
            group.edits += row.edits
    for call in expired:
        # Once, however many of its members it asked.
        asked = {name for person in call.asked for name in members.get(person, ())}
        shown = {name for person in call.shown for name in members.get(person, ())}
        for name in asked:
            rows[name].expired += 1
            rows[name].abandoned += name in shown
    return sorted(rows.values(), key=lambda row: row.name)


def _by_rule(facts: _Facts) -> list[WorkloadRow]:
    rows = facts.rows_by(lambda one: one.rule)
    names = dict(Rule.objects.filter(pk__in=[pk for pk in rows if pk]).values_list("pk", "name"))
    for pk, row in rows.items():
        row.name = names.get(pk, _("a removed rule")) if pk else _("no rule")
        row.key = pk if pk in names else None
    return sorted(rows.values(), key=lambda row: (-row.decided, row.name))


def _by_hour(facts: _Facts) -> list[WorkloadRow]:
    rows = facts.rows_by(lambda one: localtime(one.at).hour)
    for hour, row in rows.items():
        row.name = f"{hour:02}:00"
    return sorted(rows.values(), key=lambda row: row.name)


def _members(groups: Collection[str] | None) -> dict[int, list[str]]:
    """Names of groups by person."""
    found: dict[int, list[str]] = defaultdict(list)
    rows = User.groups.through.objects.values_list("user_id", "group__name")
    for person, name in rows if groups is None else rows.filter(group__name__in=groups):
        found[person].append(name)
    return found


def _edits(given: dict[str, Any]) -> list[TimedEdit]:
    made = Amendment.objects.filter(at__gte=given["since"], at__lt=given["until"])
    names = ("person_id", "person__username", "person__first_name", "at", "call__rule_id")
    return [TimedEdit(*row) for row in made.order_by("-at").values_list(*names)[:LOOKED_AT]]


def _proposals(until: datetime, people: list[int] | None) -> list[RuleProposal]:
    """`people`: those whose decisions are counted, None for everybody."""
    given = {"since": until - PROPOSE_OVER, "until": until, "least": PROPOSE_FROM, "people": people}
    rows = _rows(_RULES, given)
    rules = Rule.objects.in_bulk([row[0] for row in rows])
    return [
        RuleProposal(rules[pk], tool, agents, asked)
        for pk, tool, agents, asked in rows
        if pk in rules
    ]


def approved_alone(
    proposals: Collection[RuleProposal], person: User, until: datetime
) -> dict[tuple[int, str], UUID]:
    """For each rule and tool of these the newest call that the person approved alone."""
    rules = [one.rule.pk for one in proposals]
    given = {"rules": rules, "since": until - PROPOSE_OVER, "person": person.pk}
    return {(rule, tool): pk for rule, tool, pk in _rows(_ALONE, given)} if rules else {}


def _rows(sql: str, given: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())
