"""Advice to whoever writes a server: what makes a definition clear to a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inspection import instructions
from inspection.definition_facts import (
    EXAMPLES,
    LIMITS,
    Argument,
    arguments,
    as_read,
    name_parts,
)

RULES: dict[str, str | Promise] = {
    "unclear-name": _("Its name leaves open what it does: begin with a verb and name the thing"),
    "no-description": _("It has no description, or one that says no more than its name"),
    "many-duties": _("It does several things: split it into one tool each"),
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
_AND = re.compile(r"(?i)^[^.\n]{0,200}?\b(\w+s?), (\w+s?),? (?:and|or) (?:\w+)s?\b")
_NOT = re.compile(
    r"(?i)\b(?:not|n't|never|only|except|cannot|excludes?|excluding|without|unless|limited to"
    r"|no)\b|不|仅|只"
)
_SHORTEST = 20
# Each says about as much as two of others.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# Said to a model, and not of what the tool does.
_SPEAKS_TO_MODELS = frozenset(("override", "pose", "order", "exfiltration"))
_EXAMPLE = re.compile("(?i)e\\.g\\.|for example|such as|例如|比如|譬如|示例|如：")


def check(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rules of RULES, each with the member that it is about. Of tools alone."""
    schema = content.get("inputSchema")
    if not isinstance(schema, Mapping):
        return
    description = content.get("description")
    text = as_read(description).strip() if isinstance(description, str) else ""
    parts = name_parts(content)
    if len(parts) < 2 and (not parts or len(parts[0]) < 3 or parts[0] in _VAGUE):
        yield "unclear-name", "name"
    if _length(text) < _SHORTEST or text.lower().rstrip(".") == " ".join(parts):
        yield "no-description", "description"
    elif not _says_what_not(text):
        yield "no-negative-scope", "description"
    if len(set(parts) & {"and", "or"}) or _AND.match(text):
        yield "many-duties", "name" if set(parts) & {"and", "or"} else "description"
    yield from _arguments(content, schema)


def _length(text: str) -> int:
    return len(text) + len(_WIDE.findall(text))


def _says_what_not(text: str) -> bool:
    """Also in an order to the model there is a "not", which says nothing of the tool."""
    if not _NOT.search(text):
        return False
    found = (one for one in instructions.sentences(text) if _NOT.search(one))
    return any(_SPEAKS_TO_MODELS.isdisjoint(instructions.rules(one)) for one in found)


def _arguments(content: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = list(arguments(content))
    for one in found:
        if not one.said:
            yield "no-argument-description", one.where
        if one.is_free_text(LIMITS):
            yield "no-limits", one.where
    has_example = schema.keys() & EXAMPLES or any(map(_has_example, found))
    if found and not has_example:
        yield "no-example", "inputSchema"


def _has_example(one: Argument) -> bool:
    return one.has_example or _EXAMPLE.search(one.said) is not None
