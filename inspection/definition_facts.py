"""Facts about a definition that findings and advice share: its words as read, and its arguments.

A text counts as a model reads it, and an argument as its schema has it behind a reference or in
alternatives: so the one does not say that there is a limit where the other says that there is none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from inspection import characters
from inspection.spelling import SIGNS

# Keywords after which a text is one of few, or of a form.
FORMS = frozenset({"enum", "const", "pattern", "format"})
# And those by which it is bounded; what a reference to elsewhere says is not known.
LIMITS = FORMS | {"maxLength", "$ref"}
EXAMPLES = frozenset({"examples", "example", "default", "enum"})
_KEPT = LIMITS | EXAMPLES | {"type", "description"}
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_LOCAL = re.compile(r"#/(\$defs|definitions)/([^/]{1,200})")
# A hostile schema could have very many, and refer to one long text in each place.
_ALTERNATIVES_MOST, _DEPTH_MOST, _SAID_MOST = 20, 4, 2000
# Fewer are no sentence.
_PERCENT, _PERCENTS_LEAST = re.compile("%[0-9A-Fa-f]{2}"), 3
_BACKSLASH = re.compile(rf"\\(?=[{SIGNS}])")


class Argument(NamedTuple):
    """`alternatives`: each way that its schema allows, with the keywords that matter here."""

    name: str
    alternatives: tuple[Mapping[str, Any], ...]

    @property
    def where(self) -> str:
        return f"inputSchema.properties.{self.name}"

    @property
    def said(self) -> str:
        """The words of its schema about it, as far as they are looked at."""
        said = dict.fromkeys(str(one.get("description") or "") for one in self.alternatives)
        return " ".join(as_read(one[:_SAID_MOST]) for one in said).strip()

    def is_free_text(self, limits: frozenset[str]) -> bool:
        """Whether it can be a text that none of these keywords limits."""
        return any(_is_text(one) and not one.keys() & limits for one in self.alternatives)

    @property
    def has_example(self) -> bool:
        return any(one.keys() & EXAMPLES for one in self.alternatives)


def as_read(text: str) -> str:
    """The text that a reader sees: of HTML, `&lt;` is a bracket, and `&#8203;` nothing at all. Also
    of Markdown and of addresses: `\\_` is an underscore, and `%20` a space."""
    text = _decoded(text)
    seen = characters.undisguised(text)
    return characters.plain(text if seen is None else seen.text)


def _decoded(text: str) -> str:
    for _level in range(_DEPTH_MOST):
        if "&" not in text or (plain := html.unescape(text)) == text:
            break
        text = plain
    if text.count("%") >= _PERCENTS_LEAST and len(_PERCENT.findall(text)) >= _PERCENTS_LEAST:
        text = unquote(text)
    return _BACKSLASH.sub("", text) if "\\" in text else text


def name_parts(content: Mapping[str, Any]) -> list[str]:
    """The words of its name, in lower case: `deleteUser` has two."""
    return [part.lower() for part in _PARTS.findall(str(content.get("name") or ""))]


def properties(content: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = content.get("inputSchema")
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def arguments(content: Mapping[str, Any]) -> Iterator[Argument]:
    for name, schema in properties(content).items():
        # `true` is a schema too, which says nothing.
        kept = schema if isinstance(schema, Mapping) else {}
        ways = _ways(kept, content["inputSchema"], _DEPTH_MOST)
        yield Argument(name, tuple(islice(ways, _ALTERNATIVES_MOST)))


def _is_text(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    return kinds == "string" or (isinstance(kinds, list) and "string" in kinds)


def _ways(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> Iterator[Mapping[str, Any]]:
    """Only keywords that matter are copied: a schema may have very many, in very many places."""
    beside = {name: schema[name] for name in _KEPT if name in schema}
    inner = _inner(schema, root) if depth else []
    if not inner:
        yield beside
    else:
        # What it refers to is looked at itself.
        beside.pop("$ref", None)
    for one in inner:
        kept = one if isinstance(one, Mapping) else {}
        yield from ({**beside, **way} for way in _ways(kept, root, depth - 1))


def _inner(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    for choice in ("anyOf", "oneOf"):
        found = schema.get(choice)
        if isinstance(found, list) and found:
            return found
    reference = schema.get("$ref")
    match = _LOCAL.fullmatch(reference) if isinstance(reference, str) else None
    shared = root.get(match[1]) if match else None
    target = shared.get(match[2]) if match and isinstance(shared, Mapping) else None
    return [target] if isinstance(target, Mapping) else []
