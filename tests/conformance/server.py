"""What the conformance suite calls by name, as a server behind Countersign: `… --http PORT`."""

import argparse
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp_types import (
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)

from tests.conformance import questions, shelf, tasking

# The smallest of all PNG files, and a WAV file without a sample.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

VOCABULARY: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def resource(name: str, kind: str, words: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=f"test://{name}", mime_type=kind, text=words)
    return EmbeddedResource(type="resource", resource=contents)


ANSWERS: dict[str, list[ContentBlock]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        resource("embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        resource("mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_tool_with_progress": [text("It is done.")],
    "test_error_handling": [text("This tool intentionally returns an error for testing")],
    "json_schema_2020_12_tool": [text("The schema is what matters.")],
    "test_tool_with_logging": [text("It is done.")],
    "test_logging_tool": [text("It is done.")],
    "test_custom_header": [text("It is done.")],
    "test_reconnection": [text("It is done.")],
}
REGION: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


async def list_tools(
    ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    names = (*ANSWERS, *questions.QUESTIONS, *tasking.ARGUMENTS)
    return ListToolsResult(tools=[tool(name) for name in names])


def tool(name: str) -> Tool:
    if name in tasking.ARGUMENTS:
        schema = tasking.schema(name)
    elif name == "test_custom_header":
        schema = REGION
    else:
        schema = VOCABULARY if name.startswith("json_schema") else questions.schema(name)
    return Tool(name=name, description=f"Tool {name} of the suite.", input_schema=schema)


async def call_tool(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    if params.name in tasking.ARGUMENTS:
        # Also a task, which the SDK has no class for.
        answer: CallToolResult | InputRequiredResult = await tasking.call(ctx, params)
        return answer
    if params.name in questions.QUESTIONS:
        return questions.ask(ctx, params)
    if params.name in ("test_tool_with_logging", "test_logging_tool"):
        for words in ("started", "processing data", "completed"):
            await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
            await anyio.sleep(0.05)
    if params.name == "test_tool_with_progress":
        for step in (0, 50, 100):
            await ctx.session.report_progress(step, 100)
            await anyio.sleep(0.05)
    if params.name == "test_reconnection":
        # So long that its agent gets a stream.
        await anyio.sleep(3)
    failed = params.name == "test_error_handling"
    return CallToolResult(content=ANSWERS[params.name], is_error=failed)


server = Server(
    "conformance",
    version="1.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    **shelf.HANDLERS,
)
tasking.serve(server)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", required=True)
    uvicorn.run(server.streamable_http_app(), port=parser.parse_args().http)


if __name__ == "__main__":
    main()
