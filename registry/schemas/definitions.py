"""Parses tool definitions, compares them, and decides whether one may be published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import orjson
import rfc8785

from core.english import gettext as _
from registry.schemas import compiled

MAX_BYTES = 256 * 1024
_TEXTS = ("title", "description")

Tool = Mapping[str, Any]


class Unreadable(Exception):
    """The definition cannot be kept as JSON that everybody reads alike; says why."""


def identity(*, transport: str, url: str, argv: list[str]) -> dict[str, Any]:
    """The server, as far as it decides what a tool does: the same words elsewhere may lie."""
    if transport != "stdio":
        return {"transport": transport, "url": url}
    return {"transport": transport, "argv": argv}


def digest(server: Mapping[str, Any], tool: Tool) -> str:
    """SHA-256 over everything of `tool` (agents get it whole) and the server's identity."""
    domain, form = _canonical({"server": server, "tool": tool})
    return hashlib.sha256(domain + form).hexdigest()


def body(tool: Tool) -> str:
    """The JSON text to keep; raises Unreadable."""
    try:
        text = orjson.dumps(tool).decode()
    except orjson.JSONEncodeError as error:
        raise Unreadable(_("it is not JSON that everybody reads alike (%s)") % error) from error
    if len(text) > MAX_BYTES:
        raise Unreadable(
            _("its definition has %(size)d bytes, of which %(max)d are kept")
            % {"size": len(text), "max": MAX_BYTES}
        )
    return text


def problems(tool: Tool) -> list[str]:
    """Why this definition cannot be published, in sentences; none if it can."""
    found = [
        _("The %s is not text.") % field
        for field in _TEXTS
        if not isinstance(tool.get(field, ""), str)
    ]
    if not isinstance(tool.get("annotations", {}), dict):
        found.append(_("The annotations are not an object."))
    found += _schema_problems(tool)
    return found


def hints(tool: Tool) -> dict[str, bool]:
    """The server's claims about the tool: readOnlyHint, destructiveHint and their like."""
    annotations = tool.get("annotations")
    if not isinstance(annotations, dict):
        return {}
    return {name: value for name, value in annotations.items() if isinstance(value, bool)}


def notes(tool: Tool) -> list[str]:
    """Notes for the person who publishes it; none of them is an obstacle."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or compiled.problem(schema):
        return []
    levels = compiled.levels(schema)
    left_out = compiled.unenforced(schema)
    found = [
        _("The pattern %s is not enforced here: it needs an engine that can be stalled.") % pattern
        for pattern in left_out
    ]
    for pattern, most in compiled.bounds(schema).items():
        if pattern not in left_out:
            said = _("Texts for the pattern %(pattern)s are invalid beyond %(n)d characters.")
            found.append(said % {"pattern": pattern, "n": most})
    if levels is not None:
        said = _("It refers to itself in several ways: arguments are invalid beyond %d levels.")
        found.append(said % levels)
    return found


def _schema_problems(tool: Tool) -> list[str]:
    found = []
    for field in ("inputSchema", "outputSchema"):
        if field == "outputSchema" and field not in tool:
            continue
        if reason := compiled.problem(tool.get(field)):
            found.append(f"{field}: {reason}")
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type") != "object":
        found.append(_("inputSchema: Its type must be “object”."))
    return found


def _canonical(value: Any) -> tuple[bytes, bytes]:
    try:
        return b"countersign definition 1\n", rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        # Integers beyond 2^53 have no canonical form, yet every digit of them must count.
        exact = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return b"countersign definition 1, exact integers\n", exact.encode()
