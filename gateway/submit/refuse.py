"""Refuses a call: its row and entry, and the answer that its agent reads."""

from __future__ import annotations

from uuid import UUID

from calls.content.answers import build_answer
from calls.record.listed_tasks import LIST
from calls.record.refusal import RefusalDetails, RetryAdvice, of_policy
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
_LATER = ("frozen", SIGN_IN)


async def refuse(
    runtime: Runtime,
    call_request: CallRequest,
    refusal: str,
    reason: str,
    violations: list[Violation] | None = None,
    decision: Decision | None = None,
) -> SubmitResult:
    made = make_new_call(call_request, State.REFUSED, decision, reason=reason)
    made.details["refusal"] = refusal
    # Of what its agent is told as an error there is no task.
    listed = [] if refusal in ("unknown_tool", "key") else task_lines(call_request)
    await runtime.call_runtime.journal.write((OPEN, made.line()), *listed)
    runtime.call_runtime.engine.notifier.notify("calls")
    why = _why(refusal, decision)
    answer = build_answer(made.id, State.REFUSED, reason, Executed.NO, None, None, why)
    return SubmitResult(made.id, State.REFUSED, answer, False, refusal, reason, violations or [])


def limit_refusal(call_id: UUID, reached: LimitReached) -> SubmitResult:
    sentence = reached.sentence
    again = RetryAdvice.CHANGED if reached.is_hopeless else RetryAdvice.LATER
    why = RefusalDetails("limit", again, reached.limit.name, after_s=reached.wait_s)
    answer = build_answer(call_id, State.REFUSED, sentence, Executed.NO, None, None, why)
    return SubmitResult(
        call_id, State.REFUSED, answer, refusal="limit", reason=sentence, reached=reached
    )


def _why(refusal: str, decision: Decision | None) -> RefusalDetails:
    if decision is not None:
        return of_policy(decision.public_rule, decision.instead, conditional=decision.conditional)
    return RefusalDetails(refusal, RetryAdvice.LATER if refusal in _LATER else RetryAdvice.CHANGED)


def needs_approval(decision: Decision) -> str:
    said = _("This waits for no person: a rule has to allow it. %(why)s")
    return said % {"why": decision.reason}


def task_lines(call_request: CallRequest) -> list[Line]:
    if not call_request.as_task:
        return []
    return [(LIST, {"id": call_request.call_id, "agent_id": call_request.bearer.agent_id})]


def violation_sentence(violations: list[Violation]) -> str:
    first = violations[0]
    more = len(violations) - 1
    sentence = _("The arguments do not fit the schema: %(path)s: %(expected)s") % {
        "path": first.path or "/",
        "expected": first.expected,
    }
    return sentence + (_(" (and %(n)d more)") % {"n": more} if more else "")
