"""Icons as servers declare them (MCP 2025-11-25, `icons`): the one that is taken of several."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# Shown at 24 pixels; twice that for dense screens, and a spare.
SIDE = 64
SOURCE_MAX = 128 * 1024
_SCHEMES = ("https:", "http:", "data:")
_SIZE = re.compile(r"(\d{1,5})x\d{1,5}")


class DeclaredIcon(NamedTuple):
    source: str
    mime_type: str
    theme: str
    # In pixels; 0 where it is not said.
    side: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()


def choose(icons: object) -> DeclaredIcon | None:
    """The best for a small picture on light ground: vectors last, which are not drawn."""
    return min(_read(icons), key=_badness, default=None)


def chosen_icons(icons: object) -> list[dict[str, str]]:
    """The chosen icon of a server, as it would be declared; an empty list without one."""
    icon = choose(icons)
    if icon is None:
        return []
    return [{"src": icon.source, "mimeType": icon.mime_type, "theme": icon.theme}]


def _read(icons: object) -> Iterator[DeclaredIcon]:
    for one in icons if isinstance(icons, list) else []:
        source = one.get("src") if isinstance(one, dict) else None
        if isinstance(source, str) and _is_address(source):
            yield _declared(source, one)


def _is_address(source: str) -> bool:
    is_plain = source.isascii() and source.isprintable() and len(source) <= SOURCE_MAX
    return is_plain and source.lower().startswith(_SCHEMES)


def _declared(source: str, one: dict[str, Any]) -> DeclaredIcon:
    mime_type, theme = one.get("mimeType"), one.get("theme")
    return DeclaredIcon(
        source,
        mime_type[:100] if isinstance(mime_type, str) and mime_type.isascii() else "",
        theme if theme in ("light", "dark") else "",
        _side(one.get("sizes")),
    )


def _side(sizes: object) -> int:
    # A string before 2025-11-25 was final.
    texts = sizes.split() if isinstance(sizes, str) else sizes if isinstance(sizes, list) else []
    found = [_SIZE.fullmatch(text) for text in texts if isinstance(text, str)]
    return max((int(one.group(1)) for one in found if one), default=0)


def _badness(icon: DeclaredIcon) -> tuple[bool, bool, bool, int]:
    is_vector = "svg" in icon.mime_type or ".svg" in icon.source[:2000].lower()
    return is_vector, icon.theme == "dark", icon.side < SIDE, icon.side
