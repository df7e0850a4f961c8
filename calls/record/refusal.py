"""Why a call brought no result, for programs and models: whether asking again makes sense, and
what would be allowed instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from django.db import models

from calls.record.states import Executed, State
from core.english import gettext as _


class RetryAdvice(models.TextChoices):
    """When may the same agent ask for it again?"""

    NO = "no"
    CHANGED = "changed"
    LATER = "later"
    NOW = "now"


# In the entry of a call that was superseded: which of these.
AGAIN = "try_again"


@dataclass(frozen=True, slots=True)
class RefusalDetails:
    """`kind`: "policy", "invalid", "unknown_tool", "frozen", "key", "limit", "sign_in",
    "unavailable", "too_large", or the state that the call ended in. `rule` and `allowed` as the
    rule's author lets agents read."""

    kind: str
    again: RetryAdvice
    rule: str = ""
    allowed: str = ""
    # Of a limit, where it is known: seconds until there is room.
    after_s: float | None = None

    @property
    def sentence(self) -> str:
        """Advice for a model beyond the reason."""
        is_rule = self.rule and self.kind != "limit"
        parts = [_("Rule: “%s”.") % self.rule if is_rule else ""]
        parts.append(_SUPERSEDED[self.again] if self.kind == State.SUPERSEDED else "")
        parts.append(_AGAIN.get(self.kind, ""))
        parts.append(_("Allowed instead: %s") % self.allowed if self.allowed else "")
        return " ".join(part for part in parts if part)

    def told(self, reason: str) -> dict[str, Any]:
        """Members for `_meta`, `structuredContent` and REST problems."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "reason": reason,
            "rule": self.rule or None,
            "try_again": self.again.value,
            "allowed": self.allowed or None,
        }
        if self.after_s is not None:
            told["after_s"] = ceil(self.after_s)
        return told


# Of a call that was executed and brought nothing that could be kept.
TOO_LARGE = "too_large"
# Kinds whose states say it already are not here (calls/content/answers.py, ADVICE).
_AGAIN = {
    "policy": "Do not ask again unchanged: the same is refused each time.",
    TOO_LARGE: (
        "The tool was executed; its result was not kept. Do not repeat the call to get the result."
    ),
    "limit": "Do not ask again before there is room.",
    "sign_in": "Give the user this link. The same may be asked again after the sign-in.",
    "frozen": "The same may be asked again once somebody has ended the stop or the pause.",
}

_SUPERSEDED = {
    RetryAdvice.NO: "Do not ask again: the same cannot be sent any more.",
    RetryAdvice.CHANGED: "Do not ask again unchanged: other arguments may be taken.",
    RetryAdvice.LATER: "It cannot be sent now. It may be asked for again later.",
    RetryAdvice.NOW: "List the tools again, and ask again if it is still needed.",
}

_STATES = {
    State.DENIED: RetryAdvice.CHANGED,
    State.EXPIRED: RetryAdvice.NOW,
    State.SUPERSEDED: RetryAdvice.NOW,
    State.WITHDRAWN: RetryAdvice.NO,
    State.CANCELLED: RetryAdvice.NO,
    State.UNKNOWN: RetryAdvice.NO,
}


def of_state(state: State, executed: str, *, rule: str = "", allowed: str = "") -> RefusalDetails:
    """The details for a call that ended in this state without a result."""
    if state == State.FAILED and executed == Executed.YES:
        return RefusalDetails(TOO_LARGE, RetryAdvice.NO, rule, allowed)
    if executed in (Executed.NO, Executed.REPORTED) and state not in _STATES:
        return RefusalDetails(state.value, RetryAdvice.LATER, rule, allowed)
    return RefusalDetails(state.value, _STATES.get(state, RetryAdvice.NO), rule, allowed)


def of_policy(rule: str, allowed: str, *, conditional: bool) -> RefusalDetails:
    """`conditional`: other arguments may be judged otherwise."""
    return RefusalDetails(
        "policy", RetryAdvice.CHANGED if conditional else RetryAdvice.NO, rule, allowed
    )


def of_call(
    state: State, executed: str, effect: str, rule: tuple[str, str, bool], again: str | None = None
) -> RefusalDetails:
    """The details for a call that ended some time ago. `rule`: its public name, its hint, and
    whether it has a condition. `again`: the retry advice in the call's last entry."""
    name, allowed, conditional = rule
    if state == State.REFUSED and effect == "deny":
        return of_policy(name, allowed, conditional=conditional)
    refusal = of_state(state, executed, rule=name, allowed=allowed)
    return replace(refusal, again=RetryAdvice(again)) if again in RetryAdvice.values else refusal
