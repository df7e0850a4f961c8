"""The message files of this installation: locale/<language>/LC_MESSAGES/django.po and .mo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.messages import catalogue as files
from core.messages.catalogue import Catalogue, Message
from core.messages.extraction import extract

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = "zh_Hans"
PO = ROOT / "locale" / LANGUAGE / "LC_MESSAGES" / "django.po"
MO = PO.with_suffix(".mo")
# %(name)s, %s, {name}; a doubled %% is the sign itself.
_PLACEHOLDER = re.compile(r"%%|%(?:\(\w+\))?[-0-9.]*[sdrf]|\{\w*\}")


def updated() -> Catalogue:
    """Every message of templates and code, with the translations that there are."""
    known = files.read(PO) if PO.exists() else {}
    found = extract(ROOT)
    for key, message in found.items():
        if earlier := known.get(key):
            message.translation = earlier.translation
            message.flags |= earlier.flags & {"fuzzy"}
    return found


def save(catalogue: Catalogue) -> None:
    files.write(PO, catalogue)
    MO.write_bytes(files.compiled(catalogue))


def missing(catalogue: Catalogue) -> list[Message]:
    return [m for m in catalogue.values() if not m.translation or m.is_fuzzy]


def unequal_placeholders(catalogue: Catalogue) -> Iterator[Message]:
    """A translation must use each placeholder of its message, and no other."""
    for message in catalogue.values():
        wanted = placeholders(message.key.plural or message.key.msgid)
        if message.translation and placeholders(message.translation) != wanted:
            yield message


def placeholders(text: str) -> set[str]:
    return {found for found in _PLACEHOLDER.findall(text) if found != "%%"}
