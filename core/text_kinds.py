"""Detects the kind of a text, to show it as such: an address, JSON, SQL, a program, a diff."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pygments.lexers.data import JsonLexer
from pygments.lexers.sql import SqlLexer
from pygments.token import Token

from core.text import Segment, reveal

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
_CHANGE = re.compile(r"(?:diff --git |--- \S.*\n\+\+\+ \S|@@ -\d)")
_PROGRAM_NAMES = {"code", "script", "source", "program", "command", "cmd", "shell", "expression"}
LEXERS = {"json": JsonLexer(), "sql": SqlLexer()}
COLOURS = {
    Token.Name.Tag: "key",
    Token.Keyword.Constant: "literal",
    Token.Keyword: "key",
    Token.Literal.String: "string",
    Token.Literal.Number: "number",
    Token.Comment: "muted",
}
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
    """Split by what each token is, and hidden characters shown; never re-serialised."""
    lexer = LEXERS.get(kind) if len(text) <= LIMIT else None
    # Of what is no JSON, Pygments takes single letters for constants.
    if lexer is None or (kind == "json" and not _is_json(text)):
        return reveal(text)
    # Not get_tokens(), which makes other line ends of those that are there.
    tokens = lexer.get_tokens_unprocessed(text)
    coloured = groupby(((_colour(token), part) for _, token, part in tokens), itemgetter(0))
    return [
        shown if shown.kind else Segment(shown.text, colour)
        for colour, parts in coloured
        for shown in reveal("".join(part for _, part in parts))
    ]


def _colour(token: Any) -> str:
    return next((colour for kind, colour in COLOURS.items() if token in kind), "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
