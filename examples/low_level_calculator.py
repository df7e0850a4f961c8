"""The calculator once more, in the low-level style of the SDK: compare it with calculator.py.

The arithmetic is that file's. What its decorators and annotations derive is written by hand here:
the schemas, the check of the arguments, and the form of results and errors.
"""

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver.exceptions import ToolError
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
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from examples import calculator

NUMBER = {
    "type": "object",
    "properties": {"result": {"type": "number"}},
    "required": ["result"],
}
TOOLS = [
    Tool(
        name="evaluate",
        title="Evaluate an expression",
        description=(
            "Work out an arithmetic expression. Knows + - * / // % ** and parentheses; pi, e and "
            f"tau; {', '.join(calculator.FUNCTIONS)} (angles in radians). Whole numbers are exact."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "description": "Arithmetic in Python's notation.",
                    "examples": ["2 * (3 + 4) ** 2", "sqrt(2) / sin(pi / 8)"],
                }
            },
            "required": ["expression"],
        },
        annotations=calculator.READ_ONLY,
    ),
    Tool(
        name="add",
        title="Add two numbers",
        description="Add two numbers.",
        input_schema={
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number."},
                "b": {"type": "number", "description": "The number to add to it."},
            },
            "required": ["a", "b"],
        },
        output_schema=NUMBER,
        annotations=calculator.READ_ONLY,
    ),
    Tool(
        name="divide",
        title="Divide two numbers",
        description="Divide one number by another.",
        input_schema={
            "type": "object",
            "properties": {
                "dividend": {"type": "number", "description": "The number to divide."},
                "divisor": {"type": "number", "description": "The number to divide by. Not 0."},
            },
            "required": ["dividend", "divisor"],
        },
        output_schema=NUMBER,
        annotations=calculator.READ_ONLY,
    ),
]


async def list_tools(
    ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def call_tool(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult:
    arguments = params.arguments or {}
    try:
        match params.name:
            case "evaluate":
                return text(calculator.evaluate(expression_in(arguments)))
            case "add":
                return number(calculator.add(number_in(arguments, "a"), number_in(arguments, "b")))
            case "divide":
                of, by = number_in(arguments, "dividend"), number_in(arguments, "divisor")
                return number(calculator.divide(of, by))
    except ToolError as error:
        return text(str(error), is_error=True)
    raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")


def expression_in(arguments: dict[str, Any]) -> str:
    match arguments:
        case {"expression": str(expression)} if 1 <= len(expression) <= 200:
            return expression
    raise ToolError("expression must be a text of 1 to 200 characters.")


def number_in(arguments: dict[str, Any], name: str) -> float:
    value = arguments.get(name)
    # To Python, True is an int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"{name} must be a number.")
    return float(value)


def number(value: float) -> CallToolResult:
    answer = text(str(value))
    answer.structured_content = {"result": value}
    return answer


def text(words: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=is_error)


server = Server(
    "low-level-calculator",
    title="Calculator (low-level style)",
    version="1.0",
    instructions="Use evaluate for anything longer than one sum.",
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
