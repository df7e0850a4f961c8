"""Pending calls that are approved in one step: they differ in values of arguments, and in nothing
else that a card shows.

A card's id, fingerprint, times and list of earlier calls are always its own and not compared. Calls
with something that needs a look of its own (an edit, a comment, an earlier denial) are left out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.contrib.sessions.backends.base import SessionBase
from django.utils.translation import gettext

from accounts.models import User
from approvals import step_up_proofs
from approvals.cards import Card, cards
from approvals.models import Approval
from approvals.services import say_decided
from approvals.step_up_proofs import ShownCall, StepUpOptions
from calls.models import Call
from core import exact_json
from core.english import english
from core.english import gettext as _
from policies.thresholds import StepUp
from registry.schemas.arguments import Arguments, CallArgument

# So many at once: somebody has to read their table.
MOST = 20


class ComparedField(NamedTuple):
    """Something that a card shows: `value` is compared, `words` are for people."""

    label: str
    value: Any
    words: Sequence[str]


class FieldDifference(NamedTuple):
    """A field in which calls differ: each of its values with the number of calls that have it."""

    label: str
    counts: list[tuple[str, int]]


class LeftOut(NamedTuple):
    """A call that is not approved with the others, and why."""

    call: Call
    why: str


class ShownVersion(NamedTuple):
    """A call as a page showed it: the digest of what is sent, and of the fields of its card."""

    digest: str
    basis: str


@dataclass(frozen=True, slots=True)
class ComparedCall:
    card: Card
    fields: list[ComparedField]

    @property
    def version(self) -> ShownVersion:
        text = repr([field.value for field in self.fields])
        basis = hashlib.sha256(text.encode()).hexdigest()[:16]
        return ShownVersion(self.card.call.call_digest, basis)

    @property
    def posted(self) -> str:
        """The call as the page's form posts it."""
        return ":".join([str(self.card.call.pk), *self.version])


class ArgumentRow(NamedTuple):
    """One line of the table of differences: a call, and its values of arguments that differ."""

    compared: ComparedCall
    values: list[tuple[str, CallArgument]]


@dataclass(frozen=True)
class AlikeCalls:
    """Calls that somebody selected: those to approve, in the order of their ids, and the others."""

    calls: list[ComparedCall]
    left_out: list[LeftOut]

    @property
    def approvals(self) -> list[Approval]:
        return [one.card.approval for one in self.calls]

    @property
    def first(self) -> Card | None:
        return self.calls[0].card if self.calls else None

    @cached_property
    def differences(self) -> list[FieldDifference]:
        """Empty if they are alike."""
        return list(_differences(self.calls))

    @property
    def same(self) -> list[ComparedField]:
        return [one for one in self.calls[0].fields if one.words] if self.calls else []

    @cached_property
    def _differing(self) -> set[int]:
        """Places of the arguments whose values differ."""
        given = [one.card.arguments.given for one in self.calls]
        return {
            place
            for place, column in enumerate(zip(*given, strict=False))
            if len({exact_json.dumps(one.value) for one in column}) > 1
        }

    @property
    def columns(self) -> list[str]:
        return [name for name, _argument in self.rows[0].values] if self.calls else []

    @cached_property
    def rows(self) -> list[ArgumentRow]:
        return [ArgumentRow(one, self._values_of(one.card)) for one in self.calls]

    def _values_of(self, card: Card) -> list[tuple[str, CallArgument]]:
        given = card.arguments.given
        paths = list(_paths(given))
        return [(paths[place], given[place]) for place in sorted(self._differing)]

    @property
    def common(self) -> Arguments | None:
        """The arguments whose values are equal in all."""
        if self.first is None:
            return None
        given = self.first.arguments.given
        kept = [one for place, one in enumerate(given) if place not in self._differing]
        return replace(self.first.arguments, given=list(_without_empty_groups(kept)))

    def leave_out_changed(self, shown: Mapping[UUID, ShownVersion]) -> AlikeCalls:
        """Without the calls that a page showed otherwise than they are by now."""
        why = {one.card.call.pk: _why_changed(one, shown) for one in self.calls}
        kept = [one for one in self.calls if not why[one.card.call.pk]]
        gone = [one.card.call for one in self.calls if one not in kept]
        return AlikeCalls(kept, [*self.left_out, *(LeftOut(call, why[call.pk]) for call in gone)])

    def step(self, person: User, session: SessionBase) -> StepUpOptions:
        return step_up_proofs.joint_step(self.approvals, person, session)

    def shown(self) -> list[ShownCall]:
        return [ShownCall.of(approval) for approval in self.approvals]


def compare(
    ids: Collection[UUID], person: User, session: SessionBase, *, most: int = MOST
) -> AlikeCalls:
    """Ids of no call are passed over."""
    found = list(Approval.objects.for_queue().filter(pk__in=ids).order_by("pk"))
    waiting = [one for one in found if one.state == Approval.State.WAITING]
    drawn = cards(waiting, person, session=session)
    left_out = [LeftOut(one.call, say_decided(one)) for one in found if one not in waiting]
    left_out += [LeftOut(one.call, why) for one in drawn if (why := _why_alone(one))]
    kept = [ComparedCall(one, _fields(one)) for one in drawn if not _why_alone(one)]
    said = _("At most %(n)d calls are approved at once.") % {"n": most}
    left_out += [LeftOut(one.card.call, said) for one in kept[most:]]
    return AlikeCalls(kept[:most], left_out)


def _why_changed(compared: ComparedCall, shown: Mapping[UUID, ShownVersion]) -> str:
    """The reason why it is not as a page showed it; "" if it is."""
    now, then = compared.version, shown.get(compared.card.call.pk)
    if then is None or then.digest != now.digest:
        return _("What you were shown is not what would be sent. Look again.")
    return "" if then == now else _("What its card shows has changed. Look again.")


def _why_alone(card: Card) -> str:
    """The reason why this person decides on it alone; "" if there is none."""
    if why := card.obstacle or card.only_denies or card.stopped:
        return why
    if card.approval.is_being_denied:
        return _("It is being denied.")
    if card.edited:
        return _("Its arguments were edited: decide on it alone.")
    if card.again:
        return _("It is sent again on purpose: decide on it alone.")
    if card.talk.said:
        return _("It has comments: decide on it alone.")
    if any(one.same_arguments and one.state == Approval.State.DENIED for one in card.similar):
        return _("A call with the same arguments was denied: decide on it alone.")
    if not card.step.is_possible:
        what = english(StepUp(card.step.wanted).label)
        return _("The rule asks you to confirm by %(what)s, which you do not have.") % {
            "what": what
        }
    return ""


def _fields(card: Card) -> list[ComparedField]:
    """All that a card shows and that is not its call's own."""
    return [*_request_fields(card), *_policy_fields(card), _argument_field(card)]


def _request_fields(card: Card) -> Iterator[ComparedField]:
    call = card.call
    published = call.tool.published_id if call.tool else None
    version = call.definition.version if call.definition else None
    token = str(call.token) if call.token else _without_token(call)
    yield ComparedField(gettext("Agent"), call.agent_id, [call.agent.name])
    yield ComparedField(gettext("User"), call.person_id, [call.person.shown_name])
    yield ComparedField(
        gettext("Token"),
        (call.token_id, call.origin, call.client),
        [one for one in (token, call.client) if one],
    )
    yield ComparedField(
        gettext("Tool"), (call.server_id, call.tool_id, call.tool_name), [call.tool_name]
    )
    words = [gettext("version %(n)d") % {"n": version}] if version else []
    yield ComparedField(gettext("Definition"), (call.definition_id, published), words)


def _without_token(call: Call) -> str:
    if call.origin == Call.Origin.COMMAND:
        return gettext("Asked at the host's command line, without a token.")
    if call.origin == Call.Origin.CONSOLE:
        return gettext("Asked in the console, without a token.")
    return ""


def _policy_fields(card: Card) -> Iterator[ComparedField]:
    approval, votes = card.approval, card.votes
    rule = (card.rule, approval.reason)
    yield ComparedField(gettext("Rule"), rule, [one for one in rule if one])
    yield ComparedField(
        gettext("Needed"),
        (orjson.dumps(approval.thresholds), approval.widened_min, approval.start_within_s),
        [str(one.threshold) for one in votes.thresholds],
    )
    yield ComparedField(
        gettext("Votes"),
        (_votes(card), card.single_person, card.second_accounts),
        [one.vote.person.shown_name for one in votes.given],
    )
    yield ComparedField(
        gettext("Risk"),
        card.risk,
        [f"{card.risk.label} {card.risk.score}", *(one.words for one in card.risk.reasons)],
    )


def _votes(card: Card) -> list[Any]:
    # Who may still vote is shown only where more than one vote is needed, and known only then.
    if card.votes.is_plain:
        return []
    given = [(one.vote.person_id, one.vote.approve, one.flaw) for one in card.votes.given]
    fallen = [(one.person_id, one.approve, one.fallen_why) for one in card.votes.fallen]
    return [given, fallen, card.votes.may_still, card.votes.unable]


def _argument_field(card: Card) -> ComparedField:
    given, left_out = card.arguments.given, card.arguments.left_out
    kinds = [(one.depth, one.name, one.type, one.known, one.members) for one in given]
    kinds_of_values = [type(one.value).__name__ for one in given]
    missing = [one.name for one in left_out]
    shown = [f"{path}: {one.type}" for path, one in zip(_paths(given), given, strict=True)]
    compared = (kinds, kinds_of_values, missing)
    return ComparedField(gettext("Names and types of arguments"), compared, shown)


def _paths(given: Sequence[CallArgument]) -> Iterator[str]:
    """The names of nested arguments with those around them."""
    around: list[str] = []
    for one in given:
        around = [*around[: one.depth], one.name]
        yield ".".join(around)


def _without_empty_groups(given: Sequence[CallArgument]) -> Iterator[CallArgument]:
    """Without groups of which no member is left."""
    for place, one in enumerate(given):
        following = given[place + 1 : place + 2]
        if not one.is_group or any(other.depth > one.depth for other in following):
            yield one


def _differences(calls: Sequence[ComparedCall]) -> Iterator[FieldDifference]:
    for column in zip(*(one.fields for one in calls), strict=True):
        if len({repr(field.value) for field in column}) > 1:
            counted = Counter(" · ".join(field.words) for field in column)
            yield FieldDifference(column[0].label, counted.most_common())
