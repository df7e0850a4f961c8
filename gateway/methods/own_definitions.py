"""Definitions of the gateway's own tools; their names come from the toolset."""

from __future__ import annotations

from typing import Any

from registry.models import OwnTool

_READS = {"readOnlyHint": True, "openWorldHint": False}
_SAYS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
_CANCELS = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False}


def _call_id(what: str) -> dict[str, Any]:
    return {"type": "string", "format": "uuid", "description": f"{what}, one of your own."}


def _tool(
    name: str,
    title: str,
    description: str,
    annotations: dict[str, bool],
    **properties: dict[str, Any],
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [one for one in properties if one != "arguments"]:
        schema["required"] = required
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema | {"additionalProperties": False},
        "annotations": annotations,
    }


AWAIT_CALL = _tool(
    OwnTool.AWAIT,
    "Wait for a call",
    "Wait for the outcome of a call that a person had to approve or that took long, and get "
    "its result. Takes the call_id that the earlier answer named. If there is still no "
    "outcome after about 45 seconds it says so: then use it again.",
    _READS,
    call_id=_call_id("The call to wait for"),
)
GET_CALL = _tool(
    OwnTool.GET,
    "Look at a call",
    "See how one of your calls stands, without waiting: its state, why it waits or was refused, "
    "what people ask about it, and its result once there is one.",
    _READS,
    call_id=_call_id("The call to look at"),
)
CANCEL_CALL = _tool(
    OwnTool.CANCEL,
    "Cancel a call",
    "Withdraw one of your calls that waits for a person, or stop one that runs. What was sent "
    "already may have happened all the same: the answer says so.",
    _CANCELS,
    call_id=_call_id("The call to cancel"),
)
MY_WAITING_CALLS = _tool(
    OwnTool.WAITING,
    "List calls that have not ended",
    "List your calls that wait for a person or a worker, or run now, newest first, with what "
    "people ask about them.",
    _READS,
)
JUSTIFY = _tool(
    OwnTool.JUSTIFY,
    "Explain a call to those who decide",
    "Say why a call of yours that waits for approval is needed, or answer what a person asks "
    "about it. Those who decide read it as your claim; it cannot be taken back.",
    _SAYS,
    call_id=_call_id("The call that waits"),
    text={
        "type": "string",
        "minLength": 1,
        "maxLength": 4000,
        "description": "What you say, in plain words.",
    },
)
EXPLAIN = _tool(
    OwnTool.EXPLAIN,
    "Ask what rules would say",
    "Find out whether a call would run, wait for a person or be refused, and why, before you "
    "make it. Nothing is sent.",
    _READS,
    tool={"type": "string", "description": "The tool's name, as it is listed here."},
    arguments={"type": "object", "description": "The arguments that the call would have."},
)

DEFINITIONS: dict[str, dict[str, Any]] = {
    OwnTool.AWAIT: AWAIT_CALL,
    OwnTool.GET: GET_CALL,
    OwnTool.CANCEL: CANCEL_CALL,
    OwnTool.WAITING: MY_WAITING_CALLS,
    OwnTool.JUSTIFY: JUSTIFY,
    OwnTool.EXPLAIN: EXPLAIN,
}
