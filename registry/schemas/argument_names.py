"""Names of arguments that some provider of models rejects, and the names that stand for them.

A model is given the name that stands for an argument, and a call by it reaches the argument.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from core import strict_json

Json = dict[str, Any]
IsName = Callable[[str], object]

# Of the arguments themselves. Members within them may have any name.
# Sources: "tools.0.custom.input_schema.properties: Property keys should match pattern …" of
# Anthropic's API; `parameters` of Gemini's FunctionDeclaration.
is_name_for_anthropic = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
is_name_for_gemini = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}").fullmatch

# So much of the name stays readable.
_KEPT, _DIGITS = 40, 8


class RenamedArgument(NamedTuple):
    name: str
    stand_in: str


def stand_in(name: str) -> str:
    """The same for a name in every list. Every provider takes it."""
    readable = re.sub(r"[^a-zA-Z0-9]+", "_", name)[:_KEPT].strip("_")
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return "_".join(filter(None, ["arg", readable, digest]))


def stand_ins(names: set[str]) -> dict[str, str]:
    """The arguments' names by what may stand for them."""
    found = {stand_in(name): name for name in names if not is_name_for_gemini(name)}
    return {other: name for other, name in found.items() if other not in names}


def renamed(schema: Json, is_name: IsName) -> tuple[Json, list[RenamedArgument]]:
    """The schema of arguments with names that a provider takes, and which were renamed."""
    properties = schema.get("properties", {})
    others = {name: other for other, name in stand_ins(set(properties)).items()}
    found = [RenamedArgument(*pair) for pair in others.items() if not is_name(pair[0])]
    if not found:
        return schema, []
    called = dict(found)
    told = {called.get(n, n): _named(n, one, n in called) for n, one in properties.items()}
    changed = {**schema, "properties": told}
    if "required" in schema:
        changed["required"] = [called.get(name, name) for name in schema["required"]]
    return changed, found


def _named(name: str, schema: Any, is_renamed: bool) -> Any:
    """Its description begins with the name that it has lost."""
    if not is_renamed or schema is False:
        return schema
    schema = {} if schema is True else schema
    said = schema.get("description")
    return {**schema, "description": f"{name}: {said}" if said else name}


def restored(arguments: bytes, parsed: Any, names: Mapping[str, str]) -> tuple[bytes, Any]:
    """The arguments by their own names; their values are byte for byte as they were written."""
    if not isinstance(parsed, dict):
        return arguments, parsed
    own = {other: name for other, name in names.items() if other in parsed and name not in parsed}
    if not own:
        return arguments, parsed
    text = arguments.decode()
    members = [
        orjson.dumps(own.get(name, name)) + b":" + strict_json.one_line(text[slice(*where)])
        for name, where in strict_json.spans(text).items()
    ]
    return b"{" + b",".join(members) + b"}", {own.get(n, n): v for n, v in parsed.items()}
