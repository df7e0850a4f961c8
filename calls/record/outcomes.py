"""Turns the upstream client's replies and errors into outcomes: one function, so that no failure is
recorded as a success."""

from __future__ import annotations

from dataclasses import replace

import orjson
from django.conf import settings

from calls.record.states import ATTEMPTS, Executed, State
from calls.record.transitions import Outcome
from core.english import gettext as _
from registry.upstream import (
    CallReply,
    CancelledUpstream,
    InputWanted,
    NotSent,
    OutcomeUnknown,
    RefusedByServer,
    ResultTooLarge,
    RpcErrorReply,
    TimedOut,
    UpstreamError,
)

# Not sent, and by the status that the server's greeting got, if any, not for good either.
PASSING = (None, 429, 502, 503, 504)


def of_reply(reply: CallReply) -> Outcome:
    if reply.kind != "complete":
        return Outcome(
            State.FAILED,
            _("The server answered with “%(kind)s”, which was not offered to it.")
            % {"kind": reply.kind[:40]},
            Executed.UNKNOWN,
        )
    state = State.TOOL_ERROR if reply.is_error else State.SUCCEEDED
    return Outcome(state, "", Executed.YES, reply.result)


def of_error(
    error: UpstreamError,
    *,
    safe_to_repeat: bool,
    doubtful: bool = False,
    cancel_is_final: bool = False,
) -> Outcome:
    """`doubtful`: an earlier attempt may have been executed. `cancel_is_final`: by an operator's
    word nobody has to find out whether a cancelled call was."""
    sentence = str(error)
    # What a server says of its last attempt, it does not say of those before.
    reported = Executed.UNKNOWN if doubtful else Executed.REPORTED
    match error:
        case NotSent() if doubtful:
            return Outcome(
                State.FAILED,
                _("The last attempt was not sent: %(why)s An earlier one may have been executed.")
                % {"why": sentence},
                Executed.UNKNOWN,
            )
        case NotSent():
            return Outcome(
                State.FAILED, _("Not executed: %(why)s") % {"why": sentence}, Executed.NO
            )
        case RefusedByServer():
            return Outcome(State.FAILED, sentence, reported)
        case RpcErrorReply():
            body = orjson.dumps(error.raw)
            return Outcome(State.FAILED, sentence, reported, body, "error")
        case ResultTooLarge():
            return Outcome(State.FAILED, sentence, Executed.YES)
        case InputWanted() if error.acknowledged or safe_to_repeat:
            return Outcome(State.FAILED, sentence, Executed.UNKNOWN)
        case CancelledUpstream() if error.acknowledged or safe_to_repeat or cancel_is_final:
            return Outcome(State.CANCELLED, sentence, Executed.UNKNOWN)
        case TimedOut() if safe_to_repeat:
            return Outcome(State.TIMED_OUT, sentence, Executed.UNKNOWN)
        case OutcomeUnknown() if safe_to_repeat:
            return Outcome(State.FAILED, sentence, Executed.UNKNOWN)
        case _:
            return Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)


def may_go_again(error: UpstreamError, *, safe_to_repeat: bool, doubtful: bool) -> bool:
    """Nothing was sent and the next attempt may find the server well, or repeating is safe."""
    match error:
        case NotSent():
            return error.status in PASSING and (safe_to_repeat or not doubtful)
        case ResultTooLarge() | CancelledUpstream():
            return False
        case OutcomeUnknown():
            return safe_to_repeat
        case _:
            return False


def schedule_retry(outcome: Outcome, *, attempt: int) -> Outcome:
    """The same, but not for good: back to the queue, as long as attempts are left."""
    if attempt >= ATTEMPTS:
        return outcome
    after_s = settings.RETRY_AFTER_S[:attempt][-1]
    return replace(outcome, state=State.QUEUED, after_s=after_s)


def cut_off(error: UpstreamError, *, safe_to_repeat: bool, attempt: int) -> Outcome:
    """The outcome of a call whose process stops before it ends."""
    if isinstance(error, NotSent):
        sentence = _("The worker stopped before the call was sent.")
        return Outcome(State.QUEUED, sentence, Executed.NO, after_s=0.0)
    sentence = _("The worker stopped while the call was running.")
    outcome = Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
    if not isinstance(error, CancelledUpstream):
        outcome = of_error(error, safe_to_repeat=safe_to_repeat)
    repeatable = isinstance(error, OutcomeUnknown) and not isinstance(error, ResultTooLarge)
    return schedule_retry(outcome, attempt=attempt) if safe_to_repeat and repeatable else outcome
