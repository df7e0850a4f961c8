"""JSON-RPC answers as bytes. What a server wrote passes through: we only add beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import orjson

from calls.content.answers import Answer
from core import strict_json
from gateway.protocol.revisions import META_SERVER, RELATED_TASK, SERVER_INFO
from policies.limits.compiled import LimitReached

# Names of ours in `_meta`.
_OURS = "countersign/"
CALL = _OURS + "call"
WAITING = _OURS + "waiting"
MODIFIED = _OURS + "arguments_modified"
REPEATED = _OURS + "repeated"
LIMITS = _OURS + "limits"

# Longer ends of results are not parsed a second time.
REST_MAX = 4096

_COMPLETE = b'"resultType":"complete"'
_SERVER = orjson.dumps({META_SERVER: SERVER_INFO})
ACKNOWLEDGED = b"{%b}" % _COMPLETE


def result(request_id: bytes, body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, body)


def error(request_id: bytes, body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, body)


def batch(answers: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(answers)


def own(members: dict[str, Any], *, modern: bool) -> bytes:
    """A result of our own, not of a tool."""
    body = orjson.dumps(members)
    if not modern:
        return body
    return b'{%b,"_meta":%b,%b' % (_COMPLETE, _SERVER, body[1:])


def structured(members: dict[str, Any], *, modern: bool) -> bytes:
    """A result of one of our own tools, also as text for clients without structured content."""
    body = orjson.dumps(members)
    text = {"type": "text", "text": body.decode()}
    return own({"content": [text], "structuredContent": orjson.Fragment(body)}, modern=modern)


def of(answer: Answer, request_id: bytes, *, modern: bool, structured: bool = False) -> bytes:
    if answer.error is not None:
        return error(request_id, error_of(answer))
    return result(request_id, result_of(answer, modern=modern, structured=structured))


def result_of(answer: Answer, *, modern: bool, structured: bool = False) -> bytes:
    """The result of an answer that is no JSON-RPC error. `structured`: see `sentence`."""
    if answer.result is not None:
        body = answer.result
        if not modern and b'"resultType"' in body:
            body = _without_type(body.strip())
        if answer.modified is not None or answer.repeated or answer.warnings:
            return _with_notes(body, answer, modern=modern)
        return spliced(body, answer.call_id, modern=modern)
    meta: dict[str, Any] = {
        "call": str(answer.call_id),
        "state": answer.state,
        "executed": answer.executed,
    }
    if answer.modified is not None:
        meta["arguments_modified"] = orjson.Fragment(answer.modified.json)
    if answer.repeated:
        meta["repeated"] = True
    if answer.refusal is not None:
        meta["refusal"] = answer.refusal.told(answer.reason)
    if answer.warnings:
        meta["limits"] = warnings(answer.warnings)
    said = (answer.note, answer.text, *(one.sentence for one in answer.warnings))
    text = " ".join(part for part in said if part)
    return sentence(text, meta=meta, modern=modern, structured=structured)


def error_of(answer: Answer) -> bytes:
    """The server's JSON-RPC error; what people changed stands in its data, if that has room."""
    assert answer.error is not None
    member = ",".join(_notes(answer))
    if not member:
        return answer.error
    text = answer.error.decode()
    found = strict_json.spans(text)
    if "data" not in found:
        return _added(answer.error.strip(), f'"data":{{{member}}}'.encode())
    if text[found["data"][0]] == "{":
        return _into_object(text, found["data"][0], member).encode()
    return answer.error


def sentence(
    text: str, *, meta: Mapping[str, Any], modern: bool, structured: bool = False
) -> bytes:
    """A tool result that holds a sentence of ours. It is an error, since the tool's outputSchema
    would not fit. `structured`: the tool has no outputSchema, against which clients check the
    structured content of errors too (TypeScript SDK 1.x, Inspector)."""
    members: dict[str, Any] = {"resultType": "complete"} if modern else {}
    members["content"] = [{"type": "text", "text": text}]
    members["isError"] = True
    if structured and "refusal" in meta:
        # Also where models see it.
        members["structuredContent"] = {"refusal": meta["refusal"]}
    if meta:
        members["_meta"] = {_OURS + name: value for name, value in meta.items()}
    return orjson.dumps(members)


def warnings(passed: Iterable[LimitReached]) -> list[dict[str, Any]]:
    """The member `countersign/limits` of `_meta`: limits that only warn."""
    return [one.warning for one in passed]


def _notes(answer: Answer) -> list[str]:
    """Members of `_meta`: that people edited the arguments, that an earlier call answers, or that
    limits warn."""
    members = []
    if answer.modified is not None:
        members.append(f'"{MODIFIED}":{answer.modified.json.decode()}')
    if answer.repeated:
        members.append(f'"{REPEATED}":true')
    if answer.warnings:
        members.append(f'"{LIMITS}":{orjson.dumps(warnings(answer.warnings)).decode()}')
    return members


def _with_notes(body: bytes, answer: Answer, *, modern: bool) -> bytes:
    """The server's result; after its content, what a model should know of how it came about."""
    text = body.strip().decode()
    # Clients may read the text of structured results as JSON.
    is_text = answer.warnings and "structuredContent" not in strict_json.spans(text)
    warned = [one.sentence for one in answer.warnings] if is_text else ()
    for said in (answer.modified.sentence if answer.modified else "", answer.note, *warned):
        if said:
            text = _into_array(text, orjson.dumps({"type": "text", "text": said}).decode())
    names = ",".join([f'"{CALL}":"{answer.call_id}"', *_notes(answer)])
    return _spliced_carefully(text, names, modern=modern).encode()


def _into_array(text: str, item: str) -> str:
    """Appends to the result's content."""
    start, end = strict_json.spans(text).get("content", (0, 0))
    if text[start : start + 1] != "[":
        return text
    before = text[start + 1 : end - 1].strip()
    return f"{text[: end - 1]}{',' if before else ''}{item}{text[end - 1 :]}"


def spliced(body: bytes, call_id: UUID, *, modern: bool) -> bytes:
    """The server's result, byte for byte, with our members added."""
    body = body.strip()
    name = b'"%b":"%b"' % (CALL.encode(), str(call_id).encode())
    if _says_complete(body) and modern:
        return b'{"_meta":{%b},%b' % (name, body[1:])
    if modern and b'"resultType"' in body and (quickly := _spliced_at_end(body, name)):
        return quickly
    if b'"_meta"' in body or b'"resultType"' in body or b"\\u" in body:
        return _spliced_carefully(body.decode(), name.decode(), modern=modern).encode()
    added = b'"_meta":{%b}' % name
    if modern:
        added = b"%b,%b" % (_COMPLETE, added)
    return _added(body, added)


# Before 2026-07-28 results are of one kind and do not name it.
_FIRST_MEMBER = re.compile(rb'\{\s*"resultType"\s*:\s*"complete"\s*,?\s*')


def _without_type(body: bytes) -> bytes:
    first = _FIRST_MEMBER.match(body)
    if first and body.count(b'"resultType"') == 1:
        return b"{" + body[first.end() :]
    text = body.decode()
    members = strict_json.spans(text)
    if "resultType" not in members:
        return body
    kept = [
        f"{orjson.dumps(name).decode()}:{text[slice(*span)]}"
        for name, span in members.items()
        if name != "resultType"
    ]
    return f"{{{','.join(kept)}}}".encode()


def _says_complete(body: bytes) -> bool:
    """Whether the result begins with resultType "complete" and has no second one."""
    return (
        body.startswith((b'{"resultType":"complete",', b'{"resultType": "complete",'))
        and b'"_meta"' not in body
        and body.count(b'"resultType"') == 1
        and b"\\u" not in body
    )


def _spliced_at_end(body: bytes, name: bytes) -> bytes:
    """The spliced result of a server that writes `resultType`, and perhaps `_meta`, near the end,
    as the Python SDK does; empty where that is not certain.

    If what begins with a member's name is the rest of an object, its last brace is that of the
    whole result, so that the member is the result's own and none of a value within.
    """
    start = body.find(b'"resultType"')
    if start < 0 or len(body) - start > REST_MAX or b"\\u" in body:
        return b""
    metas = body.count(b'"_meta"')
    if metas > 1 or body.count(b'"resultType"') > 1:
        return b""
    try:
        rest = orjson.loads(b"{" + body[start:])
    except orjson.JSONDecodeError:
        return b""
    if not metas:
        return b'{"_meta":{%b},%b' % (name, body[1:])
    if not isinstance(rest.get("_meta"), dict):
        return b""
    inside = body.index(b"{", body.index(b'"_meta"')) + 1
    comma = b"," if rest["_meta"] else b""
    return b"%b%b%b%b" % (body[:inside], name, comma, body[inside:])


def _added(body: bytes, members: bytes) -> bytes:
    rest = body[1:].lstrip()
    return b"{%b%b%b" % (members, b"" if rest == b"}" else b",", rest)


def _spliced_carefully(text: str, name: str, *, modern: bool) -> str:
    """The names stand somewhere in it: perhaps as members, perhaps deeper."""
    found = strict_json.spans(text)
    members = []
    if modern and "resultType" not in found:
        members.append(_COMPLETE.decode())
    if "_meta" not in found:
        members.append(f'"_meta":{{{name}}}')
    elif text[found["_meta"][0]] == "{":
        text = _into_object(text, found["_meta"][0], name)
    if not members:
        return text
    return _added(text.encode(), ",".join(members).encode()).decode()


def related(body: bytes, task_id: str) -> bytes:
    """A result, which says of which task of 2025-11-25 it is: ours, whatever its server had."""
    text, value = body.strip().decode(), f'{{"taskId":"{task_id}"}}'
    start, _end = strict_json.spans(text).get("_meta", (0, 0))
    if start and text[start] == "{":
        told = strict_json.spans(text, start).get(RELATED_TASK)
        if told is not None:
            return f"{text[: told[0]]}{value}{text[told[1] :]}".encode()
    return _spliced_carefully(text, f'"{RELATED_TASK}":{value}', modern=False).encode()


def _into_object(text: str, start: int, member: str) -> str:
    rest = text[start + 1 :].lstrip()
    comma = "" if rest.startswith("}") else ","
    return f"{text[: start + 1]}{member}{comma}{rest}"
