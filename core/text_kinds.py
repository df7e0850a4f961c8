"""What a text is, so that it can be shown as that: an address, JSON, SQL, a program, a change."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from core.text import Segment, json_segments, reveal

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<user>[^\s/?#@]*@)?(?P<host>[^\s/?#]+)(?P<rest>\S*)"
)
_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(?:select\b.*\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from"
    r"|(?:create|alter|drop|truncate)\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unique\s+)?"
    r"(?:table|index|view|database|schema|user|role|function|trigger|type)|with\s+\w+\s+as\s*\("
    r"|grant\s+\w+.*\bto)\b",
    re.IGNORECASE | re.DOTALL,
)
_SQL_TOKEN = re.compile(
    r"(?P<string>'(?:[^']|'')*+')|(?P<muted>--[^\n]*)|(?P<number>\b\d[\d.]*\b)"
    r"|(?P<key>\b(?:select|from|where|and|or|not|null|insert|into|values|update|set|delete|create"
    r"|alter|drop|truncate|table|index|view|join|left|right|inner|outer|on|as|with|group|order|by"
    r"|having|limit|offset|union|all|distinct|returning|grant|revoke|to|cascade|in|is|like|exists"
    r"|case|when|then|else|end|begin|commit)\b)",
    re.IGNORECASE,
)
_CHANGE = re.compile(r"(?:diff --git |--- \S.*\n\+\+\+ \S|@@ -\d)")
_PROGRAM_NAMES = {"code", "script", "source", "program", "command", "cmd", "shell", "expression"}
# Beyond this a text is shown plainly: nobody reads that much by its colours.
LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """An address in parts: who is asked, and for what."""

    scheme: list[Segment]
    # Before an @: looks like a host and is none.
    user: list[Segment]
    host: list[Segment]
    # The host as the network knows it, when that is not what one reads.
    wire: str
    rest: list[Segment]


def address(text: str) -> Address | None:
    match = _URL.fullmatch(text) if len(text) <= LIMIT else None
    if match is None:
        return None
    return Address(
        scheme=reveal(match["scheme"]),
        user=reveal(match["user"] or ""),
        host=reveal(match["host"]),
        wire=_wire(match["host"]),
        rest=reveal(match["rest"]),
    )


def _wire(host: str) -> str:
    if host.isascii():
        return ""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return ""


def shape(text: str, name: str = "") -> str:
    """ "json", "sql", "change", "program", or nothing for plain text; `name`: the argument's."""
    if len(text) > LIMIT:
        return ""
    if text[:1] in ("{", "[") and _is_json(text):
        return "json"
    if _SQL.match(text):
        return "sql"
    if _CHANGE.match(text):
        return "change"
    if text.startswith("#!") or name.lower() in _PROGRAM_NAMES:
        return "program"
    return ""


def segments(text: str, kind: str) -> list[Segment]:
    if kind == "json":
        return json_segments(text)
    if kind == "sql":
        return _coloured(text)
    return reveal(text)


def _coloured(text: str) -> list[Segment]:
    found, start = [], 0
    for match in _SQL_TOKEN.finditer(text):
        found += reveal(text[start : match.start()])
        found += [
            part if part.kind else Segment(part.text, match.lastgroup or "")
            for part in reveal(match.group())
        ]
        start = match.end()
    return found + reveal(text[start:])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
