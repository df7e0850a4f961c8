"""Methods of extensions that operators listed for servers: calls by the one door, like the others.

What nobody listed, or published, or gave to this toolset is told like what there is not."""

from __future__ import annotations

from core.english import gettext as _
from gateway.methods import item_calls
from gateway.protocol import messages
from gateway.protocol.client import Client
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import RpcError, invalid_params
from gateway.protocol.revisions import METHOD_NOT_FOUND
from registry import extensions
from registry.publishing.published_tools import PublishedTool

# Between an agent and us; what of it a server is to have, it gets in another way.
_OF_ROUNDS = ("requestState", "inputResponses")


async def served(context: RequestContext, method: str) -> RequestContext:
    """The context in which a server here offers the method; the newest one, if need be. Raises
    RpcError as for an unknown method if none does."""
    if extensions.is_one(method):
        if _method_tools(context, method):
            return context
        # It may have been published at this very moment.
        context = await context.renewed()
        if _method_tools(context, method):
            return context
    raise RpcError(404, f"No method {method[:100]} here.", code=METHOD_NOT_FOUND)


async def call_method(rpc: RpcRequest) -> bytes:
    tool, *others = _method_tools(rpc.context, rpc.message.method)
    if others:
        raise invalid_params(_several(rpc, [tool, *others]))
    members, ours = messages.raw_members(rpc.message), _ours(rpc.client)
    params = {name: value for name, value in members.items() if name not in ours}
    return await item_calls.call_item(rpc, tool, params)


def _ours(client: Client) -> tuple[str, ...]:
    if client.modern:
        return ("_meta", *_OF_ROUNDS)
    # Who asks for a task of something else than a tool gets the result itself.
    return ("_meta", "task") if client.asks_for_tasks else ("_meta",)


def _method_tools(context: RequestContext, method: str) -> list[PublishedTool]:
    """The method's tool at each server here that offers it."""
    toolset = context.toolset
    servers = [context.server] if context.server else toolset.by_server
    return [tool for server in servers if (tool := toolset.method_tool(server, method))]


def _several(rpc: RpcRequest, tools: list[PublishedTool]) -> str:
    said = _("Several servers here have %(method)s: ask at the address of one, %(addresses)s.")
    slug = rpc.context.toolset.slug
    addresses = _(" or ").join(f"/mcp/{slug}/{tool.server_slug}" for tool in tools)
    return said % {"method": rpc.message.method, "addresses": addresses}
