"""A server on the Python SDK 1 whose tools run as tasks, in an environment of its own: … PORT."""

import sys
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

NAME: Any = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}}
AS_TASK = types.ToolExecution(taskSupport="required")
server: Server[Any, Any] = Server("tasks")
server.experimental.enable_tasks()


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(name="count", inputSchema=SECONDS, execution=AS_TASK),
        types.Tool(name="greet", inputSchema={"type": "object"}, execution=AS_TASK),
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    async def count(task: ServerTaskContext) -> types.CallToolResult:
        for step in range(1, 5):
            await task.update_status(f"Step {step}")
            await anyio.sleep(arguments["seconds"] / 4)
        return said("counted")

    async def greet(task: ServerTaskContext) -> types.CallToolResult:
        answer = await task.elicit("What is your name?", NAME)
        return said(f"Hello, {(answer.content or {})['name']}!")

    work = count if name == "count" else greet
    return await server.request_context.experimental.run_task(work)


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def main() -> None:
    manager = StreamableHTTPSessionManager(server)
    endpoint = Mount("/", app=manager.handle_request)
    app = Starlette(routes=[endpoint], lifespan=lambda _app: manager.run())
    uvicorn.run(app, port=int(sys.argv[1]))


main()
