"""A condition against the schema of the one tool that its rule names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cel_expr_python import cel

from core.english import gettext as _
from policies.condition_functions import FUNCTIONS
from policies.conditions import CONTEXT, BadCondition, compile_with
from registry.models import Tool

_NAME = re.compile(r"[A-Za-z_]\w*")
_PATTERN = re.compile(r"[*?\[]")
_HAS = re.compile(r"\bhas\(\s*args((?:\.\w+)+)\s*\)")
_TYPES = {"string": cel.Type.STRING, "boolean": cel.Type.BOOL, "integer": cel.Type.INT}
_DEEPEST = 5

Fields = dict[str, cel.Type | None]


def schema_of(server: str, tool: str) -> dict[str, Any] | None:
    """The schema of the tool that these patterns name, if they name a single existing one."""
    if _PATTERN.search(server) or _PATTERN.search(tool):
        return None
    found = Tool.objects.filter(server__slug=server, name=tool).select_related("latest").first()
    if found is None or found.latest is None:
        return None
    schema = found.latest.content.get("inputSchema")
    return schema if isinstance(schema, dict) else None


def check(text: str, schema: dict[str, Any]) -> None:
    """Raises BadCondition for arguments that the tool does not have, or has with another type."""
    fields = dict(_fields("args", schema, _DEEPEST))
    if len(fields) < 2:
        return
    # A whole whose parts are known is left out, or any part of it would be right.
    parts = {name: kind for name, kind in fields.items() if kind is not None}
    variables = {name: kind for name, kind in CONTEXT.items() if name != "args"}
    environment = cel.NewEnv(variables={**variables, **parts}, functions=FUNCTIONS)
    try:
        compile_with(_without_has(text, fields), environment, [*variables, *parts])
    except BadCondition as error:
        wholes = [name for name, kind in fields.items() if kind is None]
        # Whoever takes a whole as such (`args["x"]`, `size(args)`) is not looked after.
        if not any(f"undeclared reference to '{name}'" in str(error.__cause__) for name in wholes):
            raise


def _without_has(text: str, fields: Fields) -> str:
    """`has(args.x)` wants the whole that x is part of: looked at here, and true from then on."""

    def known(found: re.Match[str]) -> str:
        if f"args{found[1]}" not in fields:
            said = _("Column %(column)d: the tool has no argument %(name)s.")
            raise BadCondition(said % {"column": found.start() + 1, "name": found[1][1:]})
        return "true".ljust(len(found[0]))

    return _HAS.sub(known, text)


def _fields(path: str, schema: Any, depth: int) -> Iterator[tuple[str, cel.Type | None]]:
    """Paths and their types; None for a whole whose parts follow."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not (isinstance(properties, dict) and properties and depth):
        yield path, _type(schema)
        return
    yield path, None
    for name, member in properties.items():
        if _NAME.fullmatch(name):
            yield from _fields(f"{path}.{name}", member, depth - 1)


def _type(schema: Any) -> cel.Type:
    """Numbers may come as either kind, references lead anywhere: those are left to the call."""
    if not isinstance(schema, dict):
        return cel.Type.DYN
    kind = schema.get("type")
    if kind == "array":
        return cel.Type.List(_type(schema.get("items")))
    return _TYPES.get(kind, cel.Type.DYN) if isinstance(kind, str) else cel.Type.DYN
