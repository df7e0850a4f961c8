"""Why a call brought no result, for programs and models: whether asking again makes sense, and
what would be allowed instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext as _

from calls.states import Executed, State


class Again(models.TextChoices):
    """When may the same agent ask for it again?"""

    NO = "no"
    CHANGED = "changed"
    LATER = "later"
    NOW = "now"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`kind`: "policy", "invalid", "unknown_tool", "frozen", "key", "limit", "unavailable", or the
    state that the call ended in. `rule` and `allowed` as the rule's author lets agents read."""

    kind: str
    again: Again
    rule: str = ""
    allowed: str = ""

    @property
    def sentence(self) -> str:
        """What a model should know beyond the reason."""
        parts = [_("Rule: “%s”.") % self.rule if self.rule else ""]
        parts.append(str(_AGAIN.get(self.kind, "")))
        parts.append(_("What would be allowed: %s") % self.allowed if self.allowed else "")
        return " ".join(part for part in parts if part)

    def told(self, reason: str) -> dict[str, Any]:
        """For `_meta`, `structuredContent` and the members of a problem."""
        return {
            "kind": self.kind,
            "reason": reason,
            "rule": self.rule or None,
            "try_again": self.again.value,
            "allowed": self.allowed or None,
        }


# Kinds whose states say it already are not here (calls/answers.py, ADVICE).
_AGAIN = {
    "policy": "Do not ask again unchanged: the same is refused each time.",
    "frozen": "The same may be asked again once somebody has ended the freeze.",
}

_STATES = {
    State.DENIED: Again.CHANGED,
    State.EXPIRED: Again.NOW,
    State.SUPERSEDED: Again.NOW,
    State.WITHDRAWN: Again.NO,
    State.CANCELLED: Again.NO,
    State.UNKNOWN: Again.NO,
}


def of_state(state: State, executed: str, *, rule: str = "", allowed: str = "") -> Refusal:
    """Of a call that ended without a result."""
    if executed == Executed.NO and state not in _STATES:
        return Refusal(state.value, Again.LATER, rule, allowed)
    return Refusal(state.value, _STATES.get(state, Again.NO), rule, allowed)


def of_policy(rule: str, allowed: str, *, conditional: bool) -> Refusal:
    """`conditional`: other arguments may be judged otherwise."""
    return Refusal("policy", Again.CHANGED if conditional else Again.NO, rule, allowed)


def of_call(state: State, executed: str, effect: str, rule: tuple[str, str, bool]) -> Refusal:
    """Of one that ended some time ago; `rule`: what its agent may read of it, and whether it
    looks at arguments."""
    name, allowed, conditional = rule
    if state == State.REFUSED and effect == "deny":
        return of_policy(name, allowed, conditional=conditional)
    return of_state(state, executed, rule=name, allowed=allowed)
