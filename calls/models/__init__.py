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
from calls.models.retention import (
    MOST_RETENTION_DAYS,
    PostponedErasure,
    RetainedContent,
    RetentionPeriod,
    RetentionProgress,
    RetentionScope,
)
from calls.models.tally import MoveTally

__all__ = [
    "MOST_RETENTION_DAYS",
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
    "PostponedErasure",
    "ReceivedResult",
    "Rerun",
    "Result",
    "ResultPart",
    "RetainedContent",
    "RetentionPeriod",
    "RetentionProgress",
    "RetentionScope",
]
