"""FastMCP's client and one task, in an environment of its own: … URL TOKEN TOOL ARGUMENTS.

As every client here it says what it sees on stdout, a line of JSON each, and cancels the task when
a line comes on stdin.
"""

import asyncio
import json
import sys
import time
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import ToolTask, call_tool_task
from fastmcp_tasks import client as polling


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


# What its own loop reads of the task while it waits is all that there is to see.
send_get = polling._send_get


async def seen_get(*given: Any) -> Any:
    seen = await send_get(*given)
    say(type="status", status=seen.status, message=seen.status_message)
    return seen


polling._send_get = seen_get


async def answer(message: str, *_: Any) -> dict[str, Any]:
    say(type="asked", message=message)
    return {"name": "Ann", "confirm": True, "interpretation": "snake"}


async def cancel_when_told(task: ToolTask) -> None:
    if await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        await task.cancel()


async def main(url: str, token: str, tool: str, arguments: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = StreamableHttpTransport(url, headers=headers)
    async with Client(transport, elicitation_handler=answer) as client:
        await client.list_tools()
        began = time.monotonic()
        task = await call_tool_task(client, tool, json.loads(arguments), raise_on_error=False)
        listening = asyncio.create_task(cancel_when_told(task))
        try:
            result = await task.result()
            text = "".join(getattr(item, "text", "") for item in result.content)
            status = "failed" if result.is_error else "completed"
        except Exception as error:
            text, status = str(error), "failed"
        seconds = time.monotonic() - began
        say(type="ended", status=status, text=text, seconds=seconds)
        listening.cancel()


asyncio.run(main(*sys.argv[1:]))
