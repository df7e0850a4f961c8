"""Methods of extensions that operators listed for servers: calls by the one door, like the others.

What nobody listed, or published, or gave to this toolset is told like what there is not."""

from __future__ import annotations

from django.utils.translation import gettext as _

from gateway import messages, reading
from gateway.exchange import Client, Exchange, Turn
from gateway.refusals import Refusal, invalid_params
from gateway.revisions import METHOD_NOT_FOUND
from registry import extensions
from registry.published import PublishedTool

# Between an agent and us; what of it a server is to have, it gets in another way.
_OF_ROUNDS = ("requestState", "inputResponses")


async def served(exchange: Exchange, method: str) -> Exchange:
    """As things stand where a server has it; raises what no method at all gets."""
    if extensions.is_one(method):
        if _asked(exchange, method):
            return exchange
        # It may have been published at this very moment.
        exchange = await exchange.renewed()
        if _asked(exchange, method):
            return exchange
    raise Refusal(404, f"No method {method[:100]} here.", code=METHOD_NOT_FOUND)


async def ask(turn: Turn) -> bytes:
    tool, *others = _asked(turn.exchange, turn.message.method)
    if others:
        raise invalid_params(_several(turn, [tool, *others]))
    members, ours = messages.raw_members(turn.message), _ours(turn.client)
    params = {name: value for name, value in members.items() if name not in ours}
    return await reading.ask(turn, tool, params)


def _ours(client: Client) -> tuple[str, ...]:
    if client.modern:
        return ("_meta", *_OF_ROUNDS)
    # Who asks for a task of something else than a tool gets the result itself.
    return ("_meta", "task") if client.asks_for_tasks else ("_meta",)


def _asked(exchange: Exchange, method: str) -> list[PublishedTool]:
    """By which it goes to a server: one for each that has it here."""
    toolset = exchange.toolset
    servers = [exchange.server] if exchange.server else toolset.by_server
    return [tool for server in servers if (tool := toolset.asking(server, method))]


def _several(turn: Turn, tools: list[PublishedTool]) -> str:
    said = _("Several servers here have %(method)s: ask at the address of one, %(addresses)s.")
    slug = turn.exchange.toolset.slug
    addresses = _(" or ").join(f"/mcp/{slug}/{tool.server_slug}" for tool in tools)
    return said % {"method": turn.message.method, "addresses": addresses}
