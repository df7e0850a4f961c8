"""A server on the Python SDK 1, which speaks 2025-06-18 and 2025-11-25: `… --http PORT`.

It runs in an environment of its own, where that SDK is.
"""

import argparse
import json
from typing import Any

import anyio
import uvicorn
from mcp import McpError, types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import ServerMessageMetadata
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.conformance.servers import offer

ANSWER: dict[str, type[types.Result]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}
RETRY_MS = 500


class SubscribedServer(Server[Any, Any]):
    """That resources can be subscribed to is not said by the SDK."""

    def get_capabilities(self, *args: Any) -> types.ServerCapabilities:
        told = super().get_capabilities(*args)
        told.resources = types.ResourcesCapability(subscribe=True, listChanged=False)
        return told


server = SubscribedServer("conformance", version="1.0")


async def list_tools(request: types.ListToolsRequest) -> types.ServerResult:
    return said(types.ListToolsResult, tools=offer.tools())


async def call_tool(request: types.CallToolRequest) -> types.ServerResult:
    tool, ctx = offer.TOOLS[request.params.name], server.request_context
    content = tool.get("content") or await answers(request.params)
    for words in tool.get("logs", ()):
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    for step in tool.get("progress", ()):
        await report(step)
        await anyio.sleep(0.05)
    if "lastsSeconds" in tool and ctx.close_sse_stream:
        # Its client has to come back for the answer.
        await ctx.close_sse_stream()
        await anyio.sleep(tool["lastsSeconds"])
    return said(types.CallToolResult, content=content, isError=tool.get("isError", False))


async def report(step: float) -> None:
    ctx = server.request_context
    if ctx.meta and ctx.meta.progressToken is not None:
        await ctx.session.send_progress_notification(
            ctx.meta.progressToken, step, total=100, related_request_id=str(ctx.request_id)
        )


async def answers(params: types.CallToolRequestParams) -> list[dict[str, Any]]:
    """To all rounds of what the tool asks, one request after the other."""
    got = {}
    for at in range(len(offer.TOOLS[params.name]["asks"])):
        for key, request in offer.asked(params.name, at, params.arguments or {}).items():
            got[key] = await ask(request)
    return [{"type": "text", "text": f"state-ok {json.dumps(got)}"}]


async def ask(request: dict[str, Any]) -> dict[str, Any]:
    ctx = server.request_context
    answer = await ctx.session.send_request(
        types.ServerRequest.model_validate(request),
        ANSWER[request["method"]],
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def list_resources(request: types.ListResourcesRequest) -> types.ServerResult:
    return said(types.ListResourcesResult, resources=offer.resources())


async def list_templates(request: types.ListResourceTemplatesRequest) -> types.ServerResult:
    return said(types.ListResourceTemplatesResult, resourceTemplates=offer.templates())


async def read(request: types.ReadResourceRequest) -> types.ServerResult:
    uri = str(request.params.uri)
    found = offer.contents(uri)
    if found is None:
        error = types.ErrorData(code=-32002, message="Resource not found", data={"uri": uri})
        raise McpError(error)
    return said(types.ReadResourceResult, contents=[found])


async def list_prompts(request: types.ListPromptsRequest) -> types.ServerResult:
    return said(types.ListPromptsResult, prompts=offer.prompts())


async def get_prompt(request: types.GetPromptRequest) -> types.ServerResult:
    message = offer.prompt(request.params.name, request.params.arguments or {})
    return said(types.GetPromptResult, messages=[message])


async def complete(request: types.CompleteRequest) -> types.ServerResult:
    values = [f"{request.params.argument.value}{end}" for end in ("", "ing")]
    completion = {"values": values, "total": 2, "hasMore": False}
    return said(types.CompleteResult, completion=completion)


async def nothing(request: Any) -> types.ServerResult:
    """Of levels and subscriptions: the suite looks whether they are taken."""
    return said(types.EmptyResult)


def said(kind: type[types.Result], **members: Any) -> types.ServerResult:
    return types.ServerResult.model_validate(kind.model_validate(members))


HANDLERS: dict[type[Any], Any] = {
    types.ListToolsRequest: list_tools,
    types.CallToolRequest: call_tool,
    types.ListResourcesRequest: list_resources,
    types.ListResourceTemplatesRequest: list_templates,
    types.ReadResourceRequest: read,
    types.SubscribeRequest: nothing,
    types.UnsubscribeRequest: nothing,
    types.ListPromptsRequest: list_prompts,
    types.GetPromptRequest: get_prompt,
    types.CompleteRequest: complete,
    types.SetLevelRequest: nothing,
}


class Events(EventStore):
    """All events of the process, each with its number as id."""

    def __init__(self) -> None:
        self._stored: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._stored.append((stream_id, message))
        return str(len(self._stored))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        at = int(last_event_id)
        stream = self._stored[at - 1][0]
        for number, (of, message) in enumerate(self._stored[at:], at + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def app() -> Starlette:
    manager = StreamableHTTPSessionManager(
        server,
        event_store=Events(),
        retry_interval=RETRY_MS,
        security_settings=TransportSecuritySettings(
            allowed_hosts=["127.0.0.1:*", "localhost:*"],
            allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
        ),
    )
    # All of it is the endpoint: a mounted path would answer with a redirect.
    endpoint = Mount("/", app=manager.handle_request)
    return Starlette(routes=[endpoint], lifespan=lambda _app: manager.run())


def main() -> None:
    server.request_handlers.update(HANDLERS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", required=True)
    uvicorn.run(app(), port=parser.parse_args().http)


if __name__ == "__main__":
    main()
