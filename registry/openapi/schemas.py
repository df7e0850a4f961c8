"""Schemas of OpenAPI documents as JSON Schema 2020-12 that stands alone.

Source: OpenAPI Specification 3.0.4, "Schema Object"; 3.1.1, the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from registry.openapi.document import ApiDescription, Position

MAX_TEXT = 1_000
_PLAIN = (
    *("type", "enum", "const", "format", "default", "description", "deprecated"),
    *("multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
    *("maxProperties", "minProperties", "required", "contentEncoding", "contentMediaType"),
    *("minContains", "maxContains", "dependentRequired"),
)
_ONE = (
    *("items", "additionalProperties", "not", "propertyNames", "contains", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
FILE = "A file, in base64."


class SchemaWriter:
    """Writes the schemas of one operation, for its arguments (`for_result` false) or its result;
    `definitions` are what they refer to."""

    def __init__(self, description: ApiDescription, *, for_result: bool) -> None:
        self._description, self._for_result = description, for_result
        # By name, and the names by document and pointer.
        self.definitions: dict[str, Any] = {}
        self._names: dict[tuple[str, str], str] = {}

    def schema(self, position: Position) -> Any:
        """Raises UnresolvedReference, DocumentRefused."""
        self._description.read_count.add()
        node = position.node
        if isinstance(node, bool):
            return node
        if not isinstance(node, Mapping):
            return {}
        if isinstance(node.get("$ref"), str):
            return self._reference(position)
        written = {name: node[name] for name in _PLAIN if name in node}
        if isinstance(written.get("description"), str):
            written["description"] = written["description"][:MAX_TEXT]
        self._write_inner(position, written)
        self._leave_out_members(position, written)
        if self._for_result and written.get("additionalProperties") is False:
            # An API grows, and its document comes after.
            del written["additionalProperties"]
        if node.get("format") == "binary" and not self._for_result:
            written = {"type": "string", "contentEncoding": "base64", "description": FILE}
        return _of_3_0(node, written) if self._description.is_3_0 else written

    def _reference(self, position: Position) -> dict[str, Any]:
        target = self._description.target(position.node["$ref"], position.document)
        key = (target.document, target.pointer)
        if key not in self._names:
            name = self._names[key] = self._free_name(target.pointer)
            # Before it is read: it may refer to itself.
            self.definitions[name] = {}
            self.definitions[name] = self.schema(target)
        written = {"$ref": f"#/$defs/{self._names[key]}"}
        beside = position.node.get("description")
        if isinstance(beside, str) and not self._description.is_3_0:
            written["description"] = beside[:MAX_TEXT]
        return written

    def _free_name(self, pointer: str) -> str:
        last = re.sub(r"[^A-Za-z0-9_.-]+", "_", pointer.rpartition("/")[2]).strip("#_") or "schema"
        name, n = last, 2
        while name in self.definitions:
            name, n = f"{last}_{n}", n + 1
        return name

    def _write_inner(self, position: Position, written: dict[str, Any]) -> None:
        node = position.node
        for keyword in _ONE:
            if isinstance(node.get(keyword), Mapping | bool):
                written[keyword] = self.schema(position.at(keyword))
        for keyword in _MANY:
            if isinstance(listed := node.get(keyword), list) and listed:
                written[keyword] = [
                    self.schema(
                        Position(one, position.document, f"{position.pointer}/{keyword}/{n}")
                    )
                    for n, one in enumerate(listed)
                ]
        for keyword in _NAMED:
            if isinstance(named := node.get(keyword), Mapping):
                written[keyword] = {name: self.schema(position.at(keyword, name)) for name in named}

    def _leave_out_members(self, position: Position, written: dict[str, Any]) -> None:
        """Members that only the other side sends."""
        mark = "writeOnly" if self._for_result else "readOnly"
        members = position.node.get("properties")
        if not isinstance(members, Mapping):
            return
        for name, member in members.items():
            if isinstance(member, Mapping) and member.get(mark) is True:
                written["properties"].pop(name, None)
                required = written.get("required")
                if isinstance(required, list):
                    written["required"] = [one for one in required if one != name]


def _of_3_0(node: Mapping[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        is_flag = isinstance(written.get(exclusive), bool)
        if is_flag and written.pop(exclusive) and limit in written:
            written[exclusive] = written.pop(limit)
    if node.get("nullable") is not True:
        return written
    if isinstance(written.get("type"), str):
        written["type"] = [written["type"], "null"]
        if isinstance(written.get("enum"), list) and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written
    return {"anyOf": [written, {"type": "null"}]}
