"""Refuses a call: its row and entry, and the answer that its agent reads."""

from __future__ import annotations

from uuid import UUID

from calls.content.answers import build_answer
from calls.record.listed_tasks import LIST
from calls.record.refusal import (
    AGAIN,
    INVALID_KINDS,
    RefusalDetails,
    RetryAdvice,
    of_policy,
    of_refusal,
)
from calls.record.states import Executed, State
from calls.record.transitions import OPEN
from core.english import gettext as _
from core.journal import Line
from gateway.call_request import CallRequest, SubmitResult
from gateway.process.new_call_cache import make_new_call
from gateway.process.runtime import Runtime
from policies.decide import Decision
from policies.limits.compiled import LimitReached
from registry.publishing.published_tools import Violation

# A person has to sign in at the server first.
SIGN_IN = "sign_in"
UNKNOWN = "unknown_tool"


async def refuse(
    runtime: Runtime,
    call_request: CallRequest,
    refusal: str,
    reason: str,
    violations: list[Violation] | None = None,
    decision: Decision | None = None,
    reached: LimitReached | None = None,
) -> SubmitResult:
    state = State.INVALID if refusal in INVALID_KINDS else State.REFUSED
    made = make_new_call(call_request, state, decision, reason=reason)
    made.details["refusal"] = refusal
    if reached is not None:
        # Whoever reads the call later is told the same.
        made.details |= {"limit": reached.limit.name, AGAIN: _limit_advice(reached).value}
    # Of what its agent is told as an error there is no task.
    listed = [] if refusal in (UNKNOWN, "key") else task_lines(call_request)
    await runtime.call_runtime.journal.write((OPEN, made.line()), *listed)
    runtime.call_runtime.engine.notifier.notify("calls")
    why = _why(refusal, decision)
    answer = build_answer(made.id, state, reason, Executed.NO, None, None, why)
    return SubmitResult(made.id, state, answer, False, refusal, reason, violations or [])


def limit_refusal(call_id: UUID, reached: LimitReached) -> SubmitResult:
    sentence, again = reached.sentence, _limit_advice(reached)
    why = RefusalDetails("limit", again, reached.limit.name, after_s=reached.wait_s)
    answer = build_answer(call_id, State.REFUSED, sentence, Executed.NO, None, None, why)
    return SubmitResult(
        call_id, State.REFUSED, answer, refusal="limit", reason=sentence, reached=reached
    )


def _limit_advice(reached: LimitReached) -> RetryAdvice:
    return RetryAdvice.CHANGED if reached.is_hopeless else RetryAdvice.LATER


def _why(refusal: str, decision: Decision | None) -> RefusalDetails:
    if decision is not None:
        return of_policy(decision.public_rule, decision.instead, conditional=decision.conditional)
    return of_refusal(refusal)


def needs_approval(decision: Decision) -> str:
    said = _("This waits for no person: a rule has to allow it. %(why)s")
    return said % {"why": decision.reason}


def task_lines(call_request: CallRequest) -> list[Line]:
    if not call_request.as_task:
        return []
    return [(LIST, {"id": call_request.call_id, "agent_id": call_request.bearer.agent_id})]


def no_such_tool() -> str:
    return _("There is no such tool.")


def violation_sentence(violations: list[Violation]) -> str:
    first = violations[0]
    more = len(violations) - 1
    sentence = _("The arguments do not fit the schema: %(path)s: %(expected)s") % {
        "path": first.path or "/",
        "expected": first.expected,
    }
    return sentence + (_(" (and %(n)d more)") % {"n": more} if more else "")
