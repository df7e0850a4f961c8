"""The Python SDK 1 and one task, in an environment of its own: … URL TOKEN TOOL ARGUMENTS.

See fastmcp_client.py for what it says and takes.
"""

import asyncio
import json
import sys
import time
from datetime import timedelta
from typing import Any

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

ANSWER = {"name": "Ann", "confirm": True, "interpretation": "snake"}


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def answer(context: Any, params: Any) -> types.ElicitResult:
    say(type="asked", message=params.message)
    return types.ElicitResult(action="accept", content=dict(ANSWER))


async def cancel_when_told(session: ClientSession, task: str) -> None:
    if await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        await session.experimental.cancel_task(task)


async def followed(session: ClientSession, task: str) -> tuple[str, str]:
    """As its documentation does it."""
    fetching = None
    async for seen in session.experimental.poll_task(task):
        say(type="status", status=seen.status, message=seen.statusMessage)
        if seen.status == "input_required" and fetching is None:
            # What is asked comes on the stream of the result.
            fetching = asyncio.create_task(fetched(session, task))
    if seen.status == "cancelled":
        return "cancelled", seen.statusMessage or ""
    result = await (fetching or fetched(session, task))
    text = "".join(getattr(item, "text", "") for item in result.content)
    return seen.status, text


async def fetched(session: ClientSession, task: str) -> types.CallToolResult:
    return await session.experimental.get_task_result(task, types.CallToolResult)


async def main(url: str, token: str, tool: str, arguments: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    patience = timedelta(seconds=300)
    async with (
        streamablehttp_client(url, headers=headers) as (read, write, _),
        ClientSession(read, write, elicitation_callback=answer) as session,
    ):
        await session.initialize()
        await session.list_tools()
        session._session_read_timeout_seconds = patience
        began = time.monotonic()
        made = await session.experimental.call_tool_as_task(tool, json.loads(arguments))
        listening = asyncio.create_task(cancel_when_told(session, made.task.taskId))
        status, text = await followed(session, made.task.taskId)
        say(type="ended", status=status, text=text, seconds=time.monotonic() - began)
        listening.cancel()


asyncio.run(main(*sys.argv[1:]))
