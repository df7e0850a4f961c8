"""A page as a browser takes it, and what must not be in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

from core.text import hidden_count

ATTRIBUTES = re.compile(r"[a-z][a-z0-9:_-]*").fullmatch
# The space of Django, and ours, between a number and its unit, and ours before a dot.
OURS = re.compile("(?<=[0-9])\u00a0(?=bytes?|[KMG]B|m?s[ .,])|\u00a0(?=· )")
VOID_OF_TEXT = {"script", "style", "textarea"}
ADDRESSES = {"href", "src", "action", "formaction", "hx-get", "hx-post", "xlink:href"}
# What is sent back as it was, and seen in a field that shows what it holds.
RAW = {"value"}


class Page(HTMLParser):
    """Fails on what a stranger's text could have put there."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.pieces: list[str] = []
        self._inside: list[str] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return flat("".join(self.pieces))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "pwn" in tag or tag in ("iframe", "base", "math", "object", "embed"):
            self.wrong.append(f"<{tag}>")
        given = {name: value or "" for name, value in attrs}
        if tag == "script" and not given.get("src", "").startswith("/static/"):
            self.wrong.append(f"<script {given}>")
        if tag == "meta" and "http-equiv" in given:
            self.wrong.append("<meta http-equiv>")
        for name, value in given.items():
            self._attribute(tag, name, value)
        self._inside.append(tag)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if "pwn" in name or name.startswith(("on", "hx-on")) or name == "style":
            self.wrong.append(f"<{tag} {name}={value[:40]!r}>")
        if not ATTRIBUTES(name):
            self.wrong.append(f"<{tag} {name!r}>")
        leads_away = name in ADDRESSES and (urlsplit(value).scheme or urlsplit(value).netloc)
        if leads_away and not value.startswith("http://127.0.0.1"):
            self.wrong.append(f"<{tag} {name}={value[:60]!r}>")
        if name not in RAW and hidden_count(OURS.sub(" ", value)):
            self.wrong.append(f"hidden in <{tag} {name}={value[:60]!r}>")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._inside or self._inside[-1] not in VOID_OF_TEXT:
            self.pieces.append(data)
            if hidden_count(OURS.sub(" ", data)):
                self.wrong.append(f"hidden in text {data[:60]!r}")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"<!--{data[:40]}")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"<?{data[:40]}")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append(f"<![{data[:40]}")


def flat(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text)
