"""Votes as cards show them: whose word is there, and whose is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from accounts.models import User
from accounts.roles import Role
from approvals.delegations import names_for
from approvals.eligibility import EligibilityFacts
from approvals.models import Approval, Vote
from calls.record.states import NOT_STARTED
from core.english import english
from core.english import gettext as _
from policies.thresholds import (
    DEFAULT,
    GROUP,
    STRENGTH,
    Decider,
    Distinct,
    StepUp,
    Threshold,
    deciders,
    stored,
)


@dataclass(frozen=True, slots=True)
class ShownVote:
    """A vote as a card shows it."""

    vote: Vote
    # Why it does not count, in a few words; empty if it does, or did when the call was sent.
    flaw: str
    # It let the call run alone.
    is_break_glass: bool = False


@dataclass(frozen=True, slots=True)
class ThresholdProgress:
    """How far a threshold is."""

    threshold: Threshold
    yes: int
    no: int
    # Whether it opens a clause, which has to be met beside the ones before.
    is_also: bool = False
    # It counts late, and by now or not.
    is_widened: bool = False
    is_later: bool = False

    @property
    def missing(self) -> int:
        return max(0, self.threshold.approve - self.yes)


@dataclass(frozen=True, slots=True)
class VoteSummary:
    """Whose word is there, and whose is missing."""

    given: list[ShownVote]
    # Votes that were withdrawn, or that an edit made void.
    fallen: list[Vote]
    thresholds: list[ThresholdProgress]
    may_still: list[str]
    # Whose yes would not count now, and why.
    unable: list[str]
    # This person's own vote, which they may take back.
    own: Vote | None
    # They voted on it, whether it is decided or not.
    is_mine: bool

    @property
    def is_plain(self) -> bool:
        """One person's word decides, and nobody gave one: nothing to show."""
        return not self.given and not self.fallen and self.is_one

    @property
    def is_one(self) -> bool:
        """One person's word decides: whose, a decided card says anyway."""
        return [met.threshold for met in self.thresholds] == list(DEFAULT)

    @property
    def may_suffice(self) -> bool:
        """Whether the votes that count meet a threshold, though maybe not one of each clause."""
        return any(not met.missing for met in self.thresholds)

    @property
    def deniers(self) -> list[str]:
        return [
            one.vote.person.shown_name
            for one in self.given
            if not one.vote.approve and not one.flaw
        ]

    @property
    def last(self) -> Vote | None:
        """The vote that decided the call."""
        return self.given[-1].vote if self.given else None


def pictures(
    approvals: Sequence[Approval], person: User, facts: Mapping[UUID, EligibilityFacts]
) -> dict[UUID, VoteSummary]:
    votes = _votes(approvals)
    asked = {approval.pk: stored(approval.thresholds) for approval in approvals}
    shown = any(approval.pk in votes or asked[approval.pk] != DEFAULT for approval in approvals)
    able = {one.pk: one for one in deciders()} if shown else {}
    return {
        one.pk: _picture(
            one,
            person,
            Circle(asked[one.pk], votes.get(one.pk, []), facts[one.pk], able, one.widened_min),
        )
        for one in approvals
    }


def _votes(approvals: Iterable[Approval]) -> dict[UUID, list[Vote]]:
    found: dict[UUID, list[Vote]] = defaultdict(list)
    for vote in Vote.objects.filter(approval__in=approvals).select_related("person"):
        found[vote.approval_id].append(vote)
    return dict(found)


def _picture(approval: Approval, person: User, circle: Circle) -> VoteSummary:
    standing = circle.standing
    waits = approval.state == Approval.State.WAITING
    # Once it was sent, nobody counts any more.
    flaws = circle.flaws() if approval.call.state in NOT_STARTED else {}
    used = getattr(approval, "break_glass", None)
    alone = {one.pk for one in standing if used and one.person_id == used.person_id}
    may_still, unable = circle.left() if waits else ([], [])
    return VoteSummary(
        given=[
            ShownVote(vote, "" if vote.pk in alone else flaws.get(vote.pk, ""), vote.pk in alone)
            for vote in standing
        ],
        fallen=[vote for vote in circle.votes if vote.fallen_at is not None],
        thresholds=_thresholds(circle),
        may_still=may_still,
        unable=unable,
        own=next((vote for vote in standing if waits and vote.person_id == person.pk), None),
        is_mine=any(vote.person_id == person.pk for vote in standing),
    )


def _thresholds(circle: Circle) -> list[ThresholdProgress]:
    asked = circle.asked
    opened = [False] + [one.clause != other.clause for one, other in pairwise(asked)]
    return [
        _met(place, one, circle, is_also)
        for place, (one, is_also) in enumerate(zip(asked, opened, strict=False), start=1)
    ]


def _met(place: int, threshold: Threshold, circle: Circle, is_also: bool) -> ThresholdProgress:
    words = [one.approve for one in circle.facts.tally if one.place == place]
    is_open = circle.is_open(threshold)
    return ThresholdProgress(
        threshold,
        words.count(True),
        words.count(False),
        is_also,
        is_widened=is_open and threshold.after_min > 0,
        is_later=not is_open,
    )


@dataclass(frozen=True, slots=True)
class Circle:
    """The deciders of one call, its votes, and its thresholds. The database counts
    (approvals/eligibility.py); this explains why, and who else could vote."""

    asked: tuple[Threshold, ...]
    votes: list[Vote]
    facts: EligibilityFacts
    able: Mapping[int, Decider]
    widened_min: int

    def is_open(self, threshold: Threshold) -> bool:
        return threshold.after_min <= self.widened_min

    @property
    def standing(self) -> list[Vote]:
        return [vote for vote in self.votes if vote.fallen_at is None]

    def flaws(self) -> dict[int, str]:
        """The reason, by vote, why it does not count."""
        counted = {one.vote for one in self.facts.tally}
        return {one.pk: self._flaw(one) for one in self.standing if one.pk not in counted}

    def _flaw(self, vote: Vote) -> str:
        voter = self.able.get(vote.person_id)
        if voter is None:
            return _("may no longer decide")
        if vote.person_id in self.facts.excluded:
            return _("has a part in this call")
        strength = StepUp.of_method(vote.step_up) if vote.approve else StepUp.PASSKEY
        why = self._why_not(voter, strength, _("not confirmed by %(what)s"))
        return why or _("the rule does not take it")

    def left(self) -> tuple[list[str], list[str]]:
        """Users whose approval would still count, and users whose would not, with why."""
        done = {*self.facts.excluded, *(vote.person_id for vote in self.standing)}
        names = {pk: one.shown_name for pk, one in self.able.items()}
        places = names_for(self.facts.delegations, names)
        may_still, unable = [], []
        for one in self.able.values():
            if one.pk in done or not self._of(one):
                continue
            if why := self._hindrance(one):
                unable.append(f"{one.shown_name} ({why})")
            else:
                may_still.append(_named(one.shown_name, places.get(one.pk, ())))
        return may_still, unable

    def _hindrance(self, one: Decider) -> str:
        if not one.is_vouched_for:
            return _("has to set a password first")
        return self._why_not(one, one.strength, _("has no %(what)s"))

    def _of(self, one: Decider) -> list[tuple[int, Threshold]]:
        """The thresholds that ask this person by now, with their places."""
        places = enumerate(self.asked, start=1)
        return [
            (n, asks)
            for n, asks in places
            if self.is_open(asks) and asks.is_from(one.names, one.groups)
        ]

    def _why_not(self, one: Decider, strength: StepUp, unconfirmed: str) -> str:
        """The reason why this person's approval, confirmed so strongly, would not count; "" if it
        counts."""
        of = self._of(one)
        if not of:
            return _("the rule asks other people")
        strong = [(n, asks) for n, asks in of if _is_as_strong(strength, asks.step_up)]
        if not strong:
            weakest = min((asks.step_up for _n, asks in of), key=STRENGTH.index)
            return unconfirmed % {"what": english(StepUp(weakest).label)}
        if all(self._has_team(one, n, asks) for n, asks in strong):
            return _("of a team that has approved already")
        return ""

    def _has_team(self, one: Decider, place: int, asks: Threshold) -> bool:
        """Does a yes of somebody else of the same team count there? As approvals_same_team."""
        if asks.distinct != Distinct.TEAM:
            return False
        no_teams = {*Role, asks.source.removeprefix(GROUP)}
        yes = {given.vote for given in self.facts.tally if given.place == place and given.approve}
        others = (self.able.get(vote.person_id) for vote in self.standing if vote.pk in yes)
        return any(
            other is not None and other.pk != one.pk and {*one.groups} & {*other.groups} - no_teams
            for other in others
        )


def _named(name: str, delegators: Sequence[str]) -> str:
    if not delegators:
        return name
    return _("%(who)s (for %(delegators)s)") % {"who": name, "delegators": ", ".join(delegators)}


def _is_as_strong(strength: StepUp, asked: StepUp) -> bool:
    return STRENGTH.index(strength) >= STRENGTH.index(asked)
