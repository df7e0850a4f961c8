"""A server of FastMCP whose tools run as tasks, in an environment of its own: … PORT."""

import asyncio
import sys
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

NAME: Any = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
server = FastMCP("tasks")
server.add_extension(TasksExtension())


@server.tool(task=True)
async def count(seconds: float, ctx: Context) -> str:
    """Goes in four steps."""
    try:
        for step in range(1, 5):
            await ctx.report_progress(step, 4, f"Step {step}")
            await asyncio.sleep(seconds / 4)
    except asyncio.CancelledError:
        sys.stdout.write("count was cancelled\n")
        sys.stdout.flush()
        raise
    return "counted"


@server.tool(task=True, output_schema=None)
async def greet(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name first."""
    answers: Any = ctx.input_responses
    if not answers:
        form = ElicitRequestFormParams(message="What is your name?", requested_schema=NAME)
        return InputRequiredResult(input_requests={"name": ElicitRequest(params=form)})
    return f"Hello, {answers['name'].content['name']}!"


server.run(transport="http", port=int(sys.argv[1]), show_banner=False)
