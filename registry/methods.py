"""MCP methods beside tools/call: each is treated like a tool of its server, under a name that no
tool can have, so that rules, approvals, the record and limits apply to it too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_noop

from registry.models import Item

READ = "resources/read"
GET = "prompts/get"
COMPLETE = "completion/complete"

# None: the server could not tell.
Listed = list[dict[str, Any]] | None

_TEXT = {"type": "string"}
# By the protocol none of them changes anything.
_READS = {"readOnlyHint": True}
URI_MAX = 8192


def _definition(
    method: str, title: str, description: str, required: list[str], **properties: Any
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "name": method,
        "title": title,
        "description": description,
        "inputSchema": schema | {"additionalProperties": False},
        "annotations": _READS,
    }


METHODS: dict[str, dict[str, Any]] = {
    READ: _definition(
        READ,
        gettext_noop("Read a resource"),
        gettext_noop("Gives what the server's resource with this URI holds now."),
        ["uri"],
        uri={"type": "string", "minLength": 1, "maxLength": URI_MAX, "description": "Which."},
    ),
    GET: _definition(
        GET,
        gettext_noop("Get a prompt"),
        gettext_noop("Returns the messages of the server's prompt for these arguments."),
        ["name"],
        name={"type": "string", "minLength": 1, "description": "Which prompt."},
        arguments={"type": "object", "additionalProperties": _TEXT},
    ),
    COMPLETE: _definition(
        COMPLETE,
        gettext_noop("Complete an argument"),
        gettext_noop("Suggests how an argument of a prompt or of a resource template may go on."),
        ["ref", "argument"],
        ref={
            "type": "object",
            "properties": {
                "type": {"enum": ["ref/prompt", "ref/resource"]},
                "name": _TEXT,
                "title": _TEXT,
                "uri": _TEXT,
            },
            "required": ["type"],
            "additionalProperties": False,
        },
        argument={
            "type": "object",
            "properties": {"name": _TEXT, "value": _TEXT},
            "required": ["name", "value"],
            "additionalProperties": False,
        },
        context={
            "type": "object",
            "properties": {"arguments": {"type": "object", "additionalProperties": _TEXT}},
            "additionalProperties": False,
        },
    ),
}


def is_one(name: str) -> bool:
    """Whether this name is a method's: no tool's name contains a slash."""
    return "/" in name


def of(
    listed: Mapping[Item.Kind, Listed], capabilities: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The methods to offer of a server, by what it lists: `listed` has the items of each kind. A
    server that lists no resource may still have some, which its results link to."""
    if "resources" in capabilities or listed[Item.Kind.RESOURCE] or listed[Item.Kind.TEMPLATE]:
        yield METHODS[READ]
    if listed[Item.Kind.PROMPT]:
        yield METHODS[GET]
    if "completions" in capabilities and (listed[Item.Kind.PROMPT] or listed[Item.Kind.TEMPLATE]):
        yield METHODS[COMPLETE]


def unknown(listed: Mapping[Item.Kind, Listed]) -> set[str]:
    """The methods whose items the server could not list this time."""
    methods = set()
    if listed[Item.Kind.RESOURCE] is None or listed[Item.Kind.TEMPLATE] is None:
        methods |= {READ, COMPLETE}
    if listed[Item.Kind.PROMPT] is None:
        methods |= {GET, COMPLETE}
    return methods
