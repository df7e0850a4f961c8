"""The report on a period's calls: who ran what, and who allowed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import TextChoices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit.display_names import shown_names
from audit.filters import Filters
from audit.finding import Bounds, ids

# So many entries are read at most; the page says so when that was not all.
READ = 6000
SHOWN = 12
QUOTED = 3

# `fate`: how it left the queue; at most one move does. Votes before the last edit fell with it.
CALLS = """
    SELECT b.call_id, b.at, b.agent, b.person, b.tool, b.to_state,
           COALESCE(b.details ->> 'effect', ''), COALESCE(b.details ->> 'rule', ''), b.reason,
           COALESCE(b.details ->> 'refusal', ''), COALESCE(b.details ->> 'granted_by', ''),
           now.to_state, COALESCE(fate.to_state, ''), COALESCE(fate.decided_by, '[]'),
           COALESCE(edits.people, '{}'), COALESCE(votes.cast_now, '[]')
    FROM audit_entry b
    LEFT JOIN LATERAL (
        SELECT m.to_state FROM audit_entry m
        WHERE m.call_id = b.call_id AND m.seq IS NOT NULL ORDER BY m.seq DESC LIMIT 1
    ) now ON true
    LEFT JOIN LATERAL (
        SELECT m.to_state, m.details -> 'decided_by' AS decided_by FROM audit_entry m
        WHERE b.to_state = 'held' AND m.call_id = b.call_id AND m.seq IS NOT NULL
          AND m.from_state = 'held' AND m.to_state <> 'held' LIMIT 1
    ) fate ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(DISTINCT m.actor ORDER BY m.actor) AS people, max(m.id) AS last
        FROM audit_entry m
        WHERE b.to_state = 'held' AND m.call_id = b.call_id AND m.seq IS NOT NULL
          AND m.from_state = 'held' AND m.to_state = 'held'
    ) edits ON true
    LEFT JOIN LATERAL (
        SELECT jsonb_agg(jsonb_build_array(
            v.actor_id, v.actor, v.details -> 'approve', v.reason,
            v.details -> 'single_person') ORDER BY v.id) AS cast_now
        FROM audit_entry v
        WHERE b.to_state = 'held' AND v.call_id = b.call_id AND v.seq IS NULL
          AND v.action = 'approval.voted' AND v.id > COALESCE(edits.last, 0)
          AND NOT EXISTS (
            SELECT FROM audit_entry t
            WHERE t.call_id = v.call_id AND t.seq IS NULL AND t.id > v.id AND (
                t.action = 'approval.taken_back' AND t.actor_id = v.actor_id
                OR t.action = 'approval.voided' AND t.details ->> 'voter' = v.actor_id::text))
    ) votes ON true
    WHERE b.id = ANY(%s) AND b.seq = 1
    ORDER BY b.id DESC
"""


class Verdict(TextChoices):
    """The reason why a call ran or did not. Each call has exactly one."""

    ALLOWED = "allowed", _("Allowed by policy")
    STANDING = "standing", _("Allowed by a standing approval")
    APPROVED = "approved", _("Approved by people")
    DENIED = "denied", _("Denied by people")
    PENDING = "held", _("Pending approval")
    EXPIRED = "expired", _("Expired before people decided")
    WITHDRAWN = "withdrawn", _("Withdrawn before people decided")
    SUPERSEDED = "superseded", _("Superseded before people decided")
    LOST = "unknown", _("Pending when a backup was restored")
    BLOCKED = "blocked", _("Blocked by policy")
    NOT_WAITED = "not_waited", _("Needed approval, and was not to wait for it")
    INVALID = "invalid", _("Invalid request")
    STOPPED = "frozen", _("Stopped by an emergency stop")
    NOT_SIGNED_IN = "sign_in", _("Nobody had signed in at the server")
    OUT_OF_SCOPE = "scope", _("Outside the scope of the agent's token")
    # Of entries that do not say why, as earlier versions wrote them.
    REFUSED = "refused", _("Blocked before policy was evaluated")


# Of a call that was refused, by what its first entry says; earlier versions refused invalid
# requests like others.
_REFUSALS = {"unknown_tool": Verdict.INVALID, "invalid": Verdict.INVALID, "key": Verdict.INVALID}
_REFUSALS |= {
    "frozen": Verdict.STOPPED,
    "sign_in": Verdict.NOT_SIGNED_IN,
    "scope": Verdict.OUT_OF_SCOPE,
    "limit": Verdict.BLOCKED,
}
_BEFORE_RULES = (
    Verdict.INVALID,
    Verdict.STOPPED,
    Verdict.NOT_SIGNED_IN,
    Verdict.OUT_OF_SCOPE,
    Verdict.REFUSED,
)
_UNDECIDED = (
    Verdict.PENDING,
    Verdict.EXPIRED,
    Verdict.WITHDRAWN,
    Verdict.SUPERSEDED,
    Verdict.LOST,
)
_BY_RULES = {"deny": Verdict.BLOCKED, "ask": Verdict.NOT_WAITED}


class CastVote(NamedTuple):
    """A vote that stands. `approve` is None where the entry's details were forgotten."""

    person_id: int | None
    who: str
    approve: bool | None
    reason: str
    is_alone: bool | None

    @property
    def name(self) -> str:
        # Who had a part in the call themselves, being alone, is called so.
        alone = gettext("%(who)s (single-person mode)") % {"who": self.who}
        return alone if self.is_alone else self.who


class ReportedCall(NamedTuple):
    """One call, from asking to where it is now, and by whose leave."""

    call_id: UUID
    at: datetime
    agent: str
    person: str
    tool: str
    first: str
    effect: str
    rule: str
    # Why policy decided so, or why it was refused.
    reason: str
    refusal: str
    granted_by: str
    state: str
    fate: str
    # Ids of the people whose votes made the decision. Earlier versions did not write it.
    decided_by: list[int]
    edited_by: list[str]
    votes: list[CastVote]

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> ReportedCall:
        *facts, decided_by, edited_by, votes = row
        cast = [CastVote(*vote) for vote in orjson.loads(votes)]
        return cls._make([*facts, orjson.loads(decided_by), edited_by, cast])

    @property
    def deciders(self) -> list[str]:
        """Usernames of those who had a part in deciding it."""
        return [self.granted_by, *self.edited_by, *(vote.who for vote in self.votes)]

    def shown_as(self, names: Mapping[str, str]) -> ReportedCall:
        """The same with other names of its deciders."""
        return self._replace(
            granted_by=names.get(self.granted_by, self.granted_by),
            edited_by=[names.get(name, name) for name in self.edited_by],
            votes=[vote._replace(who=names.get(vote.who, vote.who)) for vote in self.votes],
        )

    @property
    def verdict(self) -> Verdict:
        if self.first == "held":
            return Verdict(self.fate or "held")
        if self.first == "invalid":
            return Verdict.INVALID
        if self.first == "refused":
            refused = _BY_RULES.get(self.effect) or _REFUSALS.get(self.refusal)
            return refused or Verdict.REFUSED
        return Verdict.STANDING if self.effect == "ask" else Verdict.ALLOWED

    @property
    def voices(self) -> list[CastVote]:
        """The votes that decided it; of a call that people did not decide, all that stand."""
        approve = {Verdict.APPROVED: True, Verdict.DENIED: False}.get(self.verdict)
        if approve is None:
            return self.votes
        agreed = [vote for vote in self.votes if vote.approve is approve]
        return [v for v in agreed if not self.decided_by or v.person_id in self.decided_by]

    @property
    def who(self) -> str:
        if self.verdict == Verdict.STANDING:
            return self.granted_by
        return ", ".join(dict.fromkeys(vote.name for vote in self.voices))

    @property
    def sentence(self) -> tuple[Any, ...]:
        """The facts that calls of one group have in common."""
        edited_by = ", ".join(self.edited_by)
        return (self.agent, self.person, self.tool, self.verdict, self.who, self.rule, edited_by)


@dataclass(slots=True)
class Group:
    """Calls that one sentence is true of."""

    agent: str
    person: str
    tool: str
    verdict: Verdict
    # Who approved, denied, or voted without deciding it; or whose standing approval it was.
    who: str
    rule: str
    edited_by: str
    calls: list[ReportedCall] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.calls)

    @property
    def shown(self) -> list[ReportedCall]:
        return self.calls[:SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.calls) - SHOWN)

    @property
    def states(self) -> list[tuple[str, int]]:
        return _counted(call.state for call in self.calls)

    @property
    def is_undecided(self) -> bool:
        return self.verdict in _UNDECIDED

    @property
    def is_by_policy(self) -> bool:
        """Are its reasons those of rules?"""
        return self.verdict not in _BEFORE_RULES

    @property
    def quotes(self) -> list[tuple[str, str]]:
        """The newest reasons that people gave with their votes, as (who, text)."""
        said = ((vote.name, vote.reason) for call in self.calls for vote in call.voices)
        return list(dict.fromkeys(one for one in said if one[1]))[:QUOTED]

    @property
    def reasons(self) -> list[str]:
        """Why rules decided so, or why it was refused: never a person's words."""
        if self.verdict in (Verdict.ALLOWED, Verdict.STANDING):
            return []
        return list(dict.fromkeys(call.reason for call in self.calls if call.reason))[:QUOTED]


class RoleEntry(NamedTuple):
    """One entry that changed who may decide."""

    id: int
    at: datetime
    actor: str
    action: str
    person: str
    role: str


@dataclass(frozen=True, slots=True)
class Report:
    groups: list[Group]
    calls: int
    tools: int
    states: list[tuple[str, int]]
    # Every call once, in the order of Verdict.
    verdicts: list[tuple[Verdict, int]]
    # What people and administrators did besides calls: (action, how often).
    acts: list[tuple[str, int]]
    # What changed who may decide.
    roles: list[RoleEntry]
    cut: bool

    @property
    def people(self) -> Iterator[str]:
        """Usernames as entries have them."""
        yield from (group.person for group in self.groups)
        yield from (name for role in self.roles for name in (role.actor, role.person))


# Of what happens to a call: not every entry of it has these.
HAPPENS = ("state", "person", "action")
FIRST = """
    SELECT b.id FROM audit_entryrow b
    WHERE b.seq = 1 AND b.call_id IN (SELECT e.call_id FROM audit_entryrow e WHERE e.id = ANY(%s))
"""


def report(filters: Filters, within: Bounds) -> Report:
    """The calls that were asked for; where `filters` say what happened to them, or who did
    something, the calls to which that happened."""
    wanted = ids(filters, within, most=READ)
    firsts = wanted
    if any(name in filters.given for name in HAPPENS):
        firsts = [pk for (pk,) in _rows(FIRST, wanted)]
    told = reported(firsts)
    groups: dict[tuple[Any, ...], Group] = {}
    for call in told:
        groups.setdefault(call.sentence, Group(*call.sentence)).calls.append(call)
    verdicts = Counter(call.verdict for call in told)
    return Report(
        groups=sorted(groups.values(), key=lambda group: -group.count),
        calls=len(told),
        tools=len({call.tool for call in told}),
        states=_counted(call.state for call in told),
        verdicts=[(verdict, verdicts[verdict]) for verdict in Verdict if verdicts[verdict]],
        acts=_rows(ACTS, wanted),
        roles=[RoleEntry(*row) for row in _rows(ROLES, wanted)],
        cut=len(wanted) == READ,
    )


def reported(firsts: list[int], people: Mapping[str, str] | None = None) -> list[ReportedCall]:
    """The calls of these first entries, newest first; who decided, with display names: those of
    `people`, or as they are read here."""
    calls = [ReportedCall.of_row(row) for row in _rows(CALLS, firsts)]
    shown = people
    if shown is None:
        shown = shown_names(name for call in calls for name in call.deciders)
    return [call.shown_as(shown) for call in calls] if shown else calls


ACTS = """
    SELECT action, count(*) FROM audit_entry
    WHERE id = ANY(%s) AND actor_kind = 'person' GROUP BY 1 ORDER BY 2 DESC, 1
"""
ROLES = """
    SELECT id, at, actor, action, COALESCE(details ->> 'person', ''),
           COALESCE(details ->> 'role', '')
    FROM audit_entry
    WHERE id = ANY(%s) AND (action IN ('role.requested', 'role.given', 'role.refused', 'role.taken',
        'person.confirmed', 'single_person_mode.began', 'single_person_mode.ended')
        -- At the host's command line.
        OR action IN ('sign_in_link.made', 'person.password_set') AND actor_kind = 'system')
    ORDER BY id DESC
"""


def _rows(sql: str, wanted: list[int]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [wanted])
        return list(cursor.fetchall())


def _counted(values: Iterable[str]) -> list[tuple[str, int]]:
    return Counter(values).most_common()
