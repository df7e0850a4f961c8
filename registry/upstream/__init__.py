"""Our MCP client for tool servers: plain values in, plain values out."""

from registry.upstream.client import Upstreams
from registry.upstream.headers import InvalidAnnotation, declared_params, param_headers
from registry.upstream.values import (
    Answered,
    CancelledUpstream,
    Discovery,
    InputWanted,
    Limits,
    Lost,
    Nonsense,
    NotSent,
    OnInput,
    OnTask,
    OutcomeUnknown,
    Progress,
    Reply,
    Target,
    TaskRef,
    TimedOut,
    TooLarge,
    UpstreamError,
)

__all__ = [
    "Answered",
    "CancelledUpstream",
    "Discovery",
    "InputWanted",
    "InvalidAnnotation",
    "Limits",
    "Lost",
    "Nonsense",
    "NotSent",
    "OnInput",
    "OnTask",
    "OutcomeUnknown",
    "Progress",
    "Reply",
    "Target",
    "TaskRef",
    "TimedOut",
    "TooLarge",
    "UpstreamError",
    "Upstreams",
    "declared_params",
    "param_headers",
]
