"""A server of earlier revisions, made with the SDK, whose resources change all the time:
python -m tests.upstreams.watched [PORT], on stdio without a port."""

import asyncio
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    EmptyResult,
    ListResourcesResult,
    PaginatedRequestParams,
    Resource,
    SubscribeRequestParams,
)

Context = ServerRequestContext[Any]
EVERY_S = 0.05
_telling: set[asyncio.Task[None]] = set()


async def list_resources(ctx: Context, params: PaginatedRequestParams | None) -> Any:
    return ListResourcesResult(resources=[Resource(uri="clock://now", name="now")])


async def subscribe(ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
    task = asyncio.create_task(_tell(ctx.session, params.uri))
    _telling.add(task)
    task.add_done_callback(_telling.discard)
    return EmptyResult()


async def _tell(session: Any, uri: str) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        await session.send_resource_updated(uri)


server = Server(
    "watched", version="1", on_list_resources=list_resources, on_subscribe_resource=subscribe
)


async def on_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]))
    else:
        anyio.run(on_stdio)
