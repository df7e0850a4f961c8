"""The HTTP request of an operation, made of its plan and a call's arguments.

Source: OpenAPI Specification 3.1.1, "Style Values" and "Encoding Object"; RFC 6570; RFC 7578.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from core import exact_json, strict_json
from core.exact_json import Number
from core.kept_english import gettext as _
from registry.upstream.values import NotSent

Plan = Mapping[str, Any]

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_UNRESERVED = "-._~"
# Without what would end a member of the query, or stand for a space in it.
_RESERVED = _UNRESERVED + ":/?@!$'()*,;="
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")
# All that a path may have (RFC 3986, 3.3), and what is encoded already.
_PATH = _UNRESERVED + "/:@!$&'()*+,;=%"
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*").fullmatch
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_SEGMENT_END = re.compile(r"[/\\]")
_QUOTED_NAME = {'"': "%22", "\r": "%0D", "\n": "%0A"}


@dataclass(slots=True)
class ApiRequest:
    method: str
    # Path and query.
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def _not_sent(sentence: str) -> NotSent:
    """Another attempt would be no better."""
    return NotSent(sentence, status=400)


def render(plan: Plan, base_path: str, arguments: bytes) -> ApiRequest:
    """The request of these arguments, which fit the tool's schema. Raises NotSent where they would
    reach another operation than the one that was reviewed."""
    given = exact_json.loads(arguments)
    in_path: dict[str, str] = {}
    query: list[str] = []
    request = ApiRequest(plan["method"], "", {"Accept": plan.get("accept", "*/*")})
    cookies: list[str] = []
    for step in plan.get("parameters", ()):
        value = given.get(step["argument"])
        if value is None or (step.get("style") != "json" and _is_undefined(value)):
            if step["in"] == "path":
                raise _not_sent(_("The argument “%s” stands in the path.") % step["argument"])
            continue
        match step["in"]:
            case "path":
                in_path[step["name"]] = _in_path(step, value)
            case "query":
                query += _in_query(step, step["name"], value)
            case "header":
                request.headers[step["name"]] = _in_header(step, value)
            case "cookie":
                cookies += _in_query(step, step["name"], value)
    if cookies:
        request.headers["Cookie"] = "; ".join(cookies)
    request.target = base_path.rstrip("/") + _filled(plan["path"], in_path)
    if query:
        request.target += f"?{'&'.join(query)}"
    _write_body(plan.get("body"), given, arguments, request)
    return request


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The path, percent-encoded, with its variables' values, which are encoded already."""
    pieces = _VARIABLE.split(template)
    pieces[::2] = [quote(piece, safe=_PATH) for piece in pieces[::2]]
    pieces[1::2] = [values[name] for name in pieces[1::2]]
    filled = "".join(pieces)
    if leads_elsewhere(filled):
        raise _not_sent(_("The arguments in the path would lead to another operation."))
    return filled


def _is_undefined(value: Any) -> bool:
    """Whether a parameter is not sent at all: null, and a list or object without members that are
    something (RFC 6570, 2.3 and 3.2.1). What is written as JSON is sent whatever it is."""
    match value:
        case dict():
            return all(member is None for member in value.values())
        case list():
            return all(one is None for one in value)
    return value is None


def _escaped(text: str, safe: str) -> str:
    """Percent-encoded; with `allowReserved`, what is encoded already stays (RFC 6570, 3.2.3)."""
    if safe != _RESERVED:
        return quote(text, safe=safe)
    pieces = _TRIPLET.split(text)
    pieces[::2] = [quote(piece, safe=safe) for piece in pieces[::2]]
    return "".join(pieces)


def _in_path(step: Plan, value: Any) -> str:
    style, explode, name = step.get("style", "simple"), step.get("explode", False), step["name"]
    prefix = {"label": ".", "matrix": ";"}.get(style, "")
    between = {"label": ".", "matrix": ";"}.get(style, ",") if explode else ","
    pairs = style == "matrix"
    match value:
        case _ if style == "json":
            written = quote(exact_json.dumps(value), safe=_UNRESERVED)
        case dict():
            joined = between.join(_members(value, "=" if explode else ",", _UNRESERVED))
            written = joined if explode or not pairs else f"{quote(name)}={joined}"
        case list():
            items = [quote(_text(one), safe=_UNRESERVED) for one in value if one is not None]
            if pairs and explode:
                items = [f"{quote(name)}={one}" for one in items]
            joined = between.join(items)
            written = f"{quote(name)}={joined}" if pairs and not explode else joined
        case _:
            text = quote(_text(value), safe=_UNRESERVED)
            # RFC 6570, 3.2.7: a name without a value has no sign.
            written = f"{quote(name)}{'=' if text else ''}{text}" if pairs else text
    if leads_elsewhere(written):
        raise _not_sent(
            _("The argument “%(name)s” must not be “%(value)s”: it stands in the path.")
            % {"name": step["argument"], "value": written}
        )
    return prefix + written


def leads_elsewhere(written: str) -> bool:
    """Whether it could become the path of another operation: proxies decode, some of them twice,
    and then resolve dots; Java's servers cut a segment at its semicolon."""
    segments = _SEGMENT_END.split(unquote(unquote(written)))
    return not written or any(one.partition(";")[0] in (".", "..") for one in segments)


def _in_query(step: Plan, name: str, value: Any) -> list[str]:
    """Members of a query or of a form, as name=value."""
    style = step.get("style", "form")
    explode = step.get("explode", style == "form")
    safe = _RESERVED if step.get("reserved") else _UNRESERVED
    key = quote(name, safe=_UNRESERVED)
    match value:
        case _ if style == "json":
            return [f"{key}={quote(exact_json.dumps(value), safe=_UNRESERVED)}"]
        case dict() | list() if _is_undefined(value):
            return []
        case dict() | list() if style == "deepObject":
            return [f"{place}={text}" for place, text in _deep(key, value, safe)]
        case dict() if explode:
            return _members(value, "=", safe)
        case dict():
            between = _DELIMITERS.get(style, ",")
            return [f"{key}={between.join(_members(value, between, safe))}"]
        case list() if explode:
            return [f"{key}={_escaped(_text(one), safe)}" for one in value if one is not None]
        case list():
            items = [_escaped(_text(one), safe) for one in value if one is not None]
            return [f"{key}={_DELIMITERS.get(style, ',').join(items)}"]
    return [f"{key}={_escaped(_text(value), safe)}"]


def _deep(key: str, value: Any, safe: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, member in value.items():
                yield from _deep(f"{key}%5B{quote(name, safe=_UNRESERVED)}%5D", member, safe)
        case list():
            for n, item in enumerate(value):
                yield from _deep(f"{key}%5B{n}%5D", item, safe)
        case None:
            return
        case _:
            yield key, _escaped(_text(value), safe)


def _in_header(step: Plan, value: Any) -> str:
    match value:
        case _ if step.get("style") == "json":
            written = exact_json.dumps(value)
        case dict():
            between = "=" if step.get("explode") else ","
            pairs = [(name, one) for name, one in value.items() if one is not None]
            written = ",".join(f"{name}{between}{_text(one)}" for name, one in pairs)
        case list():
            written = ",".join(_text(one) for one in value if one is not None)
        case _:
            written = _text(value)
    if not _HEADER_VALUE(written):
        said = _("The argument “%s” holds characters that no header can carry.")
        raise _not_sent(said % step["argument"])
    return written


def _members(value: Mapping[str, Any], between: str, safe: str) -> list[str]:
    pairs = [(name, member) for name, member in value.items() if member is not None]
    return [
        f"{quote(name, safe=_UNRESERVED)}{between}{_escaped(_text(member), safe)}"
        for name, member in pairs
    ]


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case Number():
            return value.text
        case bool():
            return "true" if value else "false"
        case None:
            return ""
    return exact_json.dumps(value)


def _write_body(
    plan: Plan | None, given: Mapping[str, Any], arguments: bytes, request: ApiRequest
) -> None:
    if plan is None or plan["argument"] not in given:
        return
    value, kind = given[plan["argument"]], plan["type"]
    if kind == FORM:
        request.body = "&".join(_form(plan, value)).encode()
    elif kind == MULTIPART:
        boundary = secrets.token_hex(16)
        request.body = _multipart(plan, value, boundary)
        kind = f"{MULTIPART}; boundary={boundary}"
    elif plan.get("base64"):
        request.body = _decoded(value, plan["argument"])
    elif isinstance(value, str) and not _is_json(kind):
        request.body = value.encode()
    else:
        # The very bytes that people were shown.
        text = arguments.decode()
        begin, end = strict_json.spans(text)[plan["argument"]]
        request.body = text[begin:end].encode()
    request.headers["Content-Type"] = kind


def _is_json(kind: str) -> bool:
    return kind.partition(";")[0].strip().lower().endswith(("/json", "+json"))


def _form(plan: Plan, fields: Any) -> Iterator[str]:
    if not isinstance(fields, dict):
        raise _not_sent(_("The form must be an object."))
    encodings = plan.get("encoding", {})
    for name, value in fields.items():
        if value is not None:
            for member in _in_query(encodings.get(name, {}), name, value):
                # As forms write a space (WHATWG URL Standard, 5.2).
                yield member.replace("%20", "+")


def _multipart(plan: Plan, fields: Any, boundary: str) -> bytes:
    if not isinstance(fields, dict):
        raise _not_sent(_("The form must be an object."))
    parts = [part for name, value in fields.items() for part in _parts(plan, name, value)]
    lines = [b"--%b\r\n%b\r\n" % (boundary.encode(), part) for part in parts]
    return b"".join([*lines, b"--%b--\r\n" % boundary.encode()])


def _parts(plan: Plan, name: str, value: Any) -> Iterator[bytes]:
    """The parts of one field: a list has one for each item."""
    if value is None:
        return
    for one in value if isinstance(value, list) else [value]:
        yield _part(plan, name, one)


def _part(plan: Plan, name: str, value: Any) -> bytes:
    quoted = "".join(_QUOTED_NAME.get(char, char) for char in name)
    head = f'Content-Disposition: form-data; name="{quoted}"'
    kind = plan.get("encoding", {}).get(name, {}).get("type", "")
    if name in plan.get("files", ()):
        head += f'; filename="{quoted}"'
        kind, content = kind or "application/octet-stream", _decoded(value, name)
    elif isinstance(value, dict | list):
        kind, content = kind or "application/json", exact_json.dumps(value).encode()
    else:
        content = _text(value).encode()
    if kind:
        head += f"\r\nContent-Type: {kind}"
    return head.encode() + b"\r\n\r\n" + content


def _decoded(value: Any, name: str) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise _not_sent(_("“%s” is not base64.") % name) from None
