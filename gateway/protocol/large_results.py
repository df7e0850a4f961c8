"""Results too large for an agent: what is long in them becomes a link to a resource of ours."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from uuid import UUID

import orjson

from core import strict_json
from core.english import gettext as _

# An agent says with a request how many bytes of a result it takes.
MAX_BYTES = "countersign/maxResultBytes"
LEAST = 1024
# A link is about this long itself.
WORTH_A_LINK = 1024

_URI = re.compile(r"countersign://calls/([0-9a-f-]{36})/result(?:/(0|[1-9]\d{0,5}))?")


def uri_of(call_id: UUID, number: int | None = None) -> str:
    whole = f"countersign://calls/{call_id}/result"
    return whole if number is None else f"{whole}/{number}"


def parse(uri: str) -> tuple[UUID, int | None] | None:
    """Which call's result, and which item of it (None: the whole)."""
    found = _URI.fullmatch(uri)
    if found is None:
        return None
    try:
        call_id = UUID(found[1])
    except ValueError:
        return None
    return call_id, None if found[2] is None else int(found[2])


def wanted(meta: dict[str, Any], *, default: int) -> int:
    """How many bytes of a result the agent of this request takes."""
    said = meta.get(MAX_BYTES)
    if isinstance(said, int) and not isinstance(said, bool):
        return max(said, LEAST)
    return default


def shorten(body: bytes, call_id: UUID, *, most: int, links: bool) -> bytes:
    """The result with its longest items as links, as few as will do; all else byte for byte.

    What stands outside its content (structuredContent) is never taken out: clients hold it against
    the tool's schema.
    """
    if len(body) <= most:
        return body
    text = body.decode()
    start, end = strict_json.spans(text).get("content", (0, 0))
    if text[start : start + 1] != "[":
        return body
    items = strict_json.items(text, start)
    left = len(body) - most
    for number in sorted(range(len(items)), key=lambda n: -len(items[n])):
        size = len(items[number].encode())
        if left <= 0 or size <= WORTH_A_LINK:
            break
        link = orjson.dumps(_link(orjson.loads(items[number]), call_id, number, size, links=links))
        items[number] = link.decode()
        left -= size - len(link)
    return f"{text[: start + 1]}{','.join(items)}{text[end - 1 :]}".encode()


def _link(item: Any, call_id: UUID, number: int, size: int, *, links: bool) -> dict[str, Any]:
    uri = uri_of(call_id, number)
    if not links:
        said = _("%(size)d bytes were left out here: read them as the resource %(uri)s.")
        return {"type": "text", "text": said % {"size": size, "uri": uri}}
    return {
        "type": "resource_link",
        "uri": uri,
        "name": f"result-{number}",
        "title": _("Item %(number)d of the result") % {"number": number},
        "description": _("Too large to stand in the result: read it with resources/read."),
        "mimeType": _type(item),
        "size": size,
    }


def _type(item: Any) -> str:
    match item:
        case {"type": "text"}:
            return "text/plain"
        case {"type": "image" | "audio", "mimeType": str(kind)}:
            return kind
        case {"type": "resource", "resource": {"mimeType": str(kind)}}:
            return kind
    return "application/json"


def contents(body: bytes, uri: str, number: int | None) -> dict[str, Any] | None:
    """The contents of resources/read for this item; None if it does not exist."""
    if number is None:
        return {"uri": uri, "mimeType": "application/json", "text": body.decode()}
    items = orjson.loads(body).get("content")
    if not isinstance(items, list) or number >= len(items):
        return None
    item = items[number]
    return {"uri": uri, "mimeType": _type(item), **_content(item)}


def _content(item: Any) -> dict[str, str]:
    match item:
        case {"type": "text", "text": str(text)}:
            return {"text": text}
        case {"type": "image" | "audio", "data": str(data)} if _is_base64(data):
            return {"blob": data}
        case {"type": "resource", "resource": {"text": str(text)}}:
            return {"text": text}
        case {"type": "resource", "resource": {"blob": str(data)}} if _is_base64(data):
            return {"blob": data}
    return {"text": orjson.dumps(item).decode()}


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
