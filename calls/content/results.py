"""A result's content by type; whatever does not fit a type is shown as JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from calls.content.large_results import body_of, expired_at
from calls.content.markdown import LONGEST, LONGEST_RESULT, MarkdownNode, markdown
from calls.content.text_search import LONG, FoundLines, find_lines
from calls.models import Call, Result
from registry.views.json_trees import JsonNode, tree

# What a browser may draw by itself. SVG can carry scripts and is none of them.
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
# Of a resource, which says what it is; any other text is looked at.
MARKDOWN = ("text/markdown", "text/x-markdown")
SOUNDS = (
    "audio/mpeg",
    "audio/mp3",
    "audio/wav",
    "audio/x-wav",
    "audio/ogg",
    "audio/webm",
    "audio/mp4",
    "audio/aac",
    "audio/flac",
)
# A result that has one of these, and nothing in it, is as it should be.
_EMPTY = {"content", "contents", "messages", "structuredContent"}
# More than this of one text is for downloading.
SHOWN = 200_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of a result's content. `kind` names the template's branch."""

    kind: str
    number: int
    text: str = ""
    type: str = ""
    name: str = ""
    uri: str = ""
    size: int = 0
    content: Any = None
    # Of a text: its blocks, if it is written in Markdown; of JSON, its tree.
    blocks: list[MarkdownNode] = field(default_factory=list)
    tree: JsonNode | None = None
    # Of a long text: the lines that somebody looks for.
    is_long: bool = False
    lines: FoundLines | None = None


@dataclass(frozen=True, slots=True)
class ShownResult:
    is_error: bool
    size: int
    pieces: list[Piece]
    structured: Any = None
    tree: JsonNode | None = None


def of_call(call: Call, find: str = "") -> ShownResult | None:
    """`find`: what to look for in long texts."""
    row = Result.objects.filter(pk=call.pk).first()
    body = body_of(row) if row else None
    if row is None or body is None:
        return None
    content = _parsed(body)
    if row.kind == "error" or not isinstance(content, dict):
        return ShownResult(True, len(body), [_json(0, body)])
    structured = content.get("structuredContent")
    pieces = [_piece(n, item) for n, item in enumerate(_items(content))]
    if not pieces and content and not content.keys() & _EMPTY:
        pieces = [_json(0, body)]
    return ShownResult(
        is_error=content.get("isError") is True,
        size=len(body),
        pieces=[
            _with_lines(piece, find)
            for piece in _with_blocks(pieces)
            if not _repeats(piece, structured)
        ],
        structured=structured,
        tree=None if structured is None else tree(structured),
    )


def _with_blocks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """With what is written in Markdown, as long as the whole result's share of parsing lasts."""
    left = LONGEST_RESULT
    for piece in pieces:
        is_text = piece.kind == "text" and (not piece.uri or piece.type in MARKDOWN)
        if is_text and piece.size <= min(left, LONGEST):
            left -= piece.size
            yield replace(piece, blocks=markdown(piece.text))
        else:
            yield piece


def _with_lines(piece: Piece, find: str) -> Piece:
    if len(piece.text) <= LONG:
        return piece
    return replace(piece, is_long=True, lines=find_lines(piece.text, find) if find else None)


def deleted_at(call: Call) -> datetime | None:
    """When the large result was removed, if it was."""
    return expired_at(Result.objects.filter(pk=call.pk).first())


def piece_bytes(call: Call, number: int) -> tuple[bytes, str] | None:
    """Bytes and type of an image or sound; None for anything that a browser may not open."""
    row = Result.objects.filter(pk=call.pk, kind="result").first()
    content = _parsed(body_of(row) or b"") if row else None
    items = _items(content) if isinstance(content, dict) else []
    if not 0 <= number < len(items):
        return None
    piece = _piece(number, items[number])
    if piece.kind not in ("image", "audio", "file"):
        return None
    # Whatever it calls itself, a file is nothing that a browser opens.
    media_type = "application/octet-stream" if piece.kind == "file" else piece.type
    return base64.b64decode(_data(items[number])), media_type


def _items(content: dict[str, Any]) -> list[Any]:
    """The items of a tool's result, of a read resource, or of a prompt's messages."""
    match content:
        case {"content": list(items)}:
            return items
        case {"contents": list(contents)}:
            return [{"type": "resource", "resource": one} for one in contents]
        case {"messages": list(messages)}:
            return [item for message in messages for item in _message_items(message)]
    return []


def _message_items(message: Any) -> list[Any]:
    """A message's role and items: earlier revisions have one item a message."""
    if not isinstance(message, dict):
        return [message]
    said = message.get("content")
    items = said if isinstance(said, list) else [said]
    return [{"type": "text", "text": f"{message.get('role', '')}:"}, *items]


def _data(item: dict[str, Any]) -> str:
    return str(item["resource"]["blob"] if item["type"] == "resource" else item["data"])


def _piece(number: int, item: Any) -> Piece:
    match item:
        case {"type": "text", "text": str(text)}:
            return _text(number, text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)} if kind in IMAGES:
            return _media("image", number, data, kind)
        case {"type": "audio", "data": str(data), "mimeType": str(kind)} if kind in SOUNDS:
            return _media("audio", number, data, kind)
        case {"type": "resource_link", "uri": str(uri)}:
            name = str(item.get("title") or item.get("name") or "")
            kind = str(item.get("mimeType") or "")
            return Piece("link", number, uri=uri, name=name, type=kind)
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            kind = str(item["resource"].get("mimeType") or "")
            return replace(_text(number, text), uri=uri, type=kind.partition(";")[0].strip())
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data)}}:
            return _blob(number, data, uri, str(item["resource"].get("mimeType") or ""))
        case _:
            return Piece("other", number, content=item, type=_named(item))


def _repeats(piece: Piece, structured: Any) -> bool:
    """Whether this text repeats the structured content, as servers do for older clients."""
    if piece.kind != "json" or piece.uri or not isinstance(structured, dict | list):
        return False
    said = _parsed(piece.text.encode(errors="replace"))
    return said == structured or structured == {"result": said}


def _text(number: int, text: str) -> Piece:
    parsed = _parsed(text.encode(errors="replace")) if text[:1] in ("{", "[") else None
    if parsed is not None:
        return Piece("json", number, text=text[:SHOWN], size=len(text), tree=tree(parsed))
    return Piece("text", number, text=text[:SHOWN], size=len(text))


def _media(kind: str, number: int, data: str, media_type: str) -> Piece:
    try:
        size = len(base64.b64decode(data, validate=True))
    except binascii.Error:
        return Piece("text", number, text=data[:SHOWN], size=len(data))
    return Piece(kind, number, type=media_type, size=size)


def _blob(number: int, data: str, uri: str, media_type: str) -> Piece:
    """A resource's bytes: shown if a browser may, else for download."""
    kinds = {**dict.fromkeys(IMAGES, "image"), **dict.fromkeys(SOUNDS, "audio")}
    piece = _media(kinds.get(media_type, "file"), number, data, media_type)
    return replace(piece, uri=uri)


def _json(number: int, body: bytes) -> Piece:
    text = body.decode(errors="backslashreplace")
    return Piece("json", number, text=text[:SHOWN], size=len(text))


def _named(item: Any) -> str:
    return str(item.get("type", ""))[:40] if isinstance(item, dict) else ""


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
