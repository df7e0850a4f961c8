"""A span for each request, by OpenTelemetry's conventions for MCP and generative AI."""

from __future__ import annotations

from contextlib import AbstractContextManager

from core import telemetry
from core.telemetry import Attributes, OpenSpan
from gateway.protocol import tracing
from gateway.protocol.client import Client
from gateway.protocol.messages import RpcMessage

# Names are strangers' words.
NAME_MAX = 200
# A longer reply is a result, and not looked at for an error.
REPLY_MAX = 64 * 1024
_NAMED = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


def opened(client: Client, message: RpcMessage) -> AbstractContextManager[OpenSpan]:
    method = message.method[:NAME_MAX]
    attributes: Attributes = {
        "mcp.method.name": method,
        "mcp.protocol.version": client.revision,
        "jsonrpc.request.id": message.id.decode(errors="replace")[:NAME_MAX].strip('"'),
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }
    name = message.params.get("name")
    target = name[:NAME_MAX] if isinstance(name, str) and method in _NAMED else ""
    if target:
        attributes[_NAMED[method]] = target
    if method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    trace = tracing.of(message.meta)
    return telemetry.opened("server", f"{method} {target}".rstrip(), attributes, trace)


def note_reply(span: OpenSpan, status: int, body: bytes) -> None:
    if len(body) <= REPLY_MAX:
        span.reply = body
    elif status >= 400:
        span.error = str(status)
