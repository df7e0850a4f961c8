"""A tool's schema of arguments as far as providers of models take it, and what they lose of it.

The gateway checks arguments by the whole schema all the same: a loss is what a model is not told.
Sources: errors of OpenAI's and Anthropic's APIs ("… at the top level", "array schema missing
items"); Schema and FunctionDeclaration of the Gemini API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from core.schema_keywords import MANY, NAMED, ONE
from registry.schemas import argument_names, recursion
from registry.schemas.argument_names import IsName

Json = dict[str, Any]
# Neither OpenAI nor Anthropic takes these where a tool's arguments begin.
NOT_AT_THE_TOP = ("allOf", "anyOf", "enum", "not", "oneOf")
# These speak of arguments by name, so that they are wrong once one is renamed.
_OF_NAMES = (
    *("dependencies", "dependentRequired", "dependentSchemas", "else", "if", "propertyNames"),
    *("patternProperties", "then"),
)


class Loss(NamedTuple):
    """`path` is a JSON pointer into the tool's schema of arguments, "" for the whole of it."""

    path: str
    why: str


class ReducedSchema(NamedTuple):
    schema: Json
    losses: list[Loss]


def of_functions(schema: Mapping[str, Any]) -> ReducedSchema:
    """For functions of OpenAI and tools of Anthropic, whose schemas are JSON Schema 2020-12."""
    merged, conflicts = _merged(own for _reference, own in _all_of(schema, schema))
    root = {**merged, "type": "object"}
    # Its draft, from which the forms of arrays are taken out.
    root.pop("$schema", None)
    losses = [Loss("", why) for why in conflicts]
    for keyword in NOT_AT_THE_TOP:
        if root.pop(keyword, None) is not None:
            losses.append(Loss("", f"“{keyword}” is not taken where arguments begin."))
    return ReducedSchema(_mapped(root, _as_2020_12), losses)


def stand_ins(schema: Mapping[str, Any]) -> dict[str, str]:
    """The arguments' names by what may stand for them in a call."""
    parts = _all_of(schema, schema)
    names = {name for _reference, own in parts for name in own.get("properties", ())}
    return argument_names.stand_ins(names)


def with_names(reduced: ReducedSchema, is_name: IsName) -> ReducedSchema:
    """With arguments renamed where a provider rejects the whole request for their names."""
    schema, found = argument_names.renamed(reduced.schema, is_name)
    losses = [
        Loss(f"/properties/{escaped(name)}", f"The argument “{name}” is called “{other}”.")
        for name, other in found
    ]
    for keyword in _OF_NAMES if found else ():
        if schema.pop(keyword, None) is not None:
            losses.append(Loss("", f"“{keyword}” is left out, since arguments are renamed."))
    if found and any(one.get("$ref") == "#" for one in _each(schema)):
        losses.append(Loss("", "What refers to the whole of the arguments is any object."))
    schema = _mapped(schema, lambda one: _pointing(one, dict(found)))
    return ReducedSchema(schema, [*reduced.losses, *losses])


def _each(schema: Json) -> list[Json]:
    found: list[Json] = []

    def keep(one: Json) -> Json:
        found.append(one)
        return one

    _mapped(schema, keep)
    return found


def _pointing(schema: Json, renamed: Mapping[str, str]) -> Json:
    """References into a renamed argument follow it."""
    reference = unquote(str(schema.get("$ref", "")))
    if renamed and reference == "#":
        # The arguments have these names only where they begin.
        return {"type": "object"}
    for name, other in renamed.items():
        place = f"#/properties/{escaped(name)}"
        if f"{reference}/".startswith(f"{place}/"):
            schema["$ref"] = quote(f"#/properties/{other}{reference.removeprefix(place)}", "/#~")
    return schema


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _as_2020_12(schema: Json) -> Json:
    """In the words of 2020-12. Objects say which members they have, since OpenAI rejects others."""
    schema = _with_items(_with_bounds(schema))
    if "object" in _types(schema):
        schema.setdefault("properties", {})
    for name, needed in schema.pop("dependencies", {}).items():
        keyword = "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
        schema[keyword] = {**schema.get(keyword, {}), name: needed}
    return schema


def _with_bounds(schema: Json) -> Json:
    """In draft 4 a bound is exclusive by a word beside it."""
    for exclusive, bound in _BOUNDS.items():
        if isinstance(says := schema.get(exclusive), bool):
            del schema[exclusive]
            if says and bound in schema:
                schema[exclusive] = schema.pop(bound)
    return schema


_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


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
        found = _merged([found, target])[0] if isinstance(target, dict) else found
    return found


def _target(root: Any, reference: str) -> Any:
    """The schema that a local reference names; None if there is none."""
    return recursion.resolve(root, reference) if reference.startswith("#") else None


def _all_of(
    schema: Any, root: Mapping[str, Any], within: frozenset[str] = frozenset()
) -> Iterator[tuple[Any, Json]]:
    """The conditions of a schema itself, and of each part of its `allOf`; by their reference."""
    if not isinstance(schema, dict):
        yield None, {"not": {}} if schema is False else {}
        return
    reference, own = schema.get("$ref"), _resolved(schema, root, within)
    parts = own.pop("allOf", ())
    yield reference, own
    for part in parts:
        yield from _all_of(part, root, within | {str(reference)})


def _merged(parts: Iterable[Json]) -> tuple[Json, list[str]]:
    """The conditions of several schemas in one, and why it does not have all of them."""
    together: Json = {}
    conflicts = []
    for part in parts:
        for keyword, value in part.items():
            known: Any = together.setdefault(keyword, value)
            if keyword == "required":
                together[keyword] = list(dict.fromkeys([*known, *value]))
            elif keyword == "properties":
                together[keyword] = _both(known, value)
            elif known != value and keyword not in _SAYS_NOTHING:
                conflicts.append(f"“allOf” has more than one “{keyword}”: the first is told.")
    return together, conflicts


def _both(properties: Json, others: Json) -> Json:
    found = {**others, **properties}
    for name in properties.keys() & others.keys():
        if properties[name] != others[name]:
            found[name] = {"allOf": [properties[name], others[name]]}
    return found


# What Gemini's Schema has, and what says nothing about values.
_KEPT = {
    *("description", "enum", "format", "items", "minItems", "maxItems", "properties", "required"),
    *("minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum"),
    *("anyOf", "default", "nullable", "type", "title"),
}
_SAYS_NOTHING = {
    *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions"),
}
_SAID_ABOUT = ("default", "description", "nullable", "title")
_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
# "only 'enum' and 'date-time' are supported for STRING type", in the words of the API.
_FORMATS = {
    "string": {"enum", "date-time"},
    "integer": {"int32", "int64"},
    "number": {"float", "double"},
}
# The API rejects these beside another type ("only allowed for STRING type").
_ONLY_FOR = {
    **dict.fromkeys(("properties", "required", "minProperties", "maxProperties"), ("object",)),
    **dict.fromkeys(("items", "minItems", "maxItems"), ("array",)),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("string",)),
    **dict.fromkeys(("minimum", "maximum"), ("number", "integer")),
    "format": tuple(_FORMATS),
}


def of_gemini(schema: Mapping[str, Any]) -> ReducedSchema:
    """For `parameters` of Gemini's function declarations: its subset of OpenAPI 3.0's schemas."""
    reducer = _GeminiReducer(schema)
    return ReducedSchema(reducer.reduce(schema, "", frozenset()), reducer.losses)


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") == "null" or schema.get("enum", schema.get("const", 0)) in (None, [None])
    )


def _is_of(value: Any, said: str) -> bool:
    kind = _KINDS[type(value)]
    return said in ((kind, "number") if kind == "integer" else (kind,))


def _of_type(schema: Json, said: str) -> Json:
    """The conditions of a schema on values of one type."""
    found = {word: value for word, value in schema.items() if said in _ONLY_FOR.get(word, (said,))}
    found.pop("anyOf", None)
    if values := [one for one in found.pop("enum", ()) if _is_of(one, said)]:
        found["enum"] = values
    return {**found, "type": said}


class _GeminiReducer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.losses: list[Loss] = []

    def reduce(self, schema: Any, path: str, within: frozenset[str]) -> Json:
        if not isinstance(schema, dict) or not schema:
            return self._anything(path)
        parts = list(_all_of(schema, self.root, within))
        references = {reference for reference, _own in parts if isinstance(reference, str)}
        if references & within:
            self._lose(path, "What refers to itself ends here.")
            return {"type": "OBJECT"}
        found, conflicts = _merged(own for _reference, own in parts)
        for why in conflicts:
            self._lose(path, why)
        within |= references
        found = self._flat(found, path)
        for keyword in sorted(found.keys() - _KEPT):
            if keyword not in _SAYS_NOTHING and not keyword.startswith("x-"):
                self._lose(path, f"“{keyword}” is left out.")
        kept = {keyword: value for keyword, value in found.items() if keyword in _KEPT}
        if len(types := _types(kept)) > 1:
            return self._of_types(kept, types, path, within)
        kept = self._within(kept, path, within)
        if self._is_any_of(kept, path):
            return self._any_of(kept, path, within)
        return self._typed(kept, path)

    def _anything(self, path: str) -> Json:
        self._lose(path, "Any value is taken: the model is told of text.")
        return {"type": "STRING"}

    def _flat(self, schema: Json, path: str) -> Json:
        """Without `const` and `oneOf`, and with the types that its values have."""
        if "const" in schema:
            schema["enum"] = [schema.pop("const")]
        if "oneOf" in schema and "anyOf" not in schema:
            self._lose(path, "“oneOf” became “anyOf”.")
            schema["anyOf"] = schema.pop("oneOf")
        values = [one for one in schema.get("enum", ()) if one is not None]
        if values != schema.get("enum", []):
            schema |= {"enum": values, "nullable": True}
        types = _types(schema) or [_KINDS[type(one)] for one in values]
        if "null" in types:
            schema["nullable"] = True
        types = [one for one in dict.fromkeys(types) if one != "null"]
        # Those of which there is a value.
        schema["type"] = [said for said in types if any(_is_of(v, said) for v in values)] or types
        return schema

    def _of_types(self, schema: Json, types: list[str], path: str, within: frozenset[str]) -> Json:
        """A schema of each type, with the conditions that are of it."""
        if "anyOf" in schema:
            self._lose(path, "“anyOf” beside other conditions is left out.")
        about = {name: schema.pop(name) for name in _SAID_ABOUT if name in schema}
        told = [self.reduce(_of_type(schema, one), path, within) for one in types]
        return self._about(told, about, path)

    def _within(self, schema: Json, path: str, within: frozenset[str]) -> Json:
        if isinstance(properties := schema.get("properties"), dict):
            for name in [name for name, one in properties.items() if one is False]:
                self._lose(f"{path}/properties/{escaped(name)}", "It is forbidden: left out.")
            schema["properties"] = {
                name: self.reduce(one, f"{path}/properties/{escaped(name)}", within)
                for name, one in properties.items()
                if one is not False
            }
        if isinstance(items := schema.get("items"), list):
            self._lose(path, "A list of different things: the model is told of the first.")
            items = items[0] if items else {}
        if items is not None:
            schema["items"] = self.reduce(items, f"{path}/items", within)
        self._require_known(schema, path)
        return schema

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

    def _is_any_of(self, schema: Json, path: str) -> bool:
        """Stands alone or not at all: the API takes nothing beside it."""
        if "anyOf" not in schema or not (_types(schema) or self._implied(schema)):
            return "anyOf" in schema
        self._lose(path, "“anyOf” beside other conditions is left out.")
        del schema["anyOf"]
        return False

    def _any_of(self, schema: Json, path: str, within: frozenset[str]) -> Json:
        branches = schema.pop("anyOf")
        about = {name: schema[name] for name in _SAID_ABOUT if name in schema}
        if any(map(_is_null, branches)):
            about["nullable"] = True
        told = [
            self.reduce(one, f"{path}/anyOf/{place}", within)
            for place, one in enumerate(branches)
            if one is not False and not _is_null(one)
        ]
        if not told:
            return self._typed(schema | about, path)
        if "format" in schema:
            self._lose(path, f"The format “{schema['format']}” is left out.")
        return self._about(told, about, path)

    def _about(self, told: list[Json], about: Json, path: str) -> Json:
        """A description of several branches becomes one of each."""
        if len(told) == 1 and "anyOf" not in told[0]:
            return {**told[0], **about}
        for name in sorted(about.keys() - {"description", "nullable"}):
            self._lose(path, f"“{name}” beside “anyOf” is left out.")
        said = about.get("description")
        more = {"nullable": True} if about.get("nullable") else {}
        branches = [one for branch in told for one in branch.get("anyOf", [branch])]
        for one in branches if said else ():
            one["description"] = "\n".join(filter(None, [said, one.get("description")]))
        return {"anyOf": [one | more for one in branches]}

    def _typed(self, schema: Json, path: str) -> Json:
        said = next(iter(_types(schema)), None) or self._implied(schema)
        if said is None:
            return {**schema, **self._anything(path)}
        schema["type"] = said.upper()
        for keyword in [one for one in schema if said not in _ONLY_FOR.get(one, (said,))]:
            self._lose(path, f"“{keyword}” beside the type “{said}” is left out.")
            del schema[keyword]
        if said == "array":
            schema.setdefault("items", {"type": "STRING"})
        if "format" in schema and schema["format"] not in _FORMATS[said]:
            self._lose(path, f"The format “{schema.pop('format')}” is left out.")
        return self._enumerated(schema, path)

    def _enumerated(self, schema: Json, path: str) -> Json:
        """With an `enum` only of a text: "only allowed for STRING type", "cannot be empty"."""
        values = schema.pop("enum", [])
        if schema["type"] != "STRING" or not all(isinstance(one, str) for one in values):
            if values:
                self._lose(path, "“enum” has other values than text, and is left out.")
            return schema
        if "" in values:
            self._lose(path, "The empty text in “enum” is left out.")
        if told := [one for one in values if one]:
            schema["enum"] = told
        return schema

    @staticmethod
    def _implied(schema: Mapping[str, Any]) -> str | None:
        kinds = (_ONLY_FOR[one] for one in _ONLY_FOR if one in schema and one != "format")
        return next((max(one) for one in kinds), None)

    def _lose(self, path: str, why: str) -> None:
        self.losses.append(Loss(path, why))
