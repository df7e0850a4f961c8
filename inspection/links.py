"""Links and images in text that lead to hosts outside an operator's list, made inert.

An image is fetched by the program that shows the text, with all that its address holds; a link
waits for a click. Both stay readable: https://evil.example/x becomes hxxps://evil[.]example/x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from heapq import merge
from html import unescape
from operator import itemgetter
from typing import NamedTuple

from inspection import characters
from inspection.safe_arguments import url_host_in

# Readers of HTML leave these out of an address, wherever they stand in it.
_GAP = r"(?:[\t\r\n]|&(?:Tab|NewLine);|&#(?:0*+(?:9|10|13)(?!\d)|x0*+[9ad](?![\da-f]));?)*+"


def _written(character: str, *others: str) -> str:
    """A pattern for a character as it is, and as HTML can write it."""
    codes = sorted({ord(form) for form in (character.lower(), character.upper())})
    decimal, hexadecimal = ("|".join(format(code, form) for code in codes) for form in ("d", "x"))
    number = rf"&#(?:0*+(?:{decimal})(?!\d)|x0*+(?:{hexadecimal})(?![\da-f]));?"
    return "(?:" + "|".join((re.escape(character), *others, number)) + ")"


_COLON = _written(":", r"\\:", "&colon;")
_SLASH = f"(?:{_written('/', '&sol;')}|{_written(chr(92), '&bsol;')})"
_SCHEME = "|".join(
    _GAP.join(map(_written, scheme))
    for scheme in ("https", "http", "ftps", "ftp", "wss", "ws", "file")
)
# What no host, port or user has, so that two links side by side are two.
_ENDS = r"\s/?#\\()\[\],;*<>\"'`|{}"
_AUTHORITY = rf"(?:\[[0-9a-fA-F:.%]{{2,60}}\]|[^{_ENDS}])[^{_ENDS}]{{0,300}}"
# After slashes, a user's name may begin with anything. Marks of a sentence before a space are none.
_ODD_USER = r"(?=\s{8}|[^/?#\\<>\n]{0,300}@|(?![^\w\s]{0,5}(?:\s|\Z))\S)"
_ADDRESS = re.compile(
    rf"(?i)(?<![a-z])(?P<scheme>{_SCHEME}){_GAP}{_COLON}"
    rf"(?P<slashes>(?:{_GAP}{_SLASH})*+)(?P<host>(?:(?<!:){_GAP})?{_AUTHORITY}|(?<!:){_ODD_USER})"
)
_NAMED = r"src|href|srcset|action|formaction|poster|background|data|ping|url"
# Where Markdown, HTML and CSS have an address: it may be without a scheme.
_WITHOUT_SCHEME = re.compile(
    rf"(?i)(?:\]\(|\]:|\burl\(|@import|\d[wx]\s*+,"
    rf"|(?:\b(?:{_NAMED})|(?<=[\s\"'<])[a-z][a-z0-9:_-]*+)\s*+=)"
    rf"(?:[\s\"'<>]|&nbsp;|{_GAP[:-2]})*+"
    rf"(?P<address>{_SLASH}(?:{_GAP}{_SLASH})++{_GAP}(?P<host>{_AUTHORITY}))"
)
# Markdown of GitHub makes a link of it.
_WWW = re.compile(rf"(?i)(?<![a-z0-9@/.\-])www\.(?P<host>[^{_ENDS}]{{1,300}})")
# A user's name may end later than a reader of Markdown would end the address.
_USER = re.compile(r"[^\s/?#<>\"'`]{0,300}@")
# For some reader the host goes on: after an escape, a break in an attribute, or a rare character.
_GOES_ON = re.compile(r"\\[.@:%&_\-]|[,;*(){}][^\s/?#\\<>\"'`]{0,300}\.[\w-]")
_BREAK = re.compile(r"[\t\r\n]+[\w.@:%&\-]")
_IN_ATTRIBUTE = re.compile(r"(?:[\"'=]\s*|\A\s{40})\Z")
_INERT = {
    "http": "hxxp",
    "https": "hxxps",
    "ws": "wxs",
    "wss": "wxss",
    "ftp": "fxp",
    "ftps": "fxps",
    "file": "fxle",
}


class InertLink(NamedTuple):
    """A stretch of text, and what is to stand there."""

    start: int
    end: int
    inert: str


@lru_cache(maxsize=1000)
def hosts_of(text: str) -> tuple[str, ...]:
    """The hosts of an operator's list: names, or `*.` and what names below it end with."""
    return tuple(text.lower().split())


# Where a scheme may begin that is written plainly. A set of characters first, or it takes ten times
# as long.
_PLAIN_SCHEME = re.compile(r"[hHfFwW](?=(?i:ttps?|tps?|ile|ss?)\\?:)")
_TWO_SLASHES = re.compile(r"[/\\](?<![:/\\].)[\t\r\n]*[/\\]")


# How HTML can write a part of an address.
_COULD_SPELL = re.compile(r"&(?:#|colon|sol|bsol|tab|newline)")
_SCHEMES_END = ("http:", "https:", "ws:", "wss:", "ftp:", "ftps:", "file:")


def document_could_link(document: str, *, has_escape: bool, is_plain: bool) -> bool:
    """Whether a text of this JSON document could hold an address. It has no other escapes than
    those of ends of lines, tabs, quotes and backslashes. `is_plain`: characters.is_plain."""
    if not is_plain:
        document = document.translate(characters.CASELESS)
    folded = document.lower()
    if has_escape:
        if "\\\\" in folded:
            return True
        # Where readers of addresses leave ends of lines out.
        folded = folded.replace("\\n", "").replace("\\r", "").replace("\\t", "")
    # Looking for one sign alone is many times faster.
    if ("/" in folded and "//" in folded) or "ww." in folded:
        return True
    if "&" in folded and _COULD_SPELL.search(folded):
        return True
    # All others stand after the name of a member.
    has_colon = folded.count(":") != folded.count('":')
    return has_colon and any(end in folded for end in _SCHEMES_END)


def could_link(text: str) -> bool:
    return any(mark in text for mark in ":/&\\") or "ww." in text.lower()


def outside(text: str, hosts: tuple[str, ...]) -> list[InertLink]:
    """Links to other hosts, in order, none within another."""
    at, found = 0, []
    without = sorted([*_without_scheme(text, hosts), *_www(text, hosts)])
    beginnings = ((one.start, one) for one in without)
    for start, one in merge(beginnings, _scheme_places(text), key=itemgetter(0)):
        if start >= at and (link := one or _address(text, start, hosts)):
            found.append(link)
            at = link.end
    return found


def _scheme_places(text: str) -> Iterator[tuple[int, None]]:
    """Where an address with a scheme may begin."""
    if ":" not in text and "&" not in text:
        return
    plain = [match.start() for match in _PLAIN_SCHEME.finditer(text)]
    if "&" in text or len(_PLAIN_SCHEME.findall(_unbroken(text))) > len(plain):
        # Some are written as HTML, or with an end of a line within.
        plain = [match.start() for match in _ADDRESS.finditer(text)]
    yield from ((start, None) for start in plain)


def _unbroken(text: str) -> str:
    return text.replace("\n", "").replace("\r", "").replace("\t", "")


def _address(text: str, start: int, hosts: tuple[str, ...]) -> InertLink | None:
    match = _ADDRESS.match(text, start)
    if match is None or not _leads_out(match, text) or _is_listed(match, text, hosts):
        return None
    return InertLink(*match.span(), f"{_inert_scheme(match)}://{_spelled(match['host'])}")


def _leads_out(match: re.Match[str], text: str) -> bool:
    """Whether it is an address with a host."""
    if not match["slashes"]:
        # As in "git+http: x" and "a.ws:b".
        before = text[match.start() - 1 : match.start()]
        return _inert_scheme(match) != "fxle" and not (before and before in "0123456789+.-")
    # file:///a is a file of the reader's own.
    return _inert_scheme(match) != "fxle" or match["slashes"] != "///"


def _inert_scheme(match: re.Match[str]) -> str:
    scheme = re.sub(r"[\t\r\n]", "", unescape(match["scheme"]))
    return _INERT[scheme.translate(characters.CASELESS).lower()]


def _is_listed(match: re.Match[str], text: str, hosts: tuple[str, ...]) -> bool:
    """Where readers of addresses could differ, it is not."""
    address = match.group().rstrip(".:!")
    if not re.match(r"(?i)https?://[^\\/\s]", address):
        return False
    return not _is_unclear(match, text) and url_host_in(address, hosts)


def _is_unclear(match: re.Match[str], text: str) -> bool:
    if _USER.match(text, match.start("host")) or _GOES_ON.match(text, match.end()):
        return True
    before = text[max(match.start() - 40, 0) : match.start()]
    return bool(_BREAK.match(text, match.end()) and _IN_ATTRIBUTE.search(before))


def _without_scheme(text: str, hosts: tuple[str, ...]) -> Iterator[InertLink]:
    if "&" not in text and not _TWO_SLASHES.search(text):
        return
    for match in _WITHOUT_SCHEME.finditer(text):
        address, host = match["address"], match["host"]
        is_plain = address == f"//{host}" and not _is_unclear(match, text)
        if not (is_plain and url_host_in(f"https:{address.rstrip('.:!')}", hosts)):
            yield InertLink(*match.span("address"), f"hxxps://{_spelled(host)}")


def _www(text: str, hosts: tuple[str, ...]) -> Iterator[InertLink]:
    for match in _WWW.finditer(text) if "ww." in text.lower() else ():
        address = f"http://{match.group().rstrip('.:!')}"
        if _is_unclear(match, text) or not url_host_in(address, hosts):
            yield InertLink(*match.span(), _spelled(match.group()))


def _spelled(host: str) -> str:
    return host.strip().replace(".", "[.]")
