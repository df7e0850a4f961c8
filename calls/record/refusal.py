"""Why a call brought no result, for programs and models: whether asking again makes sense, and
what would be allowed instead."""

from __future__ import annotations

from collections.abc import Mapping
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


# Of a request that could not be judged at all: nobody blocked it.
INVALID_KINDS = ("unknown_tool", "invalid", "key")
# In the entry of a call that was superseded, or that a limit blocked: which of these.
AGAIN = "try_again"


@dataclass(frozen=True, slots=True)
class RefusalDetails:
    """`kind`: "policy", "invalid", "unknown_tool", "frozen", "key", "limit", "sign_in", "scope",
    "unavailable", "too_large", "result_blocked", or the state that the call ended in. `rule` and
    `allowed` as the rule's author lets agents read."""

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
        is_hopeless = self.kind == "limit" and self.again == RetryAdvice.CHANGED
        parts.append(_("Do not ask again unchanged.") if is_hopeless else _AGAIN.get(self.kind, ""))
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


# Of a call that was executed: its result was too large, or its tool's checks blocked it.
TOO_LARGE, RESULT_BLOCKED = "too_large", "result_blocked"
# The same call may be taken later; the other kinds need other arguments.
_LATER = ("frozen", "sign_in", "limit")
# Kinds whose states say it already are not here (calls/content/answers.py, ADVICE).
_AGAIN = {
    "policy": "Do not ask again unchanged: the same is refused each time.",
    TOO_LARGE: (
        "The tool was executed; its result was not kept. Do not repeat the call to get the result."
    ),
    RESULT_BLOCKED: "Do not repeat the call to get the result.",
    "limit": "Do not ask again before there is room.",
    "sign_in": "Give the user this link. The same may be asked again after the sign-in.",
    "scope": "Do not ask again: another token of the agent is needed.",
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


def of_state(
    state: State,
    executed: str,
    details: Mapping[str, Any] | None = None,
    *,
    rule: str = "",
    allowed: str = "",
) -> RefusalDetails:
    """The details for a call that ended in this state without a result. `details`: of its last
    entry."""
    if state == State.FAILED and executed == Executed.YES:
        kind = RESULT_BLOCKED if _is_result_blocked(details or {}) else TOO_LARGE
        return RefusalDetails(kind, RetryAdvice.NO, rule, allowed)
    if executed in (Executed.NO, Executed.REPORTED) and state not in _STATES:
        return RefusalDetails(state.value, RetryAdvice.LATER, rule, allowed)
    return RefusalDetails(state.value, _STATES.get(state, RetryAdvice.NO), rule, allowed)


def _is_result_blocked(details: Mapping[str, Any]) -> bool:
    """The checks of its tool blocked it (calls/running/cleaning.py)."""
    found = details.get("result")
    return isinstance(found, dict) and bool(found.get("blocked")) and "too_long" not in found


def of_refusal(kind: str, again: str | None = None, limit: str = "") -> RefusalDetails:
    """The details for a call that no rule blocked."""
    usual = RetryAdvice.LATER if kind in _LATER else RetryAdvice.CHANGED
    if kind == "scope":
        usual = RetryAdvice.NO
    return RefusalDetails(kind, RetryAdvice(again) if again in RetryAdvice.values else usual, limit)


def of_policy(rule: str, allowed: str, *, conditional: bool) -> RefusalDetails:
    """`conditional`: other arguments may be judged otherwise."""
    return RefusalDetails(
        "policy", RetryAdvice.CHANGED if conditional else RetryAdvice.NO, rule, allowed
    )


def of_call(
    state: State,
    executed: str,
    effect: str,
    rule: tuple[str, str, bool],
    details: Mapping[str, Any] | None = None,
) -> RefusalDetails:
    """The details for a call that ended some time ago. `rule`: its public name, its hint, and
    whether it has a condition. `details`: of the call's last entry."""
    (name, allowed, conditional), found = rule, details or {}
    kind, again = str(found.get("refusal", "")), found.get(AGAIN)
    if state == State.REFUSED and (effect == "deny" or kind == "policy"):
        return of_policy(name, allowed, conditional=conditional)
    if state in (State.REFUSED, State.INVALID) and kind:
        return of_refusal(kind, again, str(found.get("limit", "")))
    refusal = of_state(state, executed, found, rule=name, allowed=allowed)
    return replace(refusal, again=RetryAdvice(again)) if again in RetryAdvice.values else refusal
