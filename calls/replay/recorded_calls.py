"""Recorded calls that policy decided on, as rules saw them: read in chunks by a server-side cursor,
so that memory does not grow with their number.

The definition is the call's own, and so are its hints; the owner is whose agent it was then, with
the groups of then. Tags and labels of the tool are those of now: calls before their last change are
marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import sqrt
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import orjson
from django.db.models import Case, JSONField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from accounts.models import Agent, AgentToken, User
from accounts.teams import acting_team
from accounts.tokens import recorded_groups
from audit.models import Entry
from calls.models import Call
from core.ids import first_id
from policies.decide import Subject
from registry.models import CredentialOwner, Definition

CHUNK = 2_000
# Of 65,536: ids end in random bits.
PARTS = 1 << 16
_LAST_BITS = "get_byte(uuid_send(calls_call.id), 14) * 256 + get_byte(uuid_send(calls_call.id), 15)"
_GROUPS_CHANGED = "person.groups_set"
# By a second administrator, with who asked for it; otherwise it is a part of the other.
_ROLE_GIVEN = "role.given"
# They name their people, who lost the group of this detail.
_GROUP_REMOVED = {"role.retired": "role", "group.removed": "group"}
_TEAM_CHANGED = "agent.team_set"
_TOOL_CHANGED = ("tool.labels_set", "tool.tagged")


class RecordedCall(NamedTuple):
    id: UUID
    asked_at: datetime
    agent_id: int
    person_id: int
    definition_id: int
    tool_name: str
    state: str
    effect: str
    # The OAuth client by which the agent signed in.
    client: str
    # In its token; None: not known.
    token_groups: tuple[str, ...] | None
    arguments: bytes


class CallSample(NamedTuple):
    """`parts`: how many of 65,536 calls are read, by the last bits of their ids."""

    since: datetime
    until: datetime
    total: int
    parts: int = PARTS

    @property
    def is_whole(self) -> bool:
        return self.parts == PARTS

    @property
    def factor(self) -> float:
        """How many calls each one stands for."""
        return PARTS / self.parts

    def bound(self, taken: int) -> float:
        """A share among all calls differs from that in the sample by at most so much, in 95 of 100
        samples; at its widest, which is at one half."""
        return 0.0 if self.is_whole or not taken else 0.98 / sqrt(taken)


def sample(*, days: int, most: int, until: datetime) -> CallSample:
    """All calls of these days, or about `most` of them."""
    since = until - timedelta(days=days)
    whole = CallSample(since, until, _rows(since, until).count())
    if whole.total <= most:
        return whole
    return whole._replace(parts=max(1, PARTS * most // whole.total))


def _rows(since: datetime, until: datetime) -> QuerySet[Call]:
    within = Call.objects.filter(id__gte=first_id(since), id__lt=first_id(until))
    return within.filter(definition_id__isnull=False).exclude(effect="").order_by()


def stream(taken: CallSample) -> Iterator[RecordedCall]:
    """Within a transaction, whose cursor it is. In an order by chance: where not all are judged,
    those that are stand for the rest."""
    rows = _rows(taken.since, taken.until).annotate(part=RawSQL(_LAST_BITS, []))  # noqa: S611
    rows = rows.filter(part__lt=taken.parts).order_by("part")
    client = Coalesce("token__client_id", Value(""))
    names = RecordedCall._fields[: RecordedCall._fields.index("client")]
    columns = rows.values_list(*names, client, _signed_in(), "arguments")
    for row in columns.iterator(chunk_size=CHUNK):
        *values, signed_in, arguments = row
        yield RecordedCall._make([*values, recorded_groups(signed_in), bytes(arguments)])


def _signed_in() -> Case:
    """The sign-in in the first entry of a call, looked up for tokens of providers only: others name
    no groups."""
    first = Entry.objects.filter(call_id=OuterRef("pk"), seq=1).values("details__signed_in")
    none = Value({"groups": []}, output_field=JSONField())
    theirs = AgentToken.objects.at_providers().values("pk")
    return Case(When(token__in=theirs, then=Subquery(first[:1])), default=none)


class _Definition(NamedTuple):
    server: str
    tool: str
    exposed: str
    hints: dict[str, bool]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    # As registry.models.Server has it.
    credential_of: str


class GroupChange(NamedTuple):
    """`before` is known where all groups were set; where one was given or taken, `given` or `taken`
    is its name."""

    at: datetime
    before: frozenset[str] | None
    given: str = ""
    taken: str = ""

    def undone(self, groups: frozenset[str]) -> frozenset[str]:
        if self.before is not None:
            return self.before
        return groups - {self.given} | ({self.taken} if self.taken else set())


class _Person(NamedTuple):
    # Each with when it began, in the order of time; the first at any time before, too.
    names: tuple[tuple[datetime, str], ...]
    groups: frozenset[str]
    # In the order of time.
    changes: tuple[GroupChange, ...] = ()

    def name_at(self, moment: datetime) -> str:
        before = [name for since, name in self.names if since <= moment]
        return before[-1] if before else self.names[0][1]

    def groups_at(self, moment: datetime) -> frozenset[str]:
        groups = self.groups
        for one in reversed(self.changes):
            if one.at > moment:
                groups = one.undone(groups)
        return groups


@dataclass(slots=True)
class SubjectReader:
    """Makes the subject of a call; what many calls share is read once."""

    since: datetime
    # Each with the team that was chosen for it.
    _agents: dict[int, tuple[str, str]] = field(default_factory=dict)
    _people: dict[int, _Person] = field(default_factory=dict)
    _definitions: dict[int, _Definition] = field(default_factory=dict)
    _tools_changed: dict[str, datetime] = field(default_factory=dict)
    _teams_changed: dict[str, datetime] = field(default_factory=dict)
    _groups_changed: dict[str, list[GroupChange]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = Agent.objects.values_list("pk", "name", "team__name")
        self._agents = {pk: (name, team or "") for pk, name, team in rows}
        self._tools_changed = _tool_changes(self.since)
        self._teams_changed = _team_changes(self.since)
        self._groups_changed = _group_changes(self.since)

    def subject(self, call: RecordedCall, *, with_arguments: bool) -> Subject:
        """Raises ValueError where the arguments cannot be read."""
        defined, person = self._defined(call.definition_id), self._person(call.person_id)
        owner, groups = person.name_at(call.asked_at), person.groups_at(call.asked_at)
        return Subject(
            agent_id=call.agent_id,
            agent=self.agent_of(call),
            groups=groups,
            definition_id=call.definition_id,
            server=defined.server,
            tool=defined.tool,
            hints=defined.hints,
            owner=owner,
            arguments=orjson.loads(call.arguments) if with_arguments else {},
            size=len(call.arguments),
            exposed=call.tool_name,
            tags=defined.tags,
            labels=defined.labels,
            credential=self._credential(call, defined, owner, groups),
            client=call.client,
            token_groups=call.token_groups,
            at=call.asked_at,
        )

    def is_exact(self, call: RecordedCall) -> bool:
        """Whether nothing of its tool changed since that is not known as it was."""
        changed = [self._tools_changed.get(self.tool_of(call))]
        if self._defined(call.definition_id).credential_of == "team":
            changed.append(self._teams_changed.get(self.agent_of(call)))
        return all(at is None or call.asked_at >= at for at in changed)

    def agent_of(self, call: RecordedCall) -> str:
        return self._agents.get(call.agent_id, ("", ""))[0]

    def _credential(
        self, call: RecordedCall, defined: _Definition, owner: str, groups: frozenset[str]
    ) -> str:
        agent, chosen = self._agents.get(call.agent_id, ("", ""))
        names = {"person": owner, "team": acting_team(chosen, groups), "agent": agent}
        kind = defined.credential_of
        return CredentialOwner(kind, None, names.get(kind, "")).label

    def tool_of(self, call: RecordedCall) -> str:
        return self._defined(call.definition_id).exposed

    def _person(self, pk: int) -> _Person:
        if pk not in self._people:
            found = User.objects.get(pk=pk)
            groups = frozenset(found.groups.values_list("name", flat=True))
            names = tuple(found.names.order_by("since").values_list("since", "name"))
            # Entries have the name of their time.
            changed = [one for _since, name in names for one in self._groups_changed.get(name, ())]
            self._people[pk] = _Person(names, groups, tuple(sorted(changed, key=attrgetter("at"))))
        return self._people[pk]

    def _defined(self, pk: int) -> _Definition:
        if pk not in self._definitions:
            found = Definition.objects.select_related("tool__server").get(pk=pk)
            tool = found.tool
            tags = tuple(tool.tags.values_list("name", flat=True))
            self._definitions[pk] = _Definition(
                tool.server.slug,
                tool.name,
                tool.exposed_name,
                found.hints,
                tags,
                tuple(tool.labels),
                tool.server.credential_of,
            )
        return self._definitions[pk]


def _tool_changes(since: datetime) -> dict[str, datetime]:
    """By tool, when its tags or labels were changed last."""
    found = Entry.objects.filter(action__in=_TOOL_CHANGED, at__gt=since).order_by("id")
    return dict(found.values_list("tool", "at"))


def _team_changes(since: datetime) -> dict[str, datetime]:
    """By agent, when its team was chosen last."""
    found = Entry.objects.filter(action=_TEAM_CHANGED, at__gt=since).order_by("id")
    return dict(found.values_list("agent", "at"))


def _group_changes(since: datetime) -> dict[str, list[GroupChange]]:
    confirmed = Q(action=_ROLE_GIVEN, details__has_key="asked_by")
    found = Entry.objects.filter(Q(action=_GROUPS_CHANGED) | confirmed, at__gt=since)
    changed: dict[str, list[GroupChange]] = defaultdict(list)
    for at, details in found.order_by("id").values_list("at", "details"):
        before = frozenset(details["before"]) if "before" in details else None
        changed[details["person"]].append(GroupChange(at, before, details.get("role", "")))
    removed = Entry.objects.filter(action__in=_GROUP_REMOVED, at__gt=since).order_by("id")
    for action, at, details in removed.values_list("action", "at", "details"):
        gone = GroupChange(at, None, taken=details[_GROUP_REMOVED[action]])
        for name in details["people"]:
            changed[name].append(gone)
    return changed
