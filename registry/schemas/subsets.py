"""A tool's schema of arguments as far as providers of models take it, and what they lose of it.

The gateway checks arguments by the whole schema all the same: a loss is what a model is not told.
Sources: errors of OpenAI's and Anthropic's APIs ("… at the top level", "array schema missing
items"); Schema and FunctionDeclaration of the Gemini API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from core.schema_keywords import MANY, NAMED, ONE

Json = dict[str, Any]
# Neither OpenAI nor Anthropic takes these where a tool's arguments begin.
NOT_AT_THE_TOP = ("allOf", "anyOf", "enum", "not", "oneOf")


class Loss(NamedTuple):
    """`path` is a JSON pointer into the tool's schema of arguments, "" for the whole of it."""

    path: str
    why: str


class ReducedSchema(NamedTuple):
    schema: Json
    losses: list[Loss]


def of_functions(schema: Mapping[str, Any]) -> ReducedSchema:
    """For functions of OpenAI and tools of Anthropic, whose schemas are JSON Schema 2020-12."""
    root = {**_resolved(schema, schema, frozenset()), "type": "object"}
    # Its draft, from which the forms of arrays are taken out.
    root.pop("$schema", None)
    losses = []
    for keyword in NOT_AT_THE_TOP:
        if root.pop(keyword, None) is not None:
            losses.append(Loss("", f"“{keyword}” is not taken where arguments begin."))
    return ReducedSchema(_mapped(root, _with_items), losses)


def _with_items(schema: Json) -> Json:
    """Arrays say what is in them, and tuples say it as 2020-12 does."""
    items = schema.get("items")
    if isinstance(items, list):
        rest = schema.pop("additionalItems", {})
        schema |= {"prefixItems": items, "items": rest}
    elif "array" in _types(schema) and items is None:
        schema["items"] = {}
    return schema


def _mapped(schema: Any, change: Callable[[Json], Json]) -> Any:
    """`change` on every schema within, from the outside inwards."""
    if not isinstance(schema, dict):
        return schema
    found = change(dict(schema))
    for keyword, value in found.items():
        if keyword in NAMED and isinstance(value, dict):
            found[keyword] = {name: _mapped(one, change) for name, one in value.items()}
        elif keyword in MANY and isinstance(value, list):
            found[keyword] = [_mapped(one, change) for one in value]
        elif keyword in ONE:
            found[keyword] = _mapped(value, change)
    return found


def _types(schema: Mapping[str, Any]) -> list[str]:
    said = schema.get("type", [])
    return [said] if isinstance(said, str) else list(said)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any], within: frozenset[str]) -> Json:
    """With what its reference leads to in its place. `within`: references on the way to it."""
    found = dict(schema)
    seen = set(within)
    while isinstance(name := found.pop("$ref", None), str) and name not in seen:
        seen.add(name)
        target = _target(root, name)
        found = {**target, **found} if isinstance(target, dict) else found
    return found


def _target(root: Any, reference: str) -> Any:
    """The schema that a local reference names; None if there is none."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    return found if reference.startswith("#") else None


# What Gemini's Schema has, and what says nothing about values.
_KEPT = {
    *("description", "enum", "format", "items", "minItems", "maxItems", "properties", "required"),
    *("minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum"),
    *("anyOf", "default", "nullable", "type", "title"),
}
_SAYS_NOTHING = {
    *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "examples", "deprecated"),
    *("readOnly", "writeOnly", "contentMediaType", "contentEncoding"),
}
_FORMATS = {"float", "double", "int32", "int64", "enum", "date-time"}


def of_gemini(schema: Mapping[str, Any]) -> ReducedSchema:
    """For `parameters` of Gemini's function declarations: its subset of OpenAPI 3.0's schemas."""
    reducer = _GeminiReducer(schema)
    return ReducedSchema(reducer.reduce(schema, "", frozenset()), reducer.losses)


class _GeminiReducer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.losses: list[Loss] = []

    def reduce(self, schema: Any, path: str, within: frozenset[str]) -> Json:
        if not isinstance(schema, dict) or not schema:
            return self._anything(path)
        reference = schema.get("$ref")
        if reference in within:
            self._lose(path, "What refers to itself ends here.")
            return {"type": "OBJECT"}
        found = _resolved(schema, self.root, within)
        within |= {reference} if isinstance(reference, str) else set()
        found = self._flat(found, path, within)
        for keyword in sorted(found.keys() - _KEPT):
            if keyword not in _SAYS_NOTHING and not keyword.startswith("x-"):
                self._lose(path, f"“{keyword}” is left out.")
        kept = {keyword: value for keyword, value in found.items() if keyword in _KEPT}
        return self._typed(self._within(kept, path, within), path)

    def _anything(self, path: str) -> Json:
        self._lose(path, "Any value is taken: the model is told of text.")
        return {"type": "STRING"}

    def _flat(self, schema: Json, path: str, within: frozenset[str]) -> Json:
        """Without `const`, `oneOf`, `allOf` and lists of types."""
        if "const" in schema:
            schema["enum"] = [schema.pop("const")]
        for part in schema.pop("allOf", []):
            schema = self._both(schema, _resolved(part, self.root, within), path)
        if "oneOf" in schema and "anyOf" not in schema:
            self._lose(path, "“oneOf” became “anyOf”.")
            schema["anyOf"] = schema.pop("oneOf")
        types = _types(schema)
        if "null" in types:
            schema["nullable"] = True
            types.remove("null")
        if len(types) > 1:
            schema["anyOf"] = [{"type": one} for one in types]
        schema["type"] = types[0] if len(types) == 1 else None
        return schema

    def _both(self, one: Json, other: Json, path: str) -> Json:
        """The conditions of two schemas together."""
        for name in one.keys() & other.keys() - {"properties", "required"}:
            if one[name] != other[name]:
                self._lose(path, f"“allOf” has more than one “{name}”: the first is told.")
        together = {**other, **one}
        for name, empty in (("properties", {}), ("required", [])):
            if name in one or name in other:
                first, second = one.get(name, empty), other.get(name, empty)
                together[name] = (
                    {**second, **first}
                    if isinstance(empty, dict)
                    else list(dict.fromkeys([*first, *second]))
                )
        return together

    def _within(self, schema: Json, path: str, within: frozenset[str]) -> Json:
        if isinstance(properties := schema.get("properties"), dict):
            schema["properties"] = {
                name: self.reduce(one, f"{path}/properties/{name}", within)
                for name, one in properties.items()
            }
        if isinstance(items := schema.get("items"), list):
            self._lose(path, "A list of different things: the model is told of the first.")
            items = items[0] if items else {}
        if items is not None:
            schema["items"] = self.reduce(items, f"{path}/items", within)
        self._require_known(schema, path)
        return self._any_of(schema, path, within)

    def _require_known(self, schema: Json, path: str) -> None:
        if "required" not in schema:
            return
        known = [name for name in schema["required"] if name in schema.get("properties", {})]
        for name in schema["required"]:
            if name not in known:
                self._lose(path, f"“{name}” is required and not described: left out.")
        schema["required"] = known
        if not known:
            del schema["required"]

    def _any_of(self, schema: Json, path: str, within: frozenset[str]) -> Json:
        """Stands alone or not at all: the API takes nothing beside it."""
        branches = schema.pop("anyOf", None)
        if branches is None:
            return schema
        if schema.get("type") or self._implied(schema):
            self._lose(path, "“anyOf” beside other conditions is left out.")
            return schema
        told = [
            self.reduce(one, f"{path}/anyOf/{place}", within) for place, one in enumerate(branches)
        ]
        if schema.get("nullable"):
            told = [{**one, "nullable": True} for one in told]
        return {"anyOf": told}

    def _typed(self, schema: Json, path: str) -> Json:
        said = schema.pop("type", None) or self._implied(schema)
        if said is None and "anyOf" not in schema:
            return {**schema, **self._anything(path)}
        if said is not None:
            schema["type"] = said.upper()
        if said == "array":
            schema.setdefault("items", {"type": "STRING"})
        if "enum" in schema and not all(isinstance(one, str) for one in schema["enum"]):
            self._lose(path, "“enum” has other values than text, and is left out.")
            del schema["enum"]
        if "format" in schema and schema["format"] not in _FORMATS:
            self._lose(path, f"The format “{schema.pop('format')}” is left out.")
        return schema

    @staticmethod
    def _implied(schema: Mapping[str, Any]) -> str | None:
        of: Iterable[tuple[str, str]] = (
            *(("properties", "object"), ("required", "object"), ("items", "array")),
            ("enum", "string"),
            *(("pattern", "string"), ("minimum", "number"), ("maximum", "number")),
        )
        return next((implied for keyword, implied in of if keyword in schema), None)

    def _lose(self, path: str, why: str) -> None:
        self.losses.append(Loss(path, why))
