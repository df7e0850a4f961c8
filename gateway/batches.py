"""Batches of messages, which only the oldest revision has, and which it demands.

Source: MCP 2025-03-26, basic, "Batching".
"""

from __future__ import annotations

from gateway import legacy
from gateway.exchange import Client, Exchange
from gateway.messages import Message
from gateway.modern import VERSION
from gateway.refusals import invalid_request
from gateway.revisions import OLDEST


def client_of(exchange: Exchange, batch: list[Message]) -> Client:
    if exchange.headers.text(VERSION) in (None, OLDEST):
        client = legacy.client_of(exchange.headers, exchange.bearer.agent_id)
        if client.revision == OLDEST:
            _check(batch)
            return client
    raise invalid_request(f"The body must be one message: only {OLDEST} has batches.")


def _check(batch: list[Message]) -> None:
    if any(message.method == "initialize" for message in batch):
        raise invalid_request("initialize must come alone.")
