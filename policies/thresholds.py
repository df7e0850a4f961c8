"""Who decides, and how many: a rule's thresholds, of which the first that is met decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.models import Group
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from core.errors import CountersignError

# Of approvals, which know rules and not the other way round.
DECIDE = "approvals.decide_approval"
BACKEND = "django.contrib.auth.backends.ModelBackend"
MOST = 10
MOST_PEOPLE = 50
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


@dataclass(frozen=True, slots=True)
class Threshold:
    """So many people for a yes, so many for a no; `source`: "" (whoever may decide),
    "group:NAME" or "person:NAME"."""

    approve: int = 1
    deny: int = 1
    source: str = ""
    distinct: Distinct = Distinct.PERSON
    step_up: StepUp = StepUp.NONE

    def is_from(self, name: str, groups: Collection[str]) -> bool:
        """Does it ask a person of this name, who is in these groups?"""
        kind, _colon, wanted = self.source.partition(":")
        if not kind:
            return True
        return wanted == name if kind == "person" else wanted in groups

    def plain(self) -> dict[str, Any]:
        return {
            "approve": self.approve,
            "deny": self.deny,
            "from": self.source,
            "distinct": str(self.distinct),
            "step_up": str(self.step_up),
        }

    def __str__(self) -> str:
        parts = [_approvals(self)]
        if self.distinct == Distinct.TEAM:
            parts.append(_("of different teams"))
        if self.step_up:
            parts.append(_("confirmed by %(what)s") % {"what": StepUp(self.step_up).label})
        return f"{', '.join(parts)}; {_denials(self.deny)}"


_Choice = TypeVar("_Choice", bound=models.TextChoices)
# Where a rule says nothing: one person's yes or no.
DEFAULT = (Threshold(),)
NOBODY = Threshold(approve=10**6)
_KEYS = {"approve", "deny", "from", "distinct", "step_up"}


def _approvals(one: Threshold) -> str:
    name = one.source.partition(":")[2]
    if one.source.startswith(PERSON):
        return _("a yes of %(name)s") % {"name": name}
    if one.source.startswith(GROUP):
        said = ngettext("%(n)d yes of %(name)s", "%(n)d yeses of %(name)s", one.approve)
        return said % {"n": one.approve, "name": name}
    said = ngettext("%(n)d yes", "%(n)d yeses", one.approve)
    return said % {"n": one.approve}


def _denials(n: int) -> str:
    return ngettext("%(n)d no refuses", "%(n)d noes refuse", n) % {"n": n}


def plain(thresholds: Iterable[Threshold]) -> list[dict[str, Any]]:
    return [one.plain() for one in thresholds or DEFAULT]


def parse(value: Any) -> tuple[Threshold, ...]:
    """From JSON; raises BadThresholds."""
    if not isinstance(value, list) or len(value) > MOST:
        raise BadThresholds(_("Give a list of at most %(n)d thresholds.") % {"n": MOST})
    return tuple(_one(n, item) for n, item in enumerate(value, start=1))


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
        approve=_count(item, "approve"),
        deny=_count(item, "deny"),
        source=_source(item.get("from", "")),
        distinct=_choice(item, "distinct", Distinct, Distinct.PERSON),
        step_up=_choice(item, "step_up", StepUp, StepUp.NONE),
    )
    if threshold.source.startswith(PERSON) and max(threshold.approve, threshold.deny) > 1:
        raise BadThresholds(_("one person has one vote: approve and deny must be 1."))
    return threshold


def _count(item: Mapping[str, Any], key: str) -> int:
    n = item.get(key, 1)
    if type(n) is not int or not 1 <= n <= MOST_PEOPLE:
        said = _("“%(key)s” must be a whole number from 1 to %(most)d.")
        raise BadThresholds(said % {"key": key, "most": MOST_PEOPLE})
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
    """Somebody who may decide at all."""

    pk: int
    name: str
    groups: Collection[str]


def deciders() -> list[Decider]:
    """All of them by name, whatever thresholds ask."""
    groups = Group.objects.filter(user=OuterRef("pk")).values("name")
    able = User.objects.with_perm(DECIDE, backend=BACKEND).annotate(of=ArraySubquery(groups))
    rows = able.order_by("username").values_list("pk", "username", "of")
    return [Decider(pk, name, set(of)) for pk, name, of in rows]


def people(source: str) -> set[int]:
    """Those of `source` who may decide at all."""
    able = User.objects.with_perm(DECIDE, backend=BACKEND)
    kind, _colon, name = source.partition(":")
    if kind == "group":
        able = able.filter(groups__name=name)
    elif kind == "person":
        able = able.filter(username=name)
    return set(able.values_list("pk", flat=True))
