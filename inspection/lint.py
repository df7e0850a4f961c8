"""Advice to whoever writes a server: what makes a definition clear to a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

RULES: dict[str, str | Promise] = {
    "unclear-name": _("Its name leaves open what it does: begin with a verb and name the thing"),
    "no-description": _("It has no description, or one that says no more than its name"),
    "many-duties": _("It does several things: make a tool of each"),
    "no-limits": _("A free text without a limit: give a length, a pattern, a format or the values"),
    "no-argument-description": _("An argument without a description"),
    "no-negative-scope": _("Nothing says what it is not for, or what it does not do"),
    "no-example": _("No example of arguments"),
}
MOST_DUTIES = 2
_VAGUE = frozenset(
    [
        "do",
        "run",
        "execute",
        "process",
        "handle",
        "manage",
        "helper",
        "util",
        "utils",
        "tool",
        "func",
        "function",
        "main",
        "misc",
        "task",
        "action",
        "operation",
        "call",
        "api",
        "request",
        "query",
        "data",
        "test",
    ]
)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_AND = re.compile(r"(?i)^[^.\n]{0,200}?\b(\w+s?), (\w+s?),? (?:and|or) (?:\w+)s?\b")
_NOT = re.compile(
    r"(?i)\b(?:not|n't|never|only|except|cannot|excludes?|excluding|without|unless|limited to"
    r"|no)\b|不|仅|只"
)
_SHORTEST = 20


def check(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rules of RULES, each with the member that it is about. Of tools alone."""
    schema = content.get("inputSchema")
    if not isinstance(schema, Mapping):
        return
    name, description = str(content.get("name") or ""), content.get("description")
    text = description.strip() if isinstance(description, str) else ""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if len(parts) < 2 and (not parts or len(parts[0]) < 3 or parts[0] in _VAGUE):
        yield "unclear-name", "name"
    if len(text) < _SHORTEST or text.lower().rstrip(".") == " ".join(parts):
        yield "no-description", "description"
    elif not _NOT.search(text):
        yield "no-negative-scope", "description"
    if len(set(parts) & {"and", "or"}) or _AND.match(text):
        yield "many-duties", "name" if set(parts) & {"and", "or"} else "description"
    yield from _arguments(schema)


def _arguments(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return
    has_example = bool(schema.keys() & {"examples", "example"})
    for name, one in properties.items():
        if not isinstance(one, Mapping):
            continue
        where = f"inputSchema.properties.{name}"
        if not str(one.get("description") or "").strip():
            yield "no-argument-description", where
        limited = {"enum", "const", "pattern", "format", "maxLength", "$ref"}
        if one.get("type") == "string" and not one.keys() & limited:
            yield "no-limits", where
        said = str(one.get("description") or "").lower()
        has_example = has_example or bool(one.keys() & {"examples", "example", "default", "enum"})
        has_example = has_example or "e.g." in said or "for example" in said or "such as" in said
    if not has_example:
        yield "no-example", "inputSchema"
