"""Our MCP client for tool servers: plain values in, plain values out."""

from registry.upstream.calling import Call
from registry.upstream.client import Upstreams
from registry.upstream.headers import param_headers
from registry.upstream.questions import URL_REQUIRED
from registry.upstream.values import (
    Answered,
    Asking,
    CancelledUpstream,
    Discovery,
    InputWanted,
    Limits,
    Lost,
    Nonsense,
    NotSent,
    OnTask,
    OnUpdate,
    OutcomeUnknown,
    Pause,
    Progress,
    Reply,
    Target,
    TaskRef,
    TimedOut,
    TooLarge,
    Unanswered,
    UpstreamError,
)
from registry.upstream.wire import MODERN, responses

__all__ = [
    "MODERN",
    "URL_REQUIRED",
    "Answered",
    "Asking",
    "Call",
    "CancelledUpstream",
    "Discovery",
    "InputWanted",
    "Limits",
    "Lost",
    "Nonsense",
    "NotSent",
    "OnTask",
    "OnUpdate",
    "OutcomeUnknown",
    "Pause",
    "Progress",
    "Reply",
    "Target",
    "TaskRef",
    "TimedOut",
    "TooLarge",
    "Unanswered",
    "UpstreamError",
    "Upstreams",
    "param_headers",
    "responses",
]
