"""The messages of the JSON parsers, which pages show in the reader's language
(core/messages/localizing.py)."""

import re
from json import JSONDecodeError

from core.kept_english import gettext as _

# As JSON writes it; a backslash before it is written twice.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_MESSAGES = frozenset(
    (
        # Python's.
        _("Expecting value"),
        _("Expecting property name enclosed in double quotes"),
        _("Expecting ':' delimiter"),
        _("Expecting ',' delimiter"),
        _("Extra data"),
        _("Illegal trailing comma before end of array"),
        _("Illegal trailing comma before end of object"),
        _("Invalid control character at"),
        _("Invalid \\escape"),
        _("Invalid \\uXXXX escape"),
        _("Unterminated string starting at"),
        # orjson's.
        _("Input is a zero-length, empty document"),
        _("UTF-8 byte order mark (BOM) is not supported"),
        _("invalid escape in string"),
        _("invalid escaped sequence in string"),
        _("invalid high surrogate in string"),
        _("invalid low surrogate in string"),
        _("invalid utf-8 encoding in string"),
        _("no low surrogate in string"),
        _("number is infinity when parsed as double"),
        _("number with leading zero is not allowed"),
        _("trailing comma is not allowed"),
        _("unexpected character, expected ',' or ']'"),
        _("unexpected character, expected ',' or '}'"),
        _("unexpected character, expected ':' after key"),
        _("unexpected character, expected a JSON value"),
        _("unexpected character, expected a string key"),
        _("unexpected content after document"),
        _("unexpected control character in string"),
        _("unexpected end of data"),
    )
)


def describe(error: JSONDecodeError) -> str:
    """A clause without a dot."""
    return error.msg if error.msg in _MESSAGES else _("it cannot be parsed")


def has_nul(written: bytes) -> bool:
    """Whether a text of this JSON holds NUL, which PostgreSQL has in none."""
    return b"\\u0000" in written and _NUL.search(written) is not None
