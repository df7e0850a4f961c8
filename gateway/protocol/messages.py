"""Parses a body: one JSON-RPC message, or a batch in the oldest revision."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from core import strict_json
from core.strict_json import Ambiguous
from gateway.protocol.errors import RpcError, invalid_params, invalid_request
from gateway.protocol.revisions import INVALID_REQUEST, PARSE_ERROR

MAX_BATCH = 50
_skip_space = json.decoder.WHITESPACE.match  # type: ignore[attr-defined]
_value_at = json.JSONDecoder().raw_decode
_ARGUMENTS = '"arguments"'


@dataclass(slots=True, eq=False)
class RpcMessage:
    """A request, a notification (no `id`) or an answer to us (no `method`), whose `result` or
    `error` stands in `params`."""

    # As JSON, so that 1 and "1" come back as they were sent.
    id: bytes
    method: str
    params: dict[str, Any]
    # The message as it was written.
    text: str
    # Empty where there is none.
    meta: dict[str, Any]
    # It was written as we write JSON ourselves, and so was each part of it.
    plain: bool = False

    @property
    def is_request(self) -> bool:
        return bool(self.id and self.method)


def parse(body: bytes) -> Any:
    try:
        return strict_json.loads(body)
    except Ambiguous as error:
        raise RpcError(400, str(error), code=_code(body)) from error


def parse_plain(body: bytes) -> RpcMessage | None:
    """The message that nearly every program sends; None where a closer look is needed."""
    value = strict_json.plain(body)
    if not isinstance(value, dict):
        return None
    found = message(value, "")
    found.plain = True
    return found


def _code(body: bytes) -> int:
    """No JSON at all, or JSON that two parsers could read differently?"""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return PARSE_ERROR
    return INVALID_REQUEST


def message(value: Any, text: str) -> RpcMessage:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise invalid_request('A message is one JSON object with "jsonrpc": "2.0".')
    request_id = id_of(value["id"]) if "id" in value else b""
    if "method" not in value:
        return _posted_answer(value, request_id, text)
    method, params = value["method"], value.get("params", {})
    if not isinstance(method, str):
        raise invalid_request("method must be a string.")
    if not isinstance(params, dict):
        raise invalid_params("params must be an object.")
    meta = params.get("_meta")
    return RpcMessage(request_id, method, params, text, meta if isinstance(meta, dict) else {})


def id_of(value: Any) -> bytes:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return orjson.dumps(value)
    raise invalid_request("id must be a string or an integer.")


def _posted_answer(value: dict[str, Any], request_id: bytes, text: str) -> RpcMessage:
    if not request_id or ("result" in value) == ("error" in value):
        raise invalid_request("A message needs a method.")
    said: dict[str, Any] = {name: value[name] for name in ("result", "error") if name in value}
    return RpcMessage(request_id, "", said, text, {})


def batch(values: list[Any], text: str) -> list[RpcMessage]:
    if not 1 <= len(values) <= MAX_BATCH:
        raise invalid_request(f"A batch holds 1 to {MAX_BATCH} messages.")
    return [
        message(value, part) for value, part in zip(values, strict_json.items(text), strict=True)
    ]


def raw_arguments(message: RpcMessage) -> bytes:
    """The very characters of params.arguments, on one line: shown, hashed and sent as they are."""
    arguments = message.params.get("arguments")
    if arguments is None:
        return b"{}"
    if message.plain:
        return orjson.dumps(arguments)
    start, end = _span(message.text)
    return strict_json.one_line(message.text[start:end])


def raw_members(message: RpcMessage) -> dict[str, orjson.Fragment]:
    """The members of params by name, in order, each as the client's bytes on one line."""
    if message.plain:
        plain = message.params.items()
        return {name: orjson.Fragment(orjson.dumps(value)) for name, value in plain}
    if not message.params:
        return {}
    text = message.text
    found = strict_json.spans(text, strict_json.spans(text)["params"][0])
    lines = {name: strict_json.one_line(text[start:end]) for name, (start, end) in found.items()}
    return {name: orjson.Fragment(line) for name, line in lines.items()}


def _span(text: str) -> tuple[int, int]:
    # Unless it is escaped or comes again, the name stands where the arguments are: a quoted
    # value would be a second one.
    if text.count(_ARGUMENTS) == 1 and "\\u" not in text:
        start = _skip_space(text, text.index(_ARGUMENTS) + len(_ARGUMENTS)).end() + 1
        start = _skip_space(text, start).end()
        return start, _value_at(text, start)[1]
    params, _ = strict_json.spans(text)["params"]
    return strict_json.spans(text, params)["arguments"]
