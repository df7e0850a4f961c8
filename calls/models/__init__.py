"""One tool call, from asking to result, and what is kept beside it."""

from calls.models.beside import Amendment, Once, Rerun
from calls.models.call import Call, CallQuerySet
from calls.models.freezes import Freeze, FreezeQuerySet
from calls.models.kept import (
    Input,
    LateReply,
    Link,
    ListedTask,
    LogLevel,
    LogLine,
    Result,
    ResultPart,
)

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
    "Once",
    "Rerun",
    "Result",
    "ResultPart",
]
