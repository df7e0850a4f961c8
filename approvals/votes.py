"""Votes as cards show them: whose word is there, and whose is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from accounts.models import User
from approvals.eligibility import EligibilityFacts
from approvals.models import Approval, Vote
from policies.thresholds import DEFAULT, Decider, Threshold, deciders, stored


@dataclass(frozen=True, slots=True)
class ShownVote:
    """A vote as a card shows it."""

    vote: Vote
    counts: bool


@dataclass(frozen=True, slots=True)
class ThresholdProgress:
    """How far a threshold is."""

    threshold: Threshold
    yes: int
    no: int
    # Whether it opens a clause, which has to be met beside the ones before.
    is_also: bool = False

    @property
    def missing(self) -> int:
        return max(0, self.threshold.approve - self.yes)


@dataclass(frozen=True, slots=True)
class VoteSummary:
    """Whose word is there, and whose is missing."""

    given: list[ShownVote]
    thresholds: list[ThresholdProgress]
    may_still: list[str]
    # This person's own vote, which they may take back.
    own: Vote | None
    # They voted on it, whether it is decided or not.
    is_mine: bool

    @property
    def is_plain(self) -> bool:
        """One person's word decides, and nobody gave one: nothing to show."""
        return not self.given and self.is_one

    @property
    def is_one(self) -> bool:
        """One person's word decides: whose, a decided card says anyway."""
        return [met.threshold for met in self.thresholds] == list(DEFAULT)

    @property
    def last(self) -> Vote | None:
        """Of a decided call: the vote that decided it."""
        return self.given[-1].vote if self.given else None


def pictures(
    approvals: Sequence[Approval], person: User, facts: Mapping[UUID, EligibilityFacts]
) -> dict[UUID, VoteSummary]:
    votes = _standing(approvals)
    asked = {approval.pk: stored(approval.thresholds) for approval in approvals}
    shown = any(approval.pk in votes or asked[approval.pk] != DEFAULT for approval in approvals)
    able = deciders() if shown else []
    return {
        one.pk: _picture(one, person, asked[one.pk], votes.get(one.pk, []), facts[one.pk], able)
        for one in approvals
    }


def _standing(approvals: Iterable[Approval]) -> dict[UUID, list[Vote]]:
    found: dict[UUID, list[Vote]] = defaultdict(list)
    for vote in Vote.objects.standing().filter(approval__in=approvals).select_related("person"):
        found[vote.approval_id].append(vote)
    return dict(found)


def _picture(
    approval: Approval,
    person: User,
    asked: tuple[Threshold, ...],
    votes: list[Vote],
    facts: EligibilityFacts,
    able: Iterable[Decider],
) -> VoteSummary:
    counted = {one.vote for one in facts.tally}
    waits = approval.state == Approval.State.WAITING
    return VoteSummary(
        given=[ShownVote(vote, vote.pk in counted) for vote in votes],
        thresholds=_thresholds(asked, facts),
        may_still=_may_still(asked, votes, facts.excluded, able) if waits else [],
        own=next((vote for vote in votes if waits and vote.person_id == person.pk), None),
        is_mine=any(vote.person_id == person.pk for vote in votes),
    )


def _thresholds(asked: Sequence[Threshold], facts: EligibilityFacts) -> list[ThresholdProgress]:
    opened = [False] + [one.clause != other.clause for one, other in pairwise(asked)]
    return [
        _met(place, one, facts, is_also)
        for place, (one, is_also) in enumerate(zip(asked, opened, strict=False), start=1)
    ]


def _met(
    place: int, threshold: Threshold, facts: EligibilityFacts, is_also: bool
) -> ThresholdProgress:
    words = [one.approve for one in facts.tally if one.place == place]
    return ThresholdProgress(threshold, words.count(True), words.count(False), is_also)


def _may_still(
    asked: Iterable[Threshold],
    votes: Iterable[Vote],
    excluded: Collection[int],
    able: Iterable[Decider],
) -> list[str]:
    done = {*excluded, *(vote.person_id for vote in votes)}
    left = (one for one in able if one.pk not in done)
    return [one.name for one in left if any(t.is_from(one.names, one.groups) for t in asked)]
