"""Results of methods other than tools/call: as the server wrote them, or a JSON-RPC error, since
they have no place for a sentence."""

from __future__ import annotations

from typing import Any

import orjson

from calls.content.answers import Answer
from calls.record.states import NOT_SENT, State
from core import strict_json
from gateway.protocol import replies
from gateway.protocol.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from registry.methods import READ

# Outside JSON-RPC's reserved range, the numbers that HTTP has say it best.
WAITS, REFUSED, FAILED, FROZEN, TIMED_OUT = 202, 403, 502, 503, 504


def of(answer: Answer, request_id: bytes, *, method: str, modern: bool) -> bytes:
    if answer.result is not None:
        body = replies.result_of(answer, modern=modern)
        return replies.result(request_id, private(body) if modern and method == READ else body)
    if answer.error is not None:
        error = replies.error_of(answer)
        return replies.error(request_id, _numbered(error, modern) if method == READ else error)
    told: dict[str, Any] = {"state": answer.state, "executed": answer.executed}
    if answer.refusal is not None:
        told["refusal"] = answer.refusal.told(answer.reason)
    if answer.warnings:
        told["limits"] = replies.warnings(answer.warnings)
    return not_given(request_id, _code(answer), answer.text, call=str(answer.call_id), **told)


def not_given(request_id: bytes, code: int, text: str, **told: Any) -> bytes:
    error = {"code": code, "message": text, "data": told}
    return replies.error(request_id, orjson.dumps(error))


def _code(answer: Answer) -> int:
    if answer.refusal is not None and answer.refusal.kind == "frozen":
        return FROZEN
    if answer.state in NOT_SENT:
        return REFUSED
    return TIMED_OUT if answer.state == State.TIMED_OUT else FAILED


def _numbered(error: bytes, modern: bool) -> bytes:
    """Gives a resource that does not exist the error code of the agent's revision."""
    said = orjson.loads(error)
    if modern and said["code"] == RESOURCE_NOT_FOUND:
        return orjson.dumps(said | {"code": INVALID_PARAMS})
    if not modern and said["code"] == INVALID_PARAMS:
        return orjson.dumps(said | {"code": RESOURCE_NOT_FOUND})
    return error


def private(body: bytes) -> bytes:
    """Adds the caching fields that a result needs. The server may shorten the time, and never make
    it public."""
    text = body.decode()
    found = strict_json.spans(text)
    wrong = [] if "cacheScope" not in found else [(*found["cacheScope"], '"private"')]
    if "ttlMs" in found and not text[slice(*found["ttlMs"])].isdecimal():
        wrong.append((*found["ttlMs"], "0"))
    # The last one first, so that the other stays where it is.
    for start, end, value in sorted(wrong, reverse=True):
        text = f"{text[:start]}{value}{text[end:]}"
    missing = [f'"{name}":{value}' for name, value in _CACHING.items() if name not in found]
    return f"{{{','.join([*missing, text[1:].lstrip()])}".encode() if missing else text.encode()


_CACHING = {"ttlMs": "0", "cacheScope": '"private"'}


def as_tool(answer: bytes) -> bytes:
    """The result of another method as the result of one of our own tools."""
    if answer.startswith(_OF_TOOLS):
        return answer
    value = orjson.loads(answer)
    match value:
        case {"content": list(_)} | {"structuredContent": _} | {"isError": _}:
            return answer
        case {"contents": list(contents)}:
            items = [{"type": "resource", "resource": one} for one in contents]
            return orjson.dumps({"content": items})
    # Messages, a completion, or whatever an extension gives.
    return orjson.dumps({"content": [{"type": "text", "text": answer.decode()}]})


# As most are written; of the others a closer look tells.
_OF_TOOLS = (b'{"content":', b'{"resultType":"complete","content":')
