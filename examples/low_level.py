"""A unit converter in the low-level style of the SDK.

Nothing is derived here: the schemas are written by hand, the arguments arrive as plain values, and
what the tool returns is exactly what goes over the wire. Compare with calculator.py.
"""

import argparse
from contextlib import suppress
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

# A unit is (factor, offset): value * factor + offset is in the first unit of its kind.
UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "length": {
        "metre": (1, 0),
        "kilometre": (1000, 0),
        "foot": (0.3048, 0),
        "mile": (1609.344, 0),
        "nautical mile": (1852, 0),
    },
    "mass": {"kilogram": (1, 0), "gram": (0.001, 0), "pound": (0.45359237, 0), "tonne": (1000, 0)},
    "temperature": {
        "kelvin": (1, 0),
        "celsius": (1, 273.15),
        "fahrenheit": (5 / 9, 459.67 * 5 / 9),
    },
}
KIND_OF = {unit: kind for kind, units in UNITS.items() for unit in units}

READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
CONVERT = Tool(
    name="convert",
    title="Convert a unit",
    description="Convert a length, a mass or a temperature into another unit of its kind.",
    input_schema={
        "type": "object",
        "properties": {
            "value": {"type": "number", "description": "How many of the first unit."},
            "from": {"type": "string", "enum": list(KIND_OF)},
            "to": {"type": "string", "enum": list(KIND_OF)},
        },
        "required": ["value", "from", "to"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {"value": {"type": "number"}, "unit": {"type": "string"}},
        "required": ["value", "unit"],
        "additionalProperties": False,
    },
    annotations=READ_ONLY,
)
LIST_UNITS = Tool(
    name="list_units",
    title="List the units",
    description="List the units of each kind.",
    input_schema={"type": "object", "additionalProperties": False},
    annotations=READ_ONLY,
)


async def list_tools(
    ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    return ListToolsResult(tools=[CONVERT, LIST_UNITS])


async def call_tool(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "convert":
            return convert(arguments)
        case "list_units":
            return text("\n".join(f"{kind}: {', '.join(units)}" for kind, units in UNITS.items()))
    raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")


def convert(arguments: dict[str, Any]) -> CallToolResult:
    # The low-level server checks nothing: what the schema says is ours to keep.
    match arguments:
        case {"value": bool()}:
            pass
        case {"value": int() | float() as value, "from": str(source), "to": str(target)}:
            return converted(value, source, target)
    return text("convert needs a number in value, and a unit in from and in to.", is_error=True)


def converted(value: float, source: str, target: str) -> CallToolResult:
    for unit in (source, target):
        if unit not in KIND_OF:
            return text(f"There is no unit {unit!r}: ask list_units.", is_error=True)
    kind = KIND_OF[source]
    if KIND_OF[target] != kind:
        return text(
            f"{source} is a {kind}, {target} is a {KIND_OF[target]}: neither becomes the other.",
            is_error=True,
        )

    factor, offset = UNITS[kind][source]
    target_factor, target_offset = UNITS[kind][target]
    result = round((value * factor + offset - target_offset) / target_factor, 9)
    answer = text(f"{value} {source} = {result} {target}")
    answer.structured_content = {"value": result, "unit": target}
    return answer


def text(words: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=is_error)


server = Server(
    "low-level",
    title="Unit converter",
    version="1.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
)


async def serve_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    port = parser.parse_args().http
    if port is None:
        anyio.run(serve_stdio)
    else:
        uvicorn.run(server.streamable_http_app(), port=port)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
