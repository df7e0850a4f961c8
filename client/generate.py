"""Writes client/countersign.py, with the OpenAPI document: `python -m client.generate --write`.

First comes transport.py, as it is; then a type for each schema, and a class with a method for each
operation; then commands.py, from its mark on.
"""

from __future__ import annotations

import argparse
import keyword
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

# Its routes are read after Django is ready.
from config.urls import urlpatterns  # noqa: E402
from gateway.rest.v1.document import document  # noqa: E402

Json = dict[str, Any]
HERE = Path(__file__).parent
CLIENT = HERE / "countersign.py"
COMMANDS = "# Commands\n"
# With them the routes' converters are known.
assert urlpatterns
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
JSON = "application/json"
# Of the methods' first words, where no verb ends the address.
VERBS = {"get": "get", "post": "create", "patch": "update", "put": "set", "delete": "delete"}
WIDTH = 100


def write() -> str:
    made = document()
    types = "\n\n\n".join(_types(made["components"]["schemas"]))
    methods = "\n\n".join(_method(*one) for one in _operations(made))
    head = '''class Countersign(Transport):
    """The API of one installation; a method for each operation."""
'''
    commands = (HERE / "commands.py").read_text().partition(COMMANDS)[2]
    transport = (HERE / "transport.py").read_text()
    return _formatted("\n\n\n".join([transport, types, f"{head}\n{methods}", commands]))


def _formatted(code: str) -> str:
    """As `ruff format` leaves it, which all Python of the house passes."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(CLIENT), "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=True)  # noqa: S603 ours
    return done.stdout


def type_name(schema: str) -> str:
    """Server for ServerAnswer, ServerBody for ServerBodyRequest, ServerChange for
    PatchedServerChangeRequest, LimitChange for PatchedLimitBodyRequest."""
    if schema.startswith("Patched"):
        return re.sub(r"(Body|Change)?Request$", "Change", schema.removeprefix("Patched"))
    if schema.endswith("Request"):
        return schema.removesuffix("Request")
    return re.sub(r"(Answer|Body)$", "", schema)


def type_of(schema: Json) -> str:
    """The type as Python writes it."""
    if "$ref" in schema:
        return type_name(schema["$ref"].rpartition("/")[2])
    for choices in ("oneOf", "anyOf", "allOf"):
        if choices in schema and "properties" not in schema:
            return " | ".join(dict.fromkeys(type_of(one) for one in schema[choices]))
    if "enum" in schema:
        return _literal(schema["enum"])
    kinds = schema.get("type", "")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " | ".join(_of_kind(kind, schema) for kind in kinds)


def _of_kind(kind: str, schema: Json) -> str:
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, dict) and values else 'Any'}]"
    return PLAIN.get(kind, "Any")


def _literal(values: list[Any]) -> str:
    texts = ", ".join(f'"{one}"' for one in values if one is not None)
    return f"Literal[{texts}]" + (" | None" if None in values else "")


def _types(schemas: dict[str, Json]) -> Iterator[str]:
    for name, schema in schemas.items():
        # Pages are read by the client, and changes without members are sent by it.
        if not name.endswith("Page") and name not in ("MembersRequest", "ProblemAnswer"):
            yield _type(type_name(name), schema)


def _type(name: str, schema: Json) -> str:
    """With `fields`, answers have only some of their members; the client never sends it."""
    required: list[str] = schema.get("required") or schema.get("x-required-without-fields", [])
    members = {
        key: type_of(value) if key in required else f"NotRequired[{type_of(value)}]"
        for key, value in schema.get("properties", {}).items()
    }
    # Its types are of no other schema: those are read as they are written.
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in members):
        lines = "\n".join(f"    {key}: {value}" for key, value in members.items()) or "    pass"
        return f"class {name}(TypedDict):\n{lines}"
    lines = "\n".join(f'        "{key}": {value},' for key, value in members.items())
    return f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}\n    }},\n)'


def _operations(made: Json) -> Iterator[tuple[str, str, Json, bool]]:
    """The address, the method, the operation, and whether its row has a version."""
    for path, operations in made["paths"].items():
        versioned = any(_takes(one, "If-Match") for one in operations.values())
        for method, operation in operations.items():
            if _succeeds(operation):
                yield path, method, operation, versioned


def _succeeds(operation: Json) -> bool:
    """Not those that answer every token 403."""
    return any(status.startswith("2") for status in operation["responses"])


def _takes(operation: Json, header: str) -> bool:
    return any(one["name"] == header for one in operation.get("parameters", ()))


def method_name(path: str, method: str, operation: Json) -> str:
    named = re.sub(r"(?<!^)(?=[A-Z])", "_", operation["operationId"].removeprefix(method)).lower()
    last = path.rpartition("/")[2]
    if method == "post" and named.startswith(f"{last}_"):
        return named
    base = re.sub(r"^one_|_(list|listing|detail)$", "", named)
    if _is_list(operation):
        return f"list_{_plural(base)}"
    return f"{VERBS[method]}_{_singular(base) if method == 'post' else base}"


def _plural(name: str) -> str:
    return name if name.endswith("s") else f"{name}s"


def _singular(name: str) -> str:
    return re.sub(r"ies$", "y", name) if name.endswith("ies") else name.removesuffix("s")


def _is_list(operation: Json) -> bool:
    return _takes(operation, "cursor")


def _method(path: str, method: str, operation: Json, versioned: bool) -> str:
    name = method_name(path, method, operation)
    head = ", ".join(_arguments(path, operation))
    lines = [f"    def {name}({head}) -> {_returns(operation, method, versioned)}:"]
    if said := operation.get("description", ""):
        lines.append(f'        """{_wrapped(said)}"""')
    return "\n".join([*lines, *_body(path, method, operation, versioned)])


def _wrapped(text: str) -> str:
    """Within the width of a line, at the indent of a method's docstring."""
    first, *rest = textwrap.wrap(" ".join(text.split()), WIDTH - 14)
    return "\n".join([first, *(f"        {line}" for line in rest)])


def _arguments(path: str, operation: Json) -> Iterator[str]:
    """Places of the address first, in its order: the document has them by name."""
    yield "self"
    given = operation.get("parameters", [])
    places = {one["name"]: one for one in given if one["in"] == "path"}
    for name in re.findall(r"{(\w+)}", path):
        yield f"{_name(name)}: {type_of(places[name]['schema'])}"
    if body := _body_type(operation):
        yield f"body: {body}"
    if options := [one for one in given if _is_option(one)]:
        yield "*"
        # Those without a default first.
        for one in sorted(options, key=lambda one: not one.get("required")):
            yield _option(one)


def _is_option(one: Json) -> bool:
    if one["in"] == "header":
        return True
    return one["in"] == "query" and one["name"] not in ("cursor", "fields", "limit")


def _option(one: Json) -> str:
    match one["name"]:
        case "If-Match":
            return "etag: str"
        case "Idempotency-Key":
            return 'idempotency_key: str = ""'
    kind = type_of(one["schema"])
    return f"{_name(one['name'])}: {kind}" + ("" if one.get("required") else " | None = None")


def _name(text: str) -> str:
    return f"{text}_" if keyword.iskeyword(text) else text


def _body_type(operation: Json) -> str:
    """Without the members of a body that has none."""
    content = operation.get("requestBody", {}).get("content", {})
    if JSON not in content:
        return ""
    kind = type_of(content[JSON]["schema"])
    return "" if kind == "Members" else kind


def _answer(operation: Json) -> str:
    """The type of success; "" for none, bytes for a file."""
    found = {s: one for s, one in operation["responses"].items() if s.startswith("2")}
    kinds = [one.get("content", {}) for one in found.values()]
    shown: Json = next((one for one in kinds if one), {})
    if not shown:
        return ""
    if JSON not in shown:
        return "bytes"
    kind = type_of(shown[JSON]["schema"])
    return f"{kind} | None" if len(kinds) > 1 else kind


def _row_type(operation: Json) -> str:
    """Of a list: of its rows."""
    page = _answer(operation)
    return page.removesuffix("Page")


def _returns(operation: Json, method: str, versioned: bool) -> str:
    kind = _answer(operation)
    if _is_list(operation):
        return f"Iterator[{_row_type(operation)}]"
    if versioned and kind and method != "post":
        return f"Versioned[{kind}]"
    return kind or "None"


def _body(path: str, method: str, operation: Json, versioned: bool) -> Iterator[str]:
    there = re.sub(r"{(\w+)}", lambda found: "{_place(" + _name(found[1]) + ")}", path)
    there = f'f"{there}"' if "{" in there else f'"{there}"'
    query = ", ".join(
        f'"{one["name"]}": {_name(one["name"])}'
        for one in operation.get("parameters", [])
        if one["in"] == "query" and _is_option(one)
    )
    if _is_list(operation):
        yield f"        return self._pages({there}, {{{query}}})"
        return
    sent = f'self.send("{method.upper()}", {there}{_sent(operation, query)})'
    kind = _returns(operation, method, versioned)
    if kind == "None":
        yield f"        {sent}"
    elif kind.startswith("Versioned"):
        yield f"        reply = {sent}"
        yield '        return Versioned(reply.json(), reply.headers.get("ETag", ""))'
    elif kind == "bytes":
        yield f"        return {sent}.body"
    else:
        yield f"        found: {kind} = {sent}.json()"
        yield "        return found"


def _sent(operation: Json, query: str) -> str:
    parts = [f"query={{{query}}}"] if query else []
    if JSON in operation.get("requestBody", {}).get("content", {}):
        parts.append("body=body" if _body_type(operation) else "body={}")
    if _takes(operation, "Idempotency-Key"):
        parts.append("key=idempotency_key")
    if _takes(operation, "If-Match"):
        parts.append("etag=etag")
    return "".join(f", {one}" for one in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    CLIENT.write_text(write())


if __name__ == "__main__":
    main()
