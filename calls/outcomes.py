"""From what the upstream client says to how a call ended: one function, so that no failure is
ever written down as a success."""

from __future__ import annotations

import orjson
from django.utils.translation import gettext as _

from calls.states import Executed, State
from calls.transitions import Outcome
from registry.upstream import (
    Answered,
    CancelledUpstream,
    NotSent,
    OutcomeUnknown,
    Reply,
    TimedOut,
    TooLarge,
    UpstreamError,
)


def of_reply(reply: Reply) -> Outcome:
    if reply.kind != "complete":
        return Outcome(
            State.FAILED,
            _("The server answered with “%(kind)s”, which was not offered to it.")
            % {"kind": reply.kind[:40]},
            Executed.UNKNOWN,
        )
    state = State.TOOL_ERROR if reply.is_error else State.SUCCEEDED
    return Outcome(state, "", Executed.YES, reply.result)


def of_error(error: UpstreamError, *, safe_to_repeat: bool) -> Outcome:
    sentence = str(error)
    match error:
        case NotSent():
            return Outcome(
                State.FAILED, _("Not executed: %(why)s") % {"why": sentence}, Executed.NO
            )
        case Answered():
            body = orjson.dumps(error.raw)
            return Outcome(State.FAILED, sentence, Executed.UNKNOWN, body, "error")
        case TooLarge():
            return Outcome(State.FAILED, sentence, Executed.YES)
        case CancelledUpstream() if error.acknowledged or safe_to_repeat:
            return Outcome(State.CANCELLED, sentence, Executed.UNKNOWN)
        case TimedOut() if safe_to_repeat:
            return Outcome(State.TIMED_OUT, sentence, Executed.UNKNOWN)
        case OutcomeUnknown() if safe_to_repeat:
            return Outcome(State.FAILED, sentence, Executed.UNKNOWN)
        case _:
            return Outcome(State.UNKNOWN, sentence, Executed.UNKNOWN)
