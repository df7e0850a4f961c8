"""Foresees a call, for an agent that asks before it makes one. Nothing is sent or recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from core.english import gettext as _
from gateway.call_request import NO_ARGUMENTS, CallRequest, subject, with_fixed_arguments
from gateway.process.runtime import Runtime, Snapshot
from gateway.submit import limits
from gateway.submit.submit import decide, over_limit
from gateway.submit.token_scope import why_outside
from policies.decide import Decision
from policies.limits.explained import LimitEvaluation, evaluate
from policies.limits.words import measure
from policies.models import Effect
from registry.publishing.published_tools import PublishedTool, Violation


@dataclass(frozen=True, slots=True)
class ForeseenCall:
    """`decision`: of rules, emergency stops and limits together; its public rule may be a limit.
    `evaluated`: the limits that cover the call."""

    decision: Decision
    granted: bool
    violations: list[Violation]
    evaluated: list[LimitEvaluation]
    tool: PublishedTool

    @property
    def said(self) -> str:
        if self.violations:
            return _("Its arguments do not fit: it would be blocked.")
        if self.granted:
            return _("It would run: a standing approval covers it.")
        match self.decision.effect:
            case Effect.ALLOW:
                return _("It would run at once.")
            case Effect.ASK:
                return _("It would wait until people approve it.")
            case _other:
                return _("It would be denied.")

    def members(self) -> dict[str, Any]:
        """No other rule is named than the one that decides: an agent that was misled would learn
        where the gaps are."""
        return {
            "effect": self.decision.effect,
            "granted": self.granted,
            "said": self.said,
            "rule": self.decision.public_rule,
            "reason": self.decision.reason,
            "allowed": self.decision.instead,
            "limits": [_limit_member(one) for one in self.evaluated if not one.limit.shadow],
            "results": self.tool.with_results(self.decision.results).result_sentences,
            "labels": list(self.tool.labels),
            "violations": [{"path": v.path, "expected": v.expected} for v in self.violations],
        }


def _limit_member(found: LimitEvaluation) -> dict[str, Any]:
    limit = found.limit
    return {
        "name": limit.name,
        "effect": limit.effect.value,
        "at_most": measure(limit),
        "reached": found.is_over,
    }


async def foresee_call(
    runtime: Runtime, call_request: CallRequest, tool: PublishedTool
) -> ForeseenCall:
    call_request, differing = with_fixed_arguments(call_request)
    snapshot = await runtime.newest()
    decision = await decide(runtime, snapshot, call_request, tool)
    evaluated = await asyncio.to_thread(_evaluated, snapshot, call_request, tool)
    if frozen := snapshot.freezes.over(call_request.bearer.agent_id, tool.server_id):
        decision = _stopped(decision, frozen)
    if outside := why_outside(call_request.bearer, call_request.toolset, tool):
        decision = _stopped(decision, outside)
    over = [one for one in evaluated if one.effect]
    granted = None
    if over and decision.effect != Effect.DENY:
        decision = _over_limits(decision, over)
    elif decision.effect == Effect.ASK:
        arguments, bearer = call_request.arguments or NO_ARGUMENTS, call_request.bearer
        granted = snapshot.grants.matching(
            subject(call_request, tool), decision, arguments, bearer.parties, bearer.inviters
        )
    violations = differing or tool.violations(call_request.parsed)
    return ForeseenCall(decision, granted is not None, violations, evaluated, tool)


def _stopped(decision: Decision, reason: str) -> Decision:
    return replace(decision, effect=Effect.DENY, reason=reason, public_rule="", instead="")


def _over_limits(decision: Decision, over: Sequence[LimitEvaluation]) -> Decision:
    denying = [one.reached for one in over if one.effect == Effect.DENY]
    if worst := limits.strictest(denying):
        reason, limit = worst.sentence, worst.limit.name
        return replace(decision, effect=Effect.DENY, reason=reason, public_rule=limit, instead="")
    return over_limit(decision, " ".join(one.reached.sentence for one in over))


def _evaluated(
    snapshot: Snapshot, call_request: CallRequest, tool: PublishedTool
) -> list[LimitEvaluation]:
    arguments = call_request.arguments or NO_ARGUMENTS
    asked, parties = subject(call_request, tool), limits.parties_of(call_request, tool)
    if not snapshot.limits.covering(asked):
        return []
    try:
        return evaluate(asked, parties, arguments, snapshot.limits)
    finally:
        connection.close()
