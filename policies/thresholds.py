"""Thresholds of a rule: who decides and how many; the first that is met decides.

Where several rules ask, each of them has to be satisfied: the thresholds of one rule are a clause,
of which one has to be met, and every clause has to be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import groupby, product
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Group
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import Case, Exists, ExpressionWrapper, OuterRef, Q, Value, When
from django.utils.translation import gettext_lazy

from accounts.models import CodeApp, Identity, Passkey, UsedName, User, shown_name
from accounts.oidc.providers import usable_providers
from accounts.relying_party import rp_id
from core.english import english, ngettext
from core.english import gettext as _
from core.errors import CountersignError

# Of approvals, which know rules and not the other way round.
DECIDE = "approvals.decide_approval"
BACKEND = "django.contrib.auth.backends.ModelBackend"
THRESHOLDS_MAX = 10
MOST_PEOPLE = 50
# A call expires after hours; what counts after a day counts never.
AFTER_MOST_MIN = 1440
GROUP, PERSON = "group:", "person:"


class BadThresholds(CountersignError):
    """Says which one is wrong, and what would be right."""


class Distinct(models.TextChoices):
    PERSON = "person", gettext_lazy("different people")
    # People who share a group, besides roles and the group they decide for, count once.
    TEAM = "team", gettext_lazy("people of different teams")


class StepUp(models.TextChoices):
    """In order of strength."""

    NONE = "", gettext_lazy("signed in")
    TOTP = "totp", gettext_lazy("passkey or one-time code")
    PASSKEY = "passkey", gettext_lazy("passkey")

    @classmethod
    def of_method(cls, method: str) -> StepUp:
        """How strong a vote is that was confirmed so (accounts.models.Proof). A sign-in at the
        identity provider is as strong as a code: it signs nothing with the person's own key."""
        return cls.TOTP if method == "oidc" else cls(method)


@dataclass(frozen=True, slots=True)
class Threshold:
    """So many people for a yes, so many for a no; `source`: "" (whoever may decide),
    "group:NAME" or "person:NAME"."""

    approve: int = 1
    deny: int = 1
    source: str = ""
    distinct: Distinct = Distinct.PERSON
    step_up: StepUp = StepUp.NONE
    # Thresholds of one clause are alternatives; every clause has to be met.
    clause: int = 0
    # It counts once the call has been pending for so long, and people were notified of that
    # (approvals/widening.py).
    after_min: int = 0

    def is_from(self, names: Collection[str], groups: Collection[str]) -> bool:
        """Does it ask a person who has, or had, one of these names, and is in these groups?"""
        kind, _colon, wanted = self.source.partition(":")
        if not kind:
            return True
        return wanted in (names if kind == "person" else groups)

    def plain(self) -> dict[str, Any]:
        plain = {
            "approve": self.approve,
            "deny": self.deny,
            "from": self.source,
            "distinct": str(self.distinct),
            "step_up": str(self.step_up),
        }
        late = {"after_min": self.after_min} if self.after_min else {}
        return plain | late | ({"clause": self.clause} if self.clause else {})

    def __str__(self) -> str:
        parts = [needed(self)]
        if self.distinct == Distinct.TEAM:
            parts.append(_("of different teams"))
        if self.step_up:
            parts.append(_("confirmed by %(what)s") % {"what": english(StepUp(self.step_up).label)})
        said = f"{', '.join(parts)}; {_denials(self.deny)}"
        return f"{said}; {say_since(self)}" if self.after_min else said


_Choice = TypeVar("_Choice", bound=models.TextChoices)
# Where a rule says nothing: one person's yes or no.
DEFAULT = (Threshold(),)
NOBODY = Threshold(approve=10**6)
STRENGTH = StepUp.values
_KEYS = {"approve", "deny", "from", "distinct", "step_up", "after_min"}


def needed(one: Threshold) -> str:
    """Whose and how many approvals."""
    name = one.source.partition(":")[2]
    if one.source.startswith(PERSON):
        return _("approval of %(name)s") % {"name": name}
    if one.source.startswith(GROUP):
        said = ngettext("%(n)d approval of %(name)s", "%(n)d approvals of %(name)s", one.approve)
        return said % {"n": one.approve, "name": name}
    said = ngettext("%(n)d approval", "%(n)d approvals", one.approve)
    return said % {"n": one.approve}


def _denials(n: int) -> str:
    return ngettext("%(n)d denial decides", "%(n)d denials decide", n) % {"n": n}


def next_widening(thresholds: Iterable[Threshold], widened_min: int = 0) -> int | None:
    """After how many minutes the next of those that count late does."""
    return min((n for one in thresholds if (n := one.after_min) > widened_min), default=None)


def say_since(one: Threshold) -> str:
    """Since when it counts."""
    said = ngettext("only after %(n)d minute", "only after %(n)d minutes", one.after_min)
    return said % {"n": one.after_min}


def clauses(thresholds: Iterable[Threshold]) -> list[tuple[Threshold, ...]]:
    """The clauses; of each, one threshold has to be met."""
    ordered = sorted(thresholds, key=attrgetter("clause"))
    return [tuple(clause) for _n, clause in groupby(ordered, key=attrgetter("clause"))]


def describe(thresholds: Iterable[Threshold]) -> str:
    """Describes the thresholds in one sentence for people."""
    alternatives = [_(", or ").join(map(str, clause)) for clause in clauses(thresholds)]
    return _(" – and also: ").join(alternatives)


@lru_cache(maxsize=1024)
def combine(*several: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
    """Combines thresholds: whatever meets the result meets each of `several`, in any order."""
    every = {_bare(clause) for thresholds in several for clause in clauses(thresholds)}
    combined: list[tuple[Threshold, ...]] = []
    for clause in _sorted(every):
        combined = _add(combined, clause)
    return tuple(
        replace(one, clause=n)
        for n, clause in enumerate(_sorted(combined))
        for one in sorted(clause, key=astuple)
    )


def _bare(clause: Iterable[Threshold]) -> tuple[Threshold, ...]:
    return tuple(replace(one, clause=0) for one in clause)


def _sorted(several: Iterable[tuple[Threshold, ...]]) -> list[tuple[Threshold, ...]]:
    return sorted(several, key=lambda clause: sorted(map(astuple, clause)))


def _add(
    others: list[tuple[Threshold, ...]], clause: tuple[Threshold, ...]
) -> list[tuple[Threshold, ...]]:
    for n, other in enumerate(others):
        if merged := _merge(other, clause):
            # It may now fit one that stood beside it before.
            return _add(others[:n] + others[n + 1 :], merged)
    return [*others, clause]


def _merge(
    one: tuple[Threshold, ...], other: tuple[Threshold, ...]
) -> tuple[Threshold, ...] | None:
    """One clause that says the same as both; None where they have to stand beside each other."""
    if one == other:
        return one
    pairs = [_stricter(left, right) for left, right in product(one, other)]
    merged = tuple(dict.fromkeys(pair for pair in pairs if pair is not None))
    if None in pairs:
        return None
    needed = tuple(a for a in merged if not any(a != b and _covers(b, a) for b in merged))
    return needed if len(needed) <= THRESHOLDS_MAX else None


def _stricter(one: Threshold, other: Threshold) -> Threshold | None:
    """The stricter of both in every respect; None where they ask different people, or where that
    would ask more of the narrower circle than its own rule does."""
    if one.source and not other.source:
        one, other = other, one
    if one.source != other.source and (one.source or not _is_enough(other, one)):
        return None
    return Threshold(
        approve=max(one.approve, other.approve),
        deny=min(one.deny, other.deny),
        source=other.source,
        distinct=Distinct.TEAM if Distinct.TEAM in (one.distinct, other.distinct) else one.distinct,
        step_up=max(one.step_up, other.step_up, key=STRENGTH.index),
        after_min=max(one.after_min, other.after_min),
    )


def _is_enough(narrow: Threshold, wide: Threshold) -> bool:
    """Do so many of the narrower circle satisfy the wider one? Whom a group unites are of one team
    for everybody but the threshold that names it."""
    return narrow.approve >= wide.approve and wide.distinct != Distinct.TEAM


def _covers(weak: Threshold, strong: Threshold) -> bool:
    """Whether meeting `strong` always meets `weak`, for approvals and denials."""
    return (
        weak.source == strong.source
        and weak.approve <= strong.approve
        and weak.deny <= strong.deny
        and weak.distinct in (Distinct.PERSON, strong.distinct)
        and STRENGTH.index(weak.step_up) <= STRENGTH.index(strong.step_up)
        and weak.after_min <= strong.after_min
    )


def plain(thresholds: Iterable[Threshold]) -> list[dict[str, Any]]:
    return [one.plain() for one in thresholds or DEFAULT]


def parse(value: Any) -> tuple[Threshold, ...]:
    """Parses JSON; raises BadThresholds."""
    if not isinstance(value, list) or len(value) > THRESHOLDS_MAX:
        raise BadThresholds(_("Give a list of at most %(n)d thresholds.") % {"n": THRESHOLDS_MAX})
    parsed = tuple(_one(n, item) for n, item in enumerate(value, start=1))
    if parsed and all(one.after_min for one in parsed):
        raise BadThresholds(_("One of the thresholds must count from the beginning."))
    return parsed


def stored(value: Iterable[Mapping[str, Any]]) -> tuple[Threshold, ...]:
    """Reads the output of `plain` for a held call: combined ones may exceed a rule's limit."""
    return tuple(
        Threshold(
            approve=one["approve"],
            deny=one["deny"],
            source=one["from"],
            distinct=Distinct(one["distinct"]),
            step_up=StepUp(one["step_up"]),
            clause=one.get("clause", 0),
            after_min=one.get("after_min", 0),
        )
        for one in value
    )


def _one(n: int, item: Any) -> Threshold:
    try:
        return _parsed(item)
    except BadThresholds as error:
        raise BadThresholds(_("Threshold %(n)d: %(why)s") % {"n": n, "why": error}) from None


def _parsed(item: Any) -> Threshold:
    if not isinstance(item, dict):
        raise BadThresholds(_("it must be an object such as {“approve”: 2, “from”: “group:…”}."))
    if unknown := sorted(set(item) - _KEYS):
        said = _("there is no “%(key)s”; known are %(known)s.")
        raise BadThresholds(said % {"key": unknown[0], "known": ", ".join(sorted(_KEYS))})
    threshold = Threshold(
        approve=_count(item, "approve", 1, MOST_PEOPLE),
        deny=_count(item, "deny", 1, MOST_PEOPLE),
        source=_source(item.get("from", "")),
        distinct=_choice(item, "distinct", Distinct, Distinct.PERSON),
        step_up=_choice(item, "step_up", StepUp, StepUp.NONE),
        after_min=_count(item, "after_min", 0, AFTER_MOST_MIN),
    )
    if threshold.source.startswith(PERSON) and max(threshold.approve, threshold.deny) > 1:
        raise BadThresholds(_("one person has one vote: approve and deny must be 1."))
    return threshold


def _count(item: Mapping[str, Any], key: str, least: int, most: int) -> int:
    """A number within the bounds; the least where the key is missing."""
    n = item.get(key, least)
    if type(n) is not int or not least <= n <= most:
        said = _("“%(key)s” must be a whole number from %(least)d to %(most)d.")
        raise BadThresholds(said % {"key": key, "least": least, "most": most})
    return n


def _source(value: Any) -> str:
    if value == "":
        return ""
    if isinstance(value, str):
        for kind in (GROUP, PERSON):
            if value.startswith(kind) and len(value) > len(kind) and "\0" not in value:
                return value
    raise BadThresholds(_("“from” must be “group:NAME”, “person:NAME”, or empty for everybody."))


def _choice(item: Mapping[str, Any], key: str, choices: type[_Choice], usual: _Choice) -> _Choice:
    value = item.get(key, usual)
    if not isinstance(value, str) or value not in choices.values:
        said = _("“%(key)s” must be one of %(known)s.")
        known = ", ".join(f"“{one}”" for one in choices.values)
        raise BadThresholds(said % {"key": key, "known": known})
    return choices(value)


def unmeetable(thresholds: Iterable[Threshold]) -> str:
    """Why one of them can never be met by the people that there are; empty if all can."""
    for n, one in enumerate(thresholds, start=1):
        there_are = len(people(one.source))
        if there_are < one.approve:
            said = _("Threshold %(n)d can never be met: %(who)s: %(there_are)d may decide.")
            who = one.source.partition(":")[2] or _("everybody")
            return said % {"n": n, "who": who, "there_are": there_are}
    return ""


class Decider(NamedTuple):
    """A person who may decide at all."""

    pk: int
    groups: Collection[str]
    # Also those from before.
    names: Collection[str]
    shown_name: str
    # How strongly they could confirm a yes; and nobody else can have signed in as them.
    strength: StepUp
    is_vouched_for: bool


def deciders() -> list[Decider]:
    """All of them by name, whatever thresholds ask."""
    groups = Group.objects.filter(user=OuterRef("pk")).values("name")
    names = UsedName.objects.filter(person=OuterRef("pk")).values("name")
    passkeys = Passkey.objects.usable().filter(person=OuterRef("pk"), rp_id=rp_id())
    codes = CodeApp.objects.filter(person=OuterRef("pk")).exclude(confirmed_at=None)
    identity = Identity.objects.connected().filter(person=OuterRef("pk"))
    allowing = [one.issuer for one in usable_providers() if one.step_up_acr_values]
    able = User.objects.with_perm(DECIDE, backend=BACKEND).annotate(
        of=ArraySubquery(groups),
        called=ArraySubquery(names),
        strength=Case(
            When(Exists(passkeys), then=Value(StepUp.PASSKEY.value)),
            When(Exists(codes), then=Value(StepUp.TOTP.value)),
            When(Exists(identity.filter(issuer__in=allowing)), then=Value(StepUp.TOTP.value)),
            default=Value(""),
        ),
        # As User.is_vouched_for.
        vouched=ExpressionWrapper(
            Q(let_in_by=None)
            | ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
            | Exists(identity),
            output_field=models.BooleanField(),
        ),
    )
    columns = ("pk", "username", "first_name", "of", "called", "strength", "vouched")
    return [
        Decider(pk, set(of), {name, *called}, shown_name(name, display), StepUp(strength), vouched)
        for pk, name, display, of, called, strength, vouched in able.order_by(
            "username"
        ).values_list(*columns)
    ]


def people(source: str) -> set[int]:
    """The people of `source` who may decide at all."""
    able = User.objects.with_perm(DECIDE, backend=BACKEND)
    kind, _colon, name = source.partition(":")
    if kind == "group":
        able = able.filter(groups__name=name)
    elif kind == "person":
        able = able.filter(Q(username=name) | Q(names__name=name))
    return set(able.values_list("pk", flat=True))
