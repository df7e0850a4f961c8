"""FastMCP's client with its tasks, in an environment of its own: fastmcp_client.py URL TOKEN.

Driven as serve.mjs is: a line of JSON on stdin is a request, each line on stdout an answer.
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

# To import it is to declare tasks.
from fastmcp_tasks import call_tool_task
from mcp_types import Implementation

running: dict[int, asyncio.Task[None]] = {}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def answered(client: Any, request: dict[str, Any]) -> dict[str, Any]:
    if "method" in request:
        asking = {
            "resources/list": client.list_resources_mcp,
            "resources/templates/list": client.list_resource_templates_mcp,
            "resources/read": client.read_resource_mcp,
            "prompts/list": client.list_prompts_mcp,
            "prompts/get": client.get_prompt_mcp,
        }
        return {"result": plain(await asking[request["method"]](**request["params"]))}
    if "name" not in request:
        return {"tools": [plain(tool) for tool in await client.list_tools()]}
    if request.get("task"):
        task = await call_tool_task(client, request["name"], request["arguments"])
        say({"asked": plain(await task.status())})
        return {"result": {"structuredContent": (await task.result()).structured_content}}
    number = request["id"]

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        step = {"progress": progress, "total": total, "message": message}
        say({"id": number, "progress": step})

    result = await client.call_tool_mcp(
        request["name"],
        request["arguments"],
        progress_handler=hear if request["progress"] else None,
    )
    return {"result": plain(result)}


async def answer(client: Any, request: dict[str, Any]) -> None:
    try:
        say({"id": request["id"], **await answered(client, request)})
    except Exception as error:
        code = getattr(error, "code", None) or getattr(
            getattr(error, "error", None), "code", type(error).__name__
        )
        say({"id": request["id"], "error": {"code": code, "message": str(error)}})
    finally:
        running.pop(request["id"], None)


async def main(url: str, token: str) -> None:
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    info = Implementation(name="flows", version="1")
    async with Client(transport, client_info=info) as client:
        can = list(plain(client.server_capabilities))
        say({"revision": str(client.protocol_version), "can": can})
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            request = json.loads(line)
            if "abort" in request:
                if task := running.get(request["abort"]):
                    task.cancel()
            else:
                running[request["id"]] = loop.create_task(answer(client, request))


asyncio.run(main(*sys.argv[1:3]))
