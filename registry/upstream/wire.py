"""JSON-RPC as bytes: requests around the caller's bytes, replies cut out as they were written."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from core import abilities, strict_json
from core.abilities import InputAnswer
from core.kept_english import gettext as _
from registry.upstream.values import CallReply, Limits, ProtocolError, RpcErrorReply

MODERN = "2026-07-28"
# Newest first: what we offer, and what we understand when a server counters with it.
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
CLIENT_INFO = {"name": "countersign", "version": "0.1.0"}

TOOLS_CALL = "tools/call"
LISTEN = "subscriptions/listen"
# For a stream that only tells of changes: silence is nothing bad, and it is opened anew.
WATCHED = Limits(idle_s=3600, total_s=3600)
# The same with a process, which would have to be started anew.
ATTENDED = Limits(idle_s=30 * 86400, total_s=30 * 86400)
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
TASK_CHANGED = "notifications/tasks"
# What a server lists is something else now; these belong to no call, whenever they come.
_LISTS = ("tools", "prompts", "resources")
LISTS_CHANGED = tuple(f"notifications/{kind}/list_changed" for kind in _LISTS)
# Nor does this: the call may have ended that wanted the page opened.
PAGE_DONE = "notifications/elicitation/complete"
BESIDE_CALLS = (*LISTS_CHANGED, PAGE_DONE)
OF_LISTS: dict[str, Any] = {f"{kind}ListChanged": True for kind in _LISTS}
# For so long a server of 2025-11-25 is asked to keep what became of a task.
TASK_TTL_MS = 24 * 3600 * 1000

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
# Outside of what JSON-RPC and MCP keep for themselves.
NO_ANSWER = -1
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_REVISION = -32022

_META = "io.modelcontextprotocol/"
TASKS = f"{_META}tasks"
# Members of a message's `_meta`: which subscription it is for, and which task it is about.
SUBSCRIPTION = f"{_META}subscriptionId"
RELATED_TASK = f"{_META}related-task"
IDEMPOTENCY_KEY = "countersign/idempotencyKey"

# The two orders that nearly every server writes. With exactly these three members, the reply is
# right if and only if what is left parses as one JSON value, so one parse finds value and span.
_RESULT_LAST = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"result"\s*:\s*'
)
_RESULT_FIRST = re.compile(rb'\s*\{\s*"result"\s*:\s*')
_ID_LAST = re.compile(rb'\s*,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*\Z')
# How far from the end `_ID_LAST` is looked for.
_TAIL = 96
_SPACE = b" \t\r\n"


@dataclass(slots=True)
class WireMessage:
    """One message from a server: a request or notification (`method`), a result or an error."""

    id: int | str | None = None
    method: str = ""
    params: dict[str, Any] | None = None
    result: bytes = b""
    value: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def is_response(self) -> bool:
        return not self.method


def meta(
    modern: bool,
    token: int | None = None,
    log: str = "",
    key: str = "",
    tasks: bool = False,
    words: Collection[str] = (),
    trace: Mapping[str, str] | None = None,
) -> bytes:
    """The `_meta` member of a request's params, or nothing where none is needed."""
    fields = [_of_all_calls(log, tasks, tuple(words))] if modern else []
    if token is not None:
        fields.append(b'"progressToken":%d' % token)
    if key:
        fields.append(orjson.dumps({IDEMPOTENCY_KEY: key})[1:-1])
    if trace:
        fields.append(orjson.dumps(trace)[1:-1])
    return b'"_meta":{%b}' % b",".join(fields) if fields else b""


@lru_cache
def _of_all_calls(log: str, tasks: bool, words: tuple[str, ...]) -> bytes:
    extensions: dict[str, Any] = {"extensions": {TASKS: {}}} if tasks else {}
    fields: dict[str, Any] = {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientInfo": CLIENT_INFO,
        f"{_META}clientCapabilities": abilities.capabilities(words) | extensions,
    }
    if log:
        fields[f"{_META}logLevel"] = log
    return orjson.dumps(fields)[1:-1]


def request(id_: int, method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}' % (
        id_,
        method.encode(),
        params,
    )


def call(
    id_: int,
    name: bytes,
    arguments: bytes,
    meta: bytes,
    *,
    more: bytes = b"",
    as_task: bool = False,
) -> bytes:
    """A tools/call around the very bytes of `arguments`; `name` is JSON text already."""
    tail = (b"," + more if more else b"") + (b"," + meta if meta else b"")
    if as_task:
        tail += b',"task":{"ttl":%d}' % TASK_TTL_MS
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":%s%s}}'
        % (id_, name, arguments, tail)
    )


def responses(answers: bytes) -> bytes:
    """Answers to what a server asked, a JSON object, as a member beside others."""
    return b'"inputResponses":' + answers


def call_request(id_: int, method: str, params: bytes, meta: bytes, *, more: bytes = b"") -> bytes:
    """A request around the very bytes of `params`, an object without `_meta`."""
    inside = params.strip()[1:-1].strip()
    return request(id_, method, b",".join(part for part in (inside, more, meta) if part))


def listening(wanted: Mapping[str, Any]) -> bytes:
    """The params of subscriptions/listen."""
    return b'"notifications":%b,%b' % (orjson.dumps(wanted), meta(True, tasks="taskIds" in wanted))


def about_task(id_: int, method: str, task: str, *, modern: bool, more: bytes = b"") -> bytes:
    params = b'"taskId":' + orjson.dumps(task) + (b"," + more if more else b"")
    if modern:
        params += b"," + meta(modern, tasks=True)
    return request(id_, method, params)


def greeting(revision: str, words: Collection[str] = ()) -> dict[str, Any]:
    """The params of initialize; `words` are what agents of this session can be asked."""
    capabilities = abilities.capabilities(words)
    return {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": CLIENT_INFO,
    }


def notification(method: str, params: dict[str, Any] | None = None) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        body["params"] = params
    return orjson.dumps(body)


def cancelled(id_: int, reason: str) -> bytes:
    return notification("notifications/cancelled", {"requestId": id_, "reason": reason})


def answer_to(question: WireMessage, *, of_no_call: bool = False) -> bytes:
    """Our own answer to a server's request, where nobody else has one: ping is all we know.
    `of_no_call`: some agent could be asked, and nothing says which call it is about."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": question.id}
    if question.method == "ping":
        body["result"] = {}
    elif of_no_call:
        said = "It is not known which call this is about: ask while exactly one runs."
        body["error"] = {"code": INVALID_REQUEST, "message": said}
    else:
        said = f"This client declared no capability for {question.method[:100]}."
        body["error"] = {"code": METHOD_NOT_FOUND, "message": said}
    return orjson.dumps(body)


def answer(question: WireMessage, given: InputAnswer) -> bytes:
    """An agent's answer to a server's request."""
    name = "error" if given.is_error else "result"
    return orjson.dumps({"jsonrpc": "2.0", "id": question.id, name: given.value})


def supported(data: Any) -> Any:
    """The revisions that the data of an error names, if they are such a thing."""
    return data.get("supported") if isinstance(data, dict) else None


def best_legacy(offered: Any) -> str:
    """Which revision to greet an older server with, from what it says it supports."""
    known = [revision for revision in LEGACY if isinstance(offered, list) and revision in offered]
    return known[0] if known else LEGACY[0]


def read(data: bytes) -> WireMessage:
    """Understand one message; raises ProtocolError with what was wrong."""
    return _read_plain_result(data) or _read_any(data)


def reply(message: WireMessage) -> CallReply:
    """The result of a tools/call. Raises RpcErrorReply for an error."""
    if message.error is not None:
        raise RpcErrorReply(message.error)
    value = message.value or {}
    kind = value.get("resultType", "complete")
    if not isinstance(kind, str):
        raise ProtocolError(_("The server's result has a resultType that is not text."))
    return CallReply(result=message.result, is_error=bool(value.get("isError")), kind=kind)


def _read_plain_result(data: bytes) -> WireMessage | None:
    if head := _RESULT_LAST.match(data):
        begin, end, id_ = head.end(), data.rfind(b"}"), head[1]
    elif (head := _RESULT_FIRST.match(data)) and (
        tail := _ID_LAST.search(data, max(head.end(), len(data) - _TAIL))
    ):
        begin, end, id_ = head.end(), tail.start(), tail[1]
    else:
        return None
    if head.re is _RESULT_LAST and data[end + 1 :].strip(_SPACE):
        return None
    result = data[begin:end].rstrip(_SPACE)
    try:
        value = orjson.loads(result)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return WireMessage(id=int(id_), result=result, value=value)


def _read_any(data: bytes) -> WireMessage:
    body = _loads(data)
    if isinstance(body, list):
        raise ProtocolError(_("The server sent a batch of messages, where one was due."))
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise ProtocolError(_("The server sent JSON that is not JSON-RPC 2.0."))
    if "method" in body:
        return _read_request(body)
    return _read_response(body, data)


def _read_request(body: dict[str, Any]) -> WireMessage:
    method, params = body["method"], body.get("params")
    if not isinstance(method, str) or not method:
        raise ProtocolError(_("The server sent a request whose method is not text."))
    return WireMessage(
        id=_id(body), method=method, params=params if isinstance(params, dict) else None
    )


def _read_response(body: dict[str, Any], data: bytes) -> WireMessage:
    if ("result" in body) == ("error" in body):
        raise ProtocolError(_("The server's reply must have either a result or an error."))
    if "error" in body:
        return WireMessage(id=_id(body), error=_error(body["error"]))
    if not isinstance(body["result"], dict):
        raise ProtocolError(_("The server's result is not an object."))
    return WireMessage(id=_id(body), result=_cut_out_result(data), value=body["result"])


def _cut_out_result(data: bytes) -> bytes:
    text = data.decode()
    try:
        begin, end = strict_json.spans(text)["result"]
    except RecursionError as error:
        raise ProtocolError(_("The server's message is nested too deeply to be read.")) from error
    return text[begin:end].encode()


def _id(body: dict[str, Any]) -> int | str | None:
    id_ = body.get("id")
    if isinstance(id_, bool) or not isinstance(id_, int | str | None):
        raise ProtocolError(_("The server sent a message whose id is neither a number nor text."))
    return id_


def _error(error: Any) -> dict[str, Any]:
    if not isinstance(error, dict):
        raise ProtocolError(_("The server's error is not an object."))
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int) or not isinstance(message, str):
        raise ProtocolError(
            _("The server's error lacks a whole number as code or text as message.")
        )
    return error


def checked_error(error: Any) -> dict[str, Any]:
    return _error(error)


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _loads_leniently(data, error)


def _loads_leniently(data: bytes, first: orjson.JSONDecodeError) -> Any:
    """Half a surrogate pair or 1e999 is a tool's bad text, not a reason to lose its result."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise ProtocolError(_("The server's message is not UTF-8.")) from error
    except RecursionError as error:
        raise ProtocolError(_("The server's message is nested too deeply to be read.")) from error
    except ValueError as error:
        raise ProtocolError(_("The server's message is not JSON: %s.") % first.msg) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)
