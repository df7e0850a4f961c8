"""A calculator: arithmetic with clear errors."""

import argparse
import ast
import math
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

Number = int | float


def rounded(number: Number, digits: int = 0) -> Number:
    # round(5, -10**9) would first work out a number of a billion digits.
    if abs(digits) > 300:
        raise ValueError("at most 300 digits")
    return round(number, digits or None)


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "round": rounded,
    "min": min,
    "max": max,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "radians": math.radians,
    "degrees": math.degrees,
}
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
# About 1,200 digits. Beyond it one short expression could keep the machine busy for hours.
MOST_BITS = 4096

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
server = MCPServer(
    "calculator",
    title="Calculator",
    version="1.0",
    instructions="Use evaluate for anything longer than one sum.",
)


@server.tool(
    title="Evaluate an expression",
    description=(
        "Work out an arithmetic expression. Knows + - * / // % ** and parentheses; pi, e and tau; "
        f"{', '.join(FUNCTIONS)} (angles in radians). Whole numbers are exact."
    ),
    annotations=READ_ONLY,
    structured_output=False,
)
def evaluate(
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="Arithmetic in Python's notation.",
            examples=["2 * (3 + 4) ** 2", "sqrt(2) / sin(pi / 8)"],
        ),
    ],
) -> str:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError) as error:
        raise ToolError(f"{expression!r} is not an arithmetic expression.") from error
    return str(value_of(tree.body))


@server.tool(title="Add two numbers", annotations=READ_ONLY)
def add(
    a: Annotated[float, Field(description="The first number.")],
    b: Annotated[float, Field(description="The number to add to it.")],
) -> float:
    """Add two numbers."""
    return checked(a + b)


@server.tool(title="Divide two numbers", annotations=READ_ONLY)
def divide(
    dividend: Annotated[float, Field(description="The number to divide.")],
    divisor: Annotated[float, Field(description="The number to divide by. Not 0.")],
) -> float:
    """Divide one number by another."""
    if divisor == 0:
        raise ToolError(f"{dividend} cannot be divided by 0.")
    return checked(dividend / divisor)


def value_of(node: ast.expr) -> Number:
    """Only what is matched here is ever executed: anything else in the tree is refused."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return checked(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return apply(OPERATORS[type(op)], value_of(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return power(value_of(left), value_of(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return apply(OPERATORS[type(op)], value_of(left), value_of(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return apply(FUNCTIONS[name], *map(value_of, args))
    raise ToolError(f"{ast.unparse(node)!r} is not something this calculator knows.")


def power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and exponent * base.bit_length() > MOST_BITS and abs(base) > 1:
        raise ToolError(f"{base} ** {exponent} is too large.")
    return apply(operator.pow, base, exponent)


def apply(function: Callable[..., Any], *values: Number) -> Number:
    try:
        return checked(function(*values))
    except ZeroDivisionError as error:
        raise ToolError("Division by 0.") from error
    except OverflowError as error:
        raise ToolError("The result is too large.") from error
    except (TypeError, ValueError) as error:
        name = getattr(function, "__name__", "function")
        given = ", ".join(map(str, values))
        raise ToolError(f"{name}({given}) has no answer: {error}.") from error


def checked(value: Number | complex) -> Number:
    if isinstance(value, complex):
        raise ToolError("The result is not a real number.")
    too_large = value.bit_length() > MOST_BITS if isinstance(value, int) else math.isinf(value)
    if too_large:
        raise ToolError("The result is too large.")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    port = parser.parse_args().http
    if port is None:
        server.run()
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
