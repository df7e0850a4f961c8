"""Links and images in text that lead to hosts outside an operator's list, made inert.

An image is fetched by the program that shows the text, with all that its address holds; a link
waits for a click. Both stay readable: https://evil.example/x becomes hxxps://evil[.]example/x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from typing import NamedTuple

from inspection.safe_arguments import url_host_in

_SCHEME = r"(?:https?|ftps?|wss?)"
# What no host, port or user has, so that two links side by side are two.
_ENDS = r"\s/?#\\()\[\],;*<>\"'`|{}"
_AUTHORITY = rf"(?:\[[0-9a-fA-F:.%]{{2,60}}\]|[^{_ENDS}])[^{_ENDS}]{{0,300}}"
_ADDRESS = re.compile(
    rf"(?i)(?<![a-z0-9+.\-])(?P<scheme>{_SCHEME}):[\\/]{{0,8}}(?P<host>{_AUTHORITY})"
)
# Where Markdown and HTML have an address: it may be without a scheme, and in escapes.
_DESTINATION = re.compile(
    r"(?i)(?:\]\(\s{0,8}<?|\]:\s{0,8}<?|\b(?:src|href|srcset|action|poster|background|data)"
    r"\s{0,8}=\s{0,8}[\"']?|\burl\(\s{0,8}[\"']?)"
    r"(?P<address>[^\s<>\"'`)]{2,2000})"
)
_LEADS_OUT = re.compile(rf"(?i)(?:{_SCHEME}:|[\\/]{{2}})")
_WITHOUT_SCHEME = re.compile(rf"[\\/]{{2,8}}(?P<host>{_AUTHORITY})")
# Of CommonMark: before punctuation a backslash only says that it is meant as it is.
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
# A user's name may end later than a reader of Markdown would end the address.
_USER = re.compile(r"[^\s/?#<>\"'`]{0,300}@")
_INERT = {
    "http": "hxxp",
    "https": "hxxps",
    "ws": "wxs",
    "wss": "wxss",
    "ftp": "fxp",
    "ftps": "fxps",
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


def could_link(text: str) -> bool:
    return ":" in text or "&" in text or "//" in text or "\\" in text


def outside(text: str, hosts: tuple[str, ...]) -> list[InertLink]:
    """Links to other hosts, in order, none within another."""
    at, found = 0, []
    for one in sorted([*_addresses(text, hosts), *_destinations(text, hosts)]):
        if one.start >= at:
            found.append(one)
            at = one.end
    return found


def _addresses(text: str, hosts: tuple[str, ...]) -> Iterator[InertLink]:
    for match in _ADDRESS.finditer(text):
        if not _is_listed(match, text, hosts):
            yield InertLink(*match.span(), _inert(match))


def _is_listed(match: re.Match[str], text: str, hosts: tuple[str, ...]) -> bool:
    """Where readers of addresses could differ, it is not."""
    address = match.group().rstrip(".:!")
    if not re.match(r"(?i)https?://[^\\/]", address) or _USER.match(text, match.start("host")):
        return False
    return url_host_in(address, hosts)


def _destinations(text: str, hosts: tuple[str, ...]) -> Iterator[InertLink]:
    """Only what _addresses does not see."""
    for match in _DESTINATION.finditer(text):
        written = match["address"]
        if bare := _WITHOUT_SCHEME.match(written):
            if not url_host_in(f"https:{bare.group()}", hosts):
                start = match.start("address")
                yield InertLink(start, start + bare.end(), f"hxxps://{_spelled(bare['host'])}")
            continue
        address = _ESCAPE.sub("", unescape(written))
        if address != written and _LEADS_OUT.match(address):
            first = _ADDRESS.match(address)
            if first is None or not _is_listed(first, address, hosts):
                yield InertLink(*match.span("address"), _all_inert(address))


def _all_inert(address: str) -> str:
    bare = _WITHOUT_SCHEME.match(address)
    if bare:
        address = f"hxxps://{_spelled(bare['host'])}{address[bare.end() :]}"
    return _ADDRESS.sub(_inert, address)


def _inert(match: re.Match[str]) -> str:
    return f"{_INERT[match['scheme'].lower()]}://{_spelled(match['host'])}"


def _spelled(host: str) -> str:
    return host.replace(".", "[.]")
