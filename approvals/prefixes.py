"""Does a text lie below a prefix, whoever reads it: a shell, a web server, a file system?

A plain text begins with the prefix as written. What is a path or a URL, by its own look or the
prefix's, is compared part by part, so that /data does not cover /database; and what two readers
could take differently lies below nothing. Only where several lines were approved may there be
several, and they are no path: neither the prefix nor the first of them looks like one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from core import text

# Of a path: what separates its parts, and what programs fold into that.
_SEPARATORS = re.compile(r"[/\\]")
_REST_SEPARATORS = re.compile(r"[/\\&=;?#]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Escapes of what is not ASCII too: some programs make a slash or a dot of them.
_IS_PATH = re.compile(r"[/\\]|%(?:25)*(?:2f|5c|2e|u|[89a-f][0-9a-f])", re.IGNORECASE)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
# Signs that some code page, or some font, makes a slash, a backslash or a dot of.
_NEARLY = frozenset("⁄∕⧸╱∖⧵﹨＼¥₩․‥…。｡．﹒")
_DEFAULT_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}
_PORT = re.compile(r"(.*?):([0-9]+)")


class _AmbiguousText(Exception):
    """Raised for a text that two programs could parse differently."""


def is_below(given: str, prefix: str, *, approved: str) -> bool:
    """Whether the text is certainly below the approved prefix; if in doubt it is not."""
    if not prefix:
        return False
    if "\n" in approved.strip() and "\n" in given.strip():
        return _is_text_below(given, prefix)
    try:
        _check_characters(given)
        if "://" in prefix:
            return _is_url_below(_url(given), _url(prefix))
        if is_path(prefix) or is_path(given):
            return given.startswith(prefix) and _is_path_below(_path(given), _path(prefix))
    except _AmbiguousText:
        return False
    return _begins(given, prefix)


def _is_text_below(given: str, prefix: str) -> bool:
    """Compares texts of several lines, of which programs may take only the first for a path."""
    first = given.strip().partition("\n")[0]
    is_plain = not (is_path(prefix) or is_path(first) or text.hidden_count(given))
    return is_plain and _begins(given, prefix)


def _begins(given: str, prefix: str) -> bool:
    """A mark that is set on the prefix's last letter makes another letter of it."""
    rest = given[len(prefix) :]
    return given.startswith(prefix) and not unicodedata.category(rest[:1] or " ").startswith("M")


def is_path(written: str) -> bool:
    """Is it to be compared part by part?"""
    return _IS_PATH.search(written) is not None


def _check_characters(given: str) -> None:
    kinds = {unicodedata.category(letter) for letter in given}
    if any(kind.startswith("C") or kind in ("Zl", "Zp") for kind in kinds):
        raise _AmbiguousText
    if unicodedata.normalize("NFKC", given) != given or text.hidden_count(given):
        raise _AmbiguousText
    if not _NEARLY.isdisjoint(given):
        raise _AmbiguousText


@dataclass(frozen=True, slots=True)
class _Path:
    """`parts` without escapes; `rest`: what follows a ? or a #."""

    parts: tuple[str, ...]
    is_folder: bool
    rest: str


@dataclass(frozen=True, slots=True)
class _Url:
    scheme: str
    authority: str
    path: _Path


def _url(given: str) -> _Url:
    found = _URL.fullmatch(given)
    if found is None or " " in given or "\\" in given:
        raise _AmbiguousText
    scheme, authority = found[1].lower(), found[2]
    return _Url(scheme, _authority(scheme, authority), _path(found[3] or "/"))


def _authority(scheme: str, written: str) -> str:
    """Host and port in one form. A user's name before it only pretends to be a host."""
    if not written or any(sign in written for sign in "@%") or written.endswith((":", ".")):
        raise _AmbiguousText
    # Only ASCII: other letters have more than one small one.
    lower = "".join(sign.lower() if sign.isascii() else sign for sign in written)
    port = _PORT.fullmatch(lower)
    if port and port[1].endswith("."):
        raise _AmbiguousText
    return port[1] if port and port[2] == _DEFAULT_PORTS.get(scheme) else lower


def _path(given: str) -> _Path:
    path, mark, rest = _split_query(given)
    parts = [_part(part) for part in _SEPARATORS.split(path)]
    is_folder = not parts[-1]
    if is_folder:
        parts.pop()
    # Two separators at once are one, or the beginning of another host or disk.
    if "" in parts[1:]:
        raise _AmbiguousText
    return _Path(tuple(parts), is_folder, mark + rest)


def _split_query(given: str) -> tuple[str, str, str]:
    found = re.search(r"[?#]", given)
    if found is None:
        return given, "", ""
    rest = given[found.end() :]
    # What it says there is nobody's to climb with either.
    for part in _REST_SEPARATORS.split(rest):
        _part(part)
    return given[: found.start()], found[0], rest


def _part(written: str) -> str:
    part = _unescaped(written)
    # Servers leave out what follows a semicolon, Windows leaves out dots and spaces at the end.
    if part and not part.partition(";")[0].strip(" ."):
        raise _AmbiguousText
    return part


def _unescaped(written: str) -> str:
    if "%" not in written:
        return written
    if _ESCAPE.sub("", written).count("%"):
        raise _AmbiguousText
    try:
        part = unquote_to_bytes(written).decode()
    except UnicodeDecodeError:
        raise _AmbiguousText from None
    if _SEPARATORS.search(part) or any(sign in part for sign in "%?#;"):
        raise _AmbiguousText
    _check_characters(part)
    return part


def _is_url_below(given: _Url, prefix: _Url) -> bool:
    same = (given.scheme, given.authority) == (prefix.scheme, prefix.authority)
    return same and _is_path_below(given.path, prefix.path)


def _is_path_below(given: _Path, prefix: _Path) -> bool:
    """Compares paths; text after ? or # is covered only where the prefix reaches into it."""
    n = len(prefix.parts)
    if prefix.rest:
        same = (given.parts, given.is_folder) == (prefix.parts, prefix.is_folder)
        return same and given.rest.startswith(prefix.rest)
    if given.rest or given.parts[:n] != prefix.parts:
        return False
    # A folder covers what is in it and its own name, written like that.
    return len(given.parts) > n or given.is_folder or not prefix.is_folder
