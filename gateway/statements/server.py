"""The MCP server behind `POST /api/approvals`: its one tool does nothing but confirm.

A statement is a call of this tool, so rules, the queue, limits and the audit log treat it like
every call. It runs on stdio as a program of its own and imports nothing of Countersign.
Source: MCP 2025-11-25, basic/lifecycle and server/tools.
"""

from __future__ import annotations

import json
import sys
from typing import Any

REVISION = "2025-11-25"
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
TEXT_MAX, NAME_MAX, DETAILS_MAX = 4000, 200, 50

TOOL = {
    "name": "countersign",
    "title": "Statement",
    "description": (
        "Asks people to countersign a statement before a program acts on it. "
        "It does nothing itself: the program acts once the statement is approved."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "what": {
                "type": "string",
                "minLength": 1,
                # Not only blanks.
                "pattern": "\\S",
                "maxLength": TEXT_MAX,
                "description": "The act, in one or two sentences that an approver can check.",
            },
            "who": {
                "type": "string",
                "minLength": 1,
                # Not only blanks.
                "pattern": "\\S",
                "maxLength": NAME_MAX,
                "description": "The person or system that the act is done for.",
            },
            "why": {
                "type": "string",
                "minLength": 1,
                # Not only blanks.
                "pattern": "\\S",
                "maxLength": TEXT_MAX,
                "description": "The reason, such as a ticket with its number.",
            },
            "details": {
                "type": "array",
                "maxItems": DETAILS_MAX,
                "description": "Structured details of the act (RFC 9396, authorization details).",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "minLength": 1, "maxLength": NAME_MAX}
                    },
                    "required": ["type"],
                },
            },
        },
        "required": ["what", "who", "why"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"countersigned": {"type": "boolean"}},
        "required": ["countersigned"],
        "additionalProperties": False,
    },
    # Nobody knows what the program does with it: rules take it for the worst.
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}
CONFIRMED = {
    "content": [{"type": "text", "text": "Countersigned."}],
    "structuredContent": {"countersigned": True},
}
GREETING = {
    "protocolVersion": REVISION,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "statements", "title": "Statements", "version": "1"},
}


def reply(message: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to one message; None to what wants none."""
    if "id" not in message or "method" not in message:
        return None
    answer = _answer(str(message["method"]), message.get("params") or {})
    return {"jsonrpc": "2.0", "id": message["id"], **answer}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {"result": GREETING}
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call" if params.get("name") == TOOL["name"]:
            return {"result": CONFIRMED}
        case "tools/call":
            return _error(INVALID_PARAMS, "There is no such tool.")
    return _error(METHOD_NOT_FOUND, "There is no such method.")


def _error(code: int, sentence: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": sentence}}


def main() -> None:
    for line in sys.stdin.buffer:
        answer = reply(json.loads(line))
        if answer is not None:
            sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
