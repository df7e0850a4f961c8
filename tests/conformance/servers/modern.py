"""A server on the Python SDK 2, which speaks 2026-07-28: `… --http PORT`."""

import argparse
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from tests.conformance.servers import offer, questions, shelf, tasking

CHANGED: dict[str, Any] = {"tools": ToolsListChanged, "prompts": PromptsListChanged}


async def list_tools(
    ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    return ListToolsResult.model_validate({"tools": [*offer.tools(), *tasking.tools()]})


async def call_tool(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    if params.name in tasking.ARGUMENTS:
        # Also a task, which the SDK has no class for.
        answer: CallToolResult | InputRequiredResult = await tasking.call(ctx, params)
        return answer
    tool = offer.TOOLS[params.name]
    if "asks" in tool:
        return questions.ask(ctx, params)
    for words in tool.get("logs", ()):
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    for step in tool.get("progress", ()):
        await ctx.session.report_progress(step, 100)
        await anyio.sleep(0.05)
    # So long that its agent gets a stream.
    await anyio.sleep(tool.get("lastsSeconds", 0))
    if what := tool.get("changes"):
        await shelf.changes.publish(CHANGED[what]())
    said = {"content": tool["content"], "isError": tool.get("isError", False)}
    return CallToolResult.model_validate(said)


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
