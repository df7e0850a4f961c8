"""Attributes of the span in which a call is sent, by OpenTelemetry's conventions for MCP and
generative AI."""

from __future__ import annotations

from uuid import UUID

from yarl import URL

from core.telemetry import Attributes
from registry.publishing.published_tools import CALL, PublishedTool


def send_attributes(tool: PublishedTool, call_id: UUID) -> Attributes:
    attributes: Attributes = {
        "mcp.method.name": tool.method,
        "countersign.call.id": str(call_id),
        "countersign.server": tool.server_slug,
    }
    if tool.method == CALL:
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name}
    return attributes | _where(tool)


def _where(tool: PublishedTool) -> Attributes:
    """Without the address's path and query, which may hold secrets."""
    if tool.connection.transport == "stdio":
        return {"network.transport": "pipe"}
    url = URL(tool.connection.url)
    found: Attributes = {"network.transport": "tcp", "network.protocol.name": "http"}
    if url.host:
        found["server.address"] = url.host
    if url.port:
        found["server.port"] = url.port
    return found
