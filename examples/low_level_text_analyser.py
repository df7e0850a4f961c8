"""The text analyser once more, in the low-level style of the SDK: compare it with text_analyser.py.

The counting is that file's. What its decorators, annotations and models derive is written by hand
here: the schemas, the check of the arguments, and the form of results and errors.
"""

import argparse
import json
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
from examples import text_analyser

TEXT = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100_000,
    "description": "The text to look at.",
}
WHOLE, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def object_of(required: list[str], **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": required}


COUNTS = {
    **dict.fromkeys(["characters", "words", "different_words", "sentences", "paragraphs"], WHOLE),
    "reading_minutes": {**NUMBER, "description": "At 230 words a minute."},
}
READABILITY = {
    "reading_ease": {**NUMBER, "description": "Flesch: 100 is very easy, 0 is very hard."},
    "school_grade": {
        **NUMBER,
        "description": "Flesch-Kincaid: years of school needed.",
    },
    "words_a_sentence": NUMBER,
    "syllables_a_word": NUMBER,
    "verdict": STRING,
}
COMMON_WORD = {
    "word": STRING,
    "times": WHOLE,
    "share": {**NUMBER, "description": "Of all words of the text, 0 to 1."},
}
TOOLS = [
    Tool(
        name="count_words",
        title="Count words",
        description="Count the characters, words, sentences and paragraphs of a text.",
        input_schema=object_of(["text"], text=TEXT),
        output_schema=object_of([*COUNTS], **COUNTS),
        annotations=text_analyser.READ_ONLY,
    ),
    Tool(
        name="measure_readability",
        title="Measure readability",
        description="Say how hard an English text is to read, after Flesch and Kincaid.",
        input_schema=object_of(["text"], text=TEXT),
        output_schema=object_of([*READABILITY], **READABILITY),
        annotations=text_analyser.READ_ONLY,
    ),
    Tool(
        name="most_common_words",
        title="Find the most common words",
        description="List the words that a text uses most, the most common first.",
        input_schema=object_of(
            ["text"],
            text=TEXT,
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 10,
                "description": "How many words to return.",
            },
            shortest={
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "default": 3,
                "description": "Leave out shorter words.",
            },
            with_stop_words={
                "type": "boolean",
                "default": False,
                "description": "Also count “the”, “of”, “and”…",
            },
        ),
        # A result is an object: a list is in its member `result`.
        output_schema=object_of(
            ["result"], result={"type": "array", "items": object_of([*COMMON_WORD], **COMMON_WORD)}
        ),
        annotations=text_analyser.READ_ONLY,
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
            case "count_words":
                counts = text_analyser.count_words(text_in(arguments))
                return answer(counts.model_dump())
            case "measure_readability":
                measured = text_analyser.measure_readability(text_in(arguments))
                return answer(measured.model_dump())
            case "most_common_words":
                return answer({"result": common_words(arguments)})
    except ToolError as error:
        return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
    raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")


def common_words(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    with_stop_words = arguments.get("with_stop_words", False)
    if not isinstance(with_stop_words, bool):
        raise ToolError("with_stop_words must be true or false.")
    found = text_analyser.most_common_words(
        text_in(arguments),
        whole_in(arguments, "limit", 10, most=100),
        whole_in(arguments, "shortest", 3, most=20),
        with_stop_words,
    )
    return [word.model_dump() for word in found]


def text_in(arguments: dict[str, Any]) -> str:
    match arguments:
        case {"text": str(text)} if 1 <= len(text) <= 100_000:
            return text
    raise ToolError("text must be a text of 1 to 100,000 characters.")


def whole_in(arguments: dict[str, Any], name: str, default: int, most: int) -> int:
    value = arguments.get(name, default)
    # To Python, True is an int.
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ToolError(f"{name} must be a whole number from 1 to {most}.")
    return value


def answer(content: dict[str, Any]) -> CallToolResult:
    """Both as an object and, for clients that know no objects, as text."""
    text = json.dumps(content, ensure_ascii=False, indent=2)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


server = Server(
    "low-level-text-analyser",
    title="Text analyser (low-level style)",
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
