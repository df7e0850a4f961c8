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
from uuid import UUID

import orjson

from calls.content.answers import Answer
from gateway.call_request import owner_for
from gateway.methods import input_requests
from gateway.process.call_watcher import ConsentRequested
from gateway.protocol import replies
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError
from registry.methods import COMPLETE
from registry.publishing.published_tools import PublishedTool

_KEY = "countersign.sign_in."
_OURS = re.compile(re.escape(_KEY) + r"([1-9])").fullmatch
# As in gateway/methods/pending.py: at the tenth round clients give up.
ROUNDS = 9
LOOK_EVERY_S = 0.5
# Source: MCP 2025-11-25, client/elicitation, "URL Elicitation Required Error".
PAGE_NEEDED = -32042


def ask(rpc: RpcRequest, answer: Answer, *, rounds: int = 0) -> bytes:
    """The reply to a call that ended because nobody signed in at its server, or because the server
    asks for more scopes; to any other, its answer. `rounds`: so often the client asked before.
    Raises RpcError with the page for clients of 2025-11-25."""
    round_ = max(_own_responses(rpc), default=rounds) + 1
    if not (answer.consent_page and _may_ask(rpc)) or is_declined(rpc) or round_ > ROUNDS:
        return rpc.answered(answer)
    page = ConsentRequested(answer.consent_page, answer.reason)
    return _page_first(rpc, answer.call_id, page, round_)


def ask_while_waiting(rpc: RpcRequest, call_id: UUID, wanted: ConsentRequested) -> bytes:
    """The reply to a tool that waits for a call whose user has to consent first; the client uses
    the tool again afterwards. Raises RpcError as `ask`."""
    return _page_first(rpc, call_id, wanted, 1)


def _page_first(rpc: RpcRequest, call_id: UUID, wanted: ConsentRequested, round_: int) -> bytes:
    if not rpc.client.modern:
        elicited = {"mode": "url", "url": wanted.page, "message": wanted.reason}
        data = {"elicitations": [elicited | {"elicitationId": str(call_id)}]}
        raise RpcError(200, wanted.reason, code=PAGE_NEEDED, data=data)
    members = {
        "resultType": "input_required",
        "inputRequests": request_page(wanted.page, wanted.reason, round_),
        "_meta": {replies.CALL: str(call_id), replies.WAITING: wanted.reason},
    }
    return rpc.result(orjson.dumps(members))


def _may_ask(rpc: RpcRequest) -> bool:
    # A completion is asked for while its argument is typed.
    return rpc.client.opens_urls and rpc.message.method != COMPLETE


def is_declined(rpc: RpcRequest) -> bool:
    return any(one.get("action") != "accept" for one in _own_responses(rpc).values())


def asks_consent(rpc: RpcRequest) -> bool:
    """Whether this client is to be told of the page on which a waiting call's user consents; not
    twice in one round."""
    return rpc.client.modern and may_open(rpc)


def may_open(rpc: RpcRequest) -> bool:
    """Whether this client opens pages, and does not come back from one."""
    return rpc.client.opens_urls and not _own_responses(rpc)


def request_page(page: str, reason: str, name: object) -> dict[str, Any]:
    """The input request that has the client open a page."""
    elicited = {"mode": "url", "url": page, "message": reason}
    return {f"{_KEY}{name}": {"method": "elicitation/create", "params": elicited}}


async def wait_for_person(rpc: RpcRequest, tool: PublishedTool | None) -> None:
    """Waits as long as the client does for the credential that its user went to get."""
    if tool is None or not tool.connection.signs_in or not _own_responses(rpc):
        return
    if is_declined(rpc):
        return
    credentials, until = rpc.runtime.call_runtime.engine.credentials, time.monotonic() + rpc.hold_s
    owner = owner_for(rpc.context.bearer, tool.connection)
    while await credentials.wants_consent(tool.connection, owner):
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
