"""The search index of the catalogue: made from a definition once, when it is first seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from django.contrib.postgres.search import SearchVector
from django.db.models import Value

from core.folding import folded
from core.text import revealed
from registry.models import Listing, Tool
from registry.models.versioned import AT_ONCE
from registry.schemas import definitions

# An index holds words, not essays: a definition may have 256 KB.
MAX_WORDS, MAX_TEXT = 4_000, 20_000
MAX_NAMES = 500
MAX_DEPTH = 6
# Chinese characters, kana, Hangul, Thai, Lao, Khmer and Burmese.
_SCRIPTS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{_SCRIPTS}]+")
_pieces = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+").findall


def note(tools: Mapping[Tool, dict[str, Any]]) -> None:
    """Let the catalogue find each by its definition, the last that its server gave."""
    found_by = [
        Listing(tool=tool, **words(tool.exposed_name, content)) for tool, content in tools.items()
    ]
    Listing.objects.bulk_create(
        found_by,
        AT_ONCE,
        update_conflicts=True,
        unique_fields=["tool"],
        update_fields=["words", "lexemes", "bigrams"],
    )


def words(exposed_name: str, content: dict[str, Any]) -> dict[str, Any]:
    """A listing's columns."""
    names = _words(exposed_name, content)
    text = _storable(folded(str(content.get("description") or "")[:MAX_TEXT]))[:MAX_TEXT]
    lexemes = SearchVector(Value(parted(names)), weight="A", config="english")
    return {
        "words": names,
        "bigrams": sorted(set(bigrams(f"{names} {text}"))),
        "lexemes": lexemes + SearchVector(Value(parted(text)), weight="C", config="english"),
    }


def parted(text: str) -> str:
    """Where two scripts meet, a word ends: 天气api is 天气 and api."""
    return UNSPACED.sub(lambda run: f" {run[0]} ", text)


def bigrams(text: str) -> Iterator[str]:
    """Each character of scripts that set no spaces between words, and each with the next one."""
    for run in UNSPACED.findall(text):
        yield from run
        yield from map("".join, pairwise(run))


def claims(content: dict[str, Any]) -> dict[str, Any]:
    """The hints that a tool's row keeps."""
    hints = definitions.hints(content)
    known = HINTS.values()
    return {
        "hints": sorted(name for name, said in hints.items() if said and name in known),
        "risk": risk(hints),
    }


# By the filter's name, what a server says of its tool.
HINTS = {
    "reads": "readOnlyHint",
    "destructive": "destructiveHint",
    "open": "openWorldHint",
    "repeats": "idempotentHint",
}


def risk(hints: Mapping[str, bool]) -> Tool.Risk:
    """The worst that the server's own words admit; what it does not say is no assurance."""
    if hints.get("readOnlyHint"):
        return Tool.Risk.READS
    if hints.get("destructiveHint"):
        return Tool.Risk.DESTROYS
    if hints.get("destructiveHint") is False:
        return Tool.Risk.CHANGES
    return Tool.Risk.UNSAID


def split(text: str) -> list[str]:
    """The words in a name: "sendMail_v2" is send, Mail and 2 as well."""
    return _pieces(text)


def _words(exposed_name: str, content: dict[str, Any]) -> str:
    names = [exposed_name, str(content.get("title") or ""), *argument_texts(content)[0]]
    every = dict.fromkeys(word for name in names for word in (name, " ".join(split(name))) if word)
    # In small letters, so that a part of a name is found by way of the index.
    return _storable(folded(" ".join(every)).lower())[:MAX_WORDS]


def argument_texts(content: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Names of arguments, nested ones too, and what is said of them."""
    found = list(_arguments(content))
    said = [child.get("description") for _name, child in found if isinstance(child, dict)]
    return [name for name, _child in found], [text for text in said if isinstance(text, str)]


def _arguments(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    waiting = [(content.get("inputSchema"), 0)]
    named = 0
    while waiting:
        node, depth = waiting.pop(0)
        properties = node.get("properties") if isinstance(node, dict) else None
        if not isinstance(properties, dict) or depth > MAX_DEPTH:
            continue
        for name, child in properties.items():
            if named == MAX_NAMES:
                return
            named += 1
            yield name, child
            waiting += [(part, depth + 1) for part in (child, _items(child))]


def _items(child: Any) -> Any:
    return child.get("items") if isinstance(child, dict) else None


def _storable(text: str) -> str:
    """No column holds a NUL; and nobody looks for what is not seen."""
    return revealed(text).encode(errors="replace").decode()
