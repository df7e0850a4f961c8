"""Asks the agent's user to sign in at a server first, by the page for it.

Nothing is kept between the rounds: the call that was blocked is in the record, and the client's
next request makes another one, which runs once the credential is there.

Sources: MCP 2026-07-28, basic/patterns/mrtr, client/elicitation; 2025-11-25, client/elicitation.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.call_request import SubmitResult
from gateway.methods import input_requests
from gateway.protocol import replies
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError
from registry.publishing.published_tools import PublishedTool

_KEY = "countersign.sign_in."
_OURS = re.compile(re.escape(_KEY) + r"([1-9])").fullmatch
# As in gateway/methods/pending.py: at the tenth round clients give up.
ROUNDS = 9
LOOK_EVERY_S = 0.5
# Source: MCP 2025-11-25, client/elicitation, "URL Elicitation Required Error".
PAGE_NEEDED = -32042


def ask(rpc: RpcRequest, submitted: SubmitResult) -> bytes:
    """The reply to a call that was blocked because nobody signed in at its server."""
    answer = submitted.answer
    assert answer is not None
    given = _own_responses(rpc)
    is_refused = any(one.get("action") != "accept" for one in given.values())
    round_ = max(given, default=0) + 1
    if not rpc.client.opens_urls or is_refused or round_ > ROUNDS:
        return rpc.answered(answer)
    page = {"mode": "url", "url": submitted.page, "message": submitted.reason}
    if not rpc.client.modern:
        data = {"elicitations": [page | {"elicitationId": str(submitted.call_id)}]}
        raise RpcError(200, submitted.reason, code=PAGE_NEEDED, data=data)
    members = {
        "resultType": "input_required",
        "inputRequests": {f"{_KEY}{round_}": {"method": "elicitation/create", "params": page}},
        "_meta": {replies.CALL: str(submitted.call_id), replies.WAITING: submitted.reason},
    }
    return rpc.result(orjson.dumps(members))


async def wait_for_person(rpc: RpcRequest, tool: PublishedTool | None) -> None:
    """Waits as long as the client does for the credential that its user went to get."""
    given = _own_responses(rpc)
    if tool is None or not tool.connection.signs_in or not given:
        return
    if any(one.get("action") != "accept" for one in given.values()):
        return
    credentials, until = rpc.runtime.call_runtime.engine.credentials, time.monotonic() + rpc.hold_s
    while await credentials.is_missing(tool.connection, rpc.context.bearer.person_id):
        if time.monotonic() >= until:
            return
        await asyncio.sleep(LOOK_EVERY_S)


def without_ours(responses: Mapping[str, Any]) -> dict[str, Any]:
    """Answers to the server's own questions alone."""
    return {key: one for key, one in responses.items() if not key.startswith(_KEY)}


def _own_responses(rpc: RpcRequest) -> dict[int, dict[str, Any]]:
    """Answers to what was asked here, by round."""
    if not rpc.client.modern:
        return {}
    found = input_requests.responses_of(rpc.message).items()
    return {int(ours[1]): one for key, one in found if (ours := _OURS(key))}
