"""One tool call, from asking to result, and what is kept beside it."""

from calls.models.call import Call, CallQuerySet
from calls.models.content import (
    Input,
    LateReply,
    Link,
    ListedTask,
    LogLevel,
    LogLine,
    ReceivedResult,
    Result,
    ResultPart,
)
from calls.models.freezes import Freeze, FreezeQuerySet
from calls.models.pauses import Pause, PauseQuerySet
from calls.models.requests import Amendment, Once, Rerun
from calls.models.tally import MoveTally

__all__ = [
    "Amendment",
    "Call",
    "CallQuerySet",
    "Freeze",
    "FreezeQuerySet",
    "Input",
    "LateReply",
    "Link",
    "ListedTask",
    "LogLevel",
    "LogLine",
    "MoveTally",
    "Once",
    "Pause",
    "PauseQuerySet",
    "ReceivedResult",
    "Rerun",
    "Result",
    "ResultPart",
]
