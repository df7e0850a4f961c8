"""Batches of messages, which only the oldest revision has, and which it demands.

Source: MCP 2025-03-26, basic, "Batching".
"""

from __future__ import annotations

from gateway.protocol import legacy
from gateway.protocol.client import Client
from gateway.protocol.context import RequestContext
from gateway.protocol.errors import invalid_request
from gateway.protocol.messages import RpcMessage
from gateway.protocol.modern import VERSION
from gateway.protocol.revisions import OLDEST


def client_of(context: RequestContext, batch: list[RpcMessage]) -> Client:
    if context.headers.text(VERSION) in (None, OLDEST):
        client = legacy.client_of(context.headers, context.bearer.agent_id)
        if client.revision == OLDEST:
            _check(batch)
            return client
    raise invalid_request(f"The body must be one message: only {OLDEST} has batches.")


def _check(batch: list[RpcMessage]) -> None:
    if any(message.method == "initialize" for message in batch):
        raise invalid_request("initialize must come alone.")
