"""A toolset's tools in the forms that models' APIs take, with what each form cannot say."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from registry.models import Separator
from registry.publishing import agent_names
from registry.publishing.published_tools import CALL, PublishedToolset
from registry.schemas.argument_names import is_name_for_anthropic, is_name_for_gemini
from registry.schemas.subsets import (
    Loss,
    ReducedSchema,
    escaped,
    of_functions,
    of_gemini,
    with_names,
)

Json = dict[str, Any]

_is_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
LONGEST_DESCRIPTION = 1024
# In one request of OpenAI's and of Gemini's.
MOST_TOOLS = 128


class NamedTool(NamedTuple):
    """`definition` as MCP has it; `name` is how the model calls it."""

    name: str
    definition: Json

    @property
    def description(self) -> str:
        return str(self.definition.get("description") or self.definition.get("title") or "")


@dataclass(frozen=True, slots=True)
class ToolList:
    format: str
    tools: list[Json]
    # Of each: the tool's name or "", where in its schema of arguments, and what is lost.
    losses: list[dict[str, str]]

    @property
    def digest(self) -> str:
        """Changes with the tools, and with nothing else."""
        written = orjson.dumps([self.format, self.tools], option=orjson.OPT_SORT_KEYS)
        return f"sha256:{hashlib.sha256(written).hexdigest()}"

    def plain(self, toolset: str) -> Json:
        return {
            "toolset": toolset,
            "format": self.format,
            "digest": self.digest,
            "tools": self.tools,
            "losses": self.losses,
        }


class WrittenTool(NamedTuple):
    """`tool` is None where the form has no way to say it."""

    tool: Json | None
    losses: list[Loss]


def _mcp(tool: NamedTool) -> WrittenTool:
    return WrittenTool(tool.definition, [])


def _json_schema(tool: NamedTool) -> WrittenTool:
    about = {"title": tool.name, "description": tool.description}
    schema = tool.definition["inputSchema"]
    dialect = schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")
    return WrittenTool({"$schema": dialect, **schema, **about}, [])


def _openai(tool: NamedTool) -> WrittenTool:
    reduced, about = _reduced(tool, of_functions), tool.description
    losses = list(reduced.losses)
    if why := _unwritable(reduced.schema):
        return WrittenTool(None, [Loss("", why)])
    if len(about) > LONGEST_DESCRIPTION:
        about = about[: LONGEST_DESCRIPTION - 1] + "…"
        losses.append(Loss("", f"The description ends after {len(about)} characters."))
    function = {"name": tool.name, "description": about, "parameters": reduced.schema}
    return WrittenTool({"type": "function", "function": function}, losses)


def _anthropic(tool: NamedTool) -> WrittenTool:
    reduced = with_names(_reduced(tool, of_functions), is_name_for_anthropic)
    if why := _unwritable(reduced.schema):
        return WrittenTool(None, [Loss("", why)])
    written = {"name": tool.name, "description": tool.description, "input_schema": reduced.schema}
    return WrittenTool(written, reduced.losses)


def _gemini(tool: NamedTool) -> WrittenTool:
    reduced = with_names(_reduced(tool, of_gemini), is_name_for_gemini)
    written: Json = {"name": tool.name, "description": tool.description}
    if reduced.schema.get("properties"):
        written["parameters"] = reduced.schema
    return WrittenTool(written, reduced.losses)


def _unwritable(schema: Json) -> str:
    """Why the schema is none of 2020-12, even converted; "" if it is one."""
    try:
        jsonschema_rs.Draft202012Validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return "Its schema is not valid in JSON Schema 2020-12: the tool is left out."
    return ""


def _reduced(tool: NamedTool, reduce: Callable[[Json], ReducedSchema]) -> ReducedSchema:
    return reduce(tool.definition["inputSchema"])


FORMATS: dict[str, Callable[[NamedTool], WrittenTool]] = {
    "mcp": _mcp,
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "json-schema": _json_schema,
}


_NAMES = {
    "openai": _is_name,
    "anthropic": _is_name,
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}").fullmatch,
}


def tool_list(toolset: PublishedToolset, form: str) -> ToolList:
    """The tools that agents of the toolset call, in their order. `form` is one of FORMATS."""
    write = FORMATS[form]
    tools, losses = [], []
    for name, definition in _definitions(toolset):
        called = name if form == "mcp" else _callable_name(toolset, name)
        written = write(NamedTool(called, definition))
        if form in _NAMES and not _NAMES[form](called):
            why = "The API rejects its name: the tool is left out. Give it another in the toolset."
            written = WrittenTool(None, [Loss("", why)])
        tools += [] if written.tool is None else [written.tool]
        lost = [*_rounded(definition["inputSchema"], ""), *written.losses]
        losses += [{"tool": called, "path": path, "why": why} for path, why in lost]
    if form in ("openai", "gemini") and len(tools) > MOST_TOOLS:
        why = f"{len(tools)} tools; a request takes {MOST_TOOLS}. Make a smaller toolset."
        losses.insert(0, {"tool": "", "path": "", "why": why})
    if form == "gemini":
        tools = [{"functionDeclarations": tools}] if tools else []
    return ToolList(form, tools, losses)


def _rounded(schema: Any, path: str) -> Iterator[Loss]:
    """Whole numbers that were too long to be kept exactly."""
    if isinstance(schema, float) and abs(schema) >= 2**63:
        yield Loss(path, f"A number beyond 64 bits is rounded: {schema:g}.")
    inner = schema.items() if isinstance(schema, dict) else ()
    for name, value in enumerate(schema) if isinstance(schema, list) else inner:
        yield from _rounded(value, f"{path}/{escaped(str(name))}")


def _definitions(toolset: PublishedToolset) -> Iterator[tuple[str, Json]]:
    for name, tool in toolset.by_exposed.items():
        if tool.method == CALL:
            yield name, toolset.definition_for(name, tool)


def _callable_name(toolset: PublishedToolset, name: str) -> str:
    """A name that models' APIs take, and the toolset too."""
    if _is_name(name):
        return name
    plain = agent_names.public_name(name, Separator.UNDERSCORE)
    found = toolset.by_exposed.find(plain)
    return plain if found is not None and found is toolset.by_exposed.find(name) else name
