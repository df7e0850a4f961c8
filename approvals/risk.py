"""How much depends on a call: a score of 100 with its reasons, each in words.

What a server claims of its tool only ever adds to it, and what it does not declare counts nearly as
much as the worst. The weights discriminate within one queue; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.risk_history import NO_HISTORY, RiskHistory
from calls.models import Call
from core.text import hidden_count, lookalike_count

MOST = 100
HIGH, MEDIUM = 60, 30
RECENT = timedelta(days=7)
# In bytes of arguments: what nobody reads at a glance, and what nobody reads whole.
LARGE, HUGE = 4_000, 40_000


class Reason(NamedTuple):
    points: int
    words: str


class RiskFacts(NamedTuple):
    """All that the score is made of."""

    hints: Mapping[str, bool]
    history: RiskHistory = NO_HISTORY
    size: int = 0
    # Characters that do not show themselves, and those that pass for others.
    hidden: int = 0
    lookalikes: int = 0
    version: int = 1
    # Since this version of the definition was first seen; None without a definition.
    age: timedelta | None = None


class Risk(NamedTuple):
    score: int
    reasons: list[Reason]

    @property
    def level(self) -> str:
        return "high" if self.score >= HIGH else "medium" if self.score >= MEDIUM else "low"

    @property
    def label(self) -> str:
        return {"high": _("High risk"), "medium": _("Some risk"), "low": _("Low risk")}[self.level]


def risk(call: Call, given: Any, history: RiskHistory) -> Risk:
    return assess(facts(call, given, history))


def facts(call: Call, given: Any, history: RiskHistory) -> RiskFacts:
    definition, texts = call.definition, list(_texts(given))
    return RiskFacts(
        hints=definition.hints if definition else {},
        history=history,
        size=len(call.to_send),
        hidden=sum(map(hidden_count, texts)),
        lookalikes=sum(map(lookalike_count, texts)),
        version=definition.version if definition else 1,
        age=call.asked_at - definition.first_seen_at if definition else None,
    )


def assess(known: RiskFacts) -> Risk:
    """The heaviest reason first."""
    found = [
        *_effect(known.hints),
        *_reach(known.hints),
        *_past(known.history),
        *_age(known),
        *_content(known),
    ]
    found.sort(key=lambda reason: -reason.points)
    return Risk(min(MOST, sum(reason.points for reason in found)), found)


def _effect(hints: Mapping[str, bool]) -> Iterator[Reason]:
    if hints.get("readOnlyHint"):
        yield Reason(0, _("read-only"))
    elif hints.get("destructiveHint"):
        yield Reason(30, _("destructive"))
    elif "destructiveHint" in hints:
        yield Reason(10, _("changes something"))
    else:
        yield Reason(25, _("not declared whether it is destructive"))


def _reach(hints: Mapping[str, bool]) -> Iterator[Reason]:
    if "openWorldHint" not in hints:
        yield Reason(10, _("not declared whether it reaches other systems"))
    elif hints["openWorldHint"]:
        yield Reason(15, _("open-world: reaches other systems"))


def _past(history: RiskHistory) -> Iterator[Reason]:
    if history.is_first_use:
        yield Reason(15, _("first use of the tool by this agent"))
    if history.denied:
        words = ngettext(
            "%(n)d call like it was denied", "%(n)d calls like it were denied", history.denied
        )
        yield Reason(min(20, 5 + 5 * history.denied), words % {"n": history.denied})


def _age(known: RiskFacts) -> Iterator[Reason]:
    if known.age is None or known.age > RECENT:
        return
    if known.version > 1:
        yield Reason(15, _("definition changed in the last 7 days"))
    else:
        yield Reason(5, _("tool first seen in the last 7 days"))


def _content(known: RiskFacts) -> Iterator[Reason]:
    if known.hidden:
        words = ngettext("%(n)d hidden character", "%(n)d hidden characters", known.hidden)
        yield Reason(25, words % {"n": known.hidden})
    if known.lookalikes:
        words = ngettext(
            "%(n)d look-alike character", "%(n)d look-alike characters", known.lookalikes
        )
        yield Reason(20, words % {"n": known.lookalikes})
    if known.size > LARGE:
        points = 10 if known.size > HUGE else 5
        yield Reason(points, _("%(n)d kB of arguments") % {"n": round(known.size / 1000)})


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict):
        for name, member in given.items():
            yield name
            yield from _texts(member)
    elif isinstance(given, list):
        for member in given:
            yield from _texts(member)
