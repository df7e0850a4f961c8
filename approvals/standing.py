"""Whose word counts, and what the votes come to.

What counts is the database's to say (migrations, 0004): the same functions are asked when a vote is
cast, when a call is decided, and at its claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.models import Approval, Vote
from calls.models import Call
from policies.decide import Decision
from policies.models import Effect
from policies.thresholds import DECIDE, DEFAULT, Threshold, parse, people, plain

Thresholds = list[dict[str, Any]]


def excluded_people(call: Call) -> dict[int, str]:
    """By person: why their word on this call is never taken, as a sentence."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT person_id, why FROM approvals_excluded(%s)", [call.pk])
        return {person: _never(why) for person, why in cursor.fetchall()}


def _never(why: str) -> str:
    if why == "editor":
        return _("You edited the arguments: somebody else has to decide.")
    return _("The agent is yours: somebody else has to decide.")


def why_not(approval: Approval, person: User) -> str:
    """Why this person may not vote, as a sentence; empty if they may."""
    return obstacles([approval], person)[approval.pk]


def obstacles(approvals: Sequence[Approval], person: User) -> dict[UUID, str]:
    """`why_not` of each, in as few questions as of one."""
    ids = [approval.pk for approval in approvals]
    if not person.has_perm(DECIDE):
        return dict.fromkeys(ids, _("You are not among those who decide."))
    if not person.is_vouched_for:
        why = _("You came by a link that %(who)s made. Set a password on your profile first.")
        return dict.fromkeys(ids, why % {"who": person.let_in_by}) | _excluded_from(ids, person)
    never = _excluded_from(ids, person)
    named = any(one.source for each in approvals for one in parse(each.thresholds))
    groups = _groups(person) if named else set()
    given = {
        vote.approval_id: vote.approve
        for vote in Vote.objects.standing().filter(approval__in=ids, person=person)
    }
    return {
        approval.pk: never.get(approval.pk)
        or _not_asked(approval, person, groups)
        or _said_already(given.get(approval.pk))
        for approval in approvals
    }


def _excluded_from(ids: Sequence[UUID], person: User) -> dict[UUID, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, x.why FROM unnest(%s::uuid[]) AS c (id)"
            " CROSS JOIN LATERAL approvals_excluded(c.id) x WHERE x.person_id = %s",
            [list(ids), person.pk],
        )
        return {call_id: _never(why) for call_id, why in cursor.fetchall()}


def _not_asked(approval: Approval, person: User, groups: set[str]) -> str:
    if any(_is_from(person, one, groups) for one in parse(approval.thresholds)):
        return ""
    return _("The rule asks other people: %(who)s.") % {"who": who(approval)}


def _said_already(given: bool | None) -> str:
    if given is None:
        return ""
    if given:
        return _("You said yes already. You may take it back until the call is decided.")
    return _("You said no already. You may take it back until the call is decided.")


def addressed(approval: Approval, person: User) -> list[Threshold]:
    """Whose word this person's is."""
    groups = _groups(person)
    return [one for one in parse(approval.thresholds) if _is_from(person, one, groups)]


def _is_from(person: User, threshold: Threshold, groups: set[str]) -> bool:
    kind, _colon, name = threshold.source.partition(":")
    if not kind:
        return True
    return name == person.username if kind == "person" else name in groups


def _groups(person: User) -> set[str]:
    return set(person.groups.values_list("name", flat=True))


def who(approval: Approval) -> str:
    names = [one.source.partition(":")[2] for one in parse(approval.thresholds) if one.source]
    return ", ".join(dict.fromkeys(names))


def decided(call_id: UUID, thresholds: Thresholds) -> str:
    """ "approved", "denied", or "" while the votes that count meet nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT approvals_decided(%s, %s::jsonb)", [call_id, orjson.dumps(thresholds).decode()]
        )
        (verdict,) = cursor.fetchone()
    return str(verdict)


def obstacle(call: Call, decision: Decision) -> str:
    """At the claim: do people still stand behind the call? Says why not."""
    approval = Approval.objects.filter(pk=call.pk).first()
    if approval is None:
        return "" if call.effect == Effect.ALLOW else _("Nobody approved the call.")
    if decided(call.pk, approval.thresholds) != Approval.State.APPROVED:
        return _("The votes no longer count: %(why)s") % {"why": _lost(approval)}
    if decision.effect == Effect.ASK:
        now = plain(decision.thresholds)
        if decided(call.pk, now) != Approval.State.APPROVED:
            asked = "; ".join(str(one) for one in decision.thresholds)
            return _("Policy now asks for more than the votes that there are: %(what)s.") % {
                "what": asked
            }
    return ""


def _lost(approval: Approval) -> str:
    counted = {vote for _place, vote, _yes in _tallied(approval)}
    lost = [
        vote.person.username
        for vote in approval.standing.filter(approve=True).select_related("person")
        if vote.pk not in counted
    ]
    if not lost:
        return _("fewer than the rule asks for.")
    return _("%(who)s may no longer decide.") % {"who": ", ".join(lost)}


@dataclass(frozen=True, slots=True)
class Given:
    """A vote as a card shows it."""

    vote: Vote
    counts: bool


@dataclass(frozen=True, slots=True)
class Met:
    """How far a threshold is."""

    threshold: Threshold
    yes: int
    no: int

    @property
    def missing(self) -> int:
        return max(0, self.threshold.approve - self.yes)


@dataclass(frozen=True, slots=True)
class Picture:
    """Whose word is there, and whose is missing."""

    given: list[Given]
    thresholds: list[Met]
    may_still: list[str]
    # This person's own vote, which they may take back.
    own: Vote | None

    @property
    def is_plain(self) -> bool:
        """One person's word decides, and nobody gave one: nothing to show."""
        return not self.given and [met.threshold for met in self.thresholds] == list(DEFAULT)


def picture(approval: Approval, person: User) -> Picture:
    votes = list(approval.standing.select_related("person"))
    asked = parse(approval.thresholds)
    if not votes and asked == DEFAULT:
        return Picture([], [Met(asked[0], 0, 0)], [], None)
    counted = _tallied(approval)
    waits = approval.state == Approval.State.WAITING
    return Picture(
        given=[Given(vote, any(vote.pk == one for _n, one, _yes in counted)) for vote in votes],
        thresholds=[
            Met(one, _count(counted, n, True), _count(counted, n, False))
            for n, one in enumerate(asked, start=1)
        ],
        may_still=_may_still(approval, asked, votes) if waits else [],
        own=next((vote for vote in votes if waits and vote.person_id == person.pk), None),
    )


Tally = list[tuple[int, int, bool]]


def _count(tally: Tally, place: int, approve: bool) -> int:
    return sum(1 for n, _vote, yes in tally if n == place and yes == approve)


def _tallied(approval: Approval) -> Tally:
    """(threshold, vote, yes) of every vote that counts."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place, vote_id, approve FROM approvals_counted(%s, %s::jsonb)",
            [approval.pk, orjson.dumps(approval.thresholds).decode()],
        )
        return list(cursor.fetchall())


def _may_still(approval: Approval, asked: Iterable[Threshold], votes: Iterable[Vote]) -> list[str]:
    able: set[int] = set().union(*(people(one.source) for one in asked))
    able -= set(excluded_people(approval.call)) | {vote.person_id for vote in votes}
    names = User.objects.filter(pk__in=able).order_by("username")
    return list(names.values_list("username", flat=True))
