"""An agent asks what rules would say, before it asks for a call. Nothing is sent or recorded."""

from __future__ import annotations

from typing import Any

import orjson

from calls.models import Call
from core.english import gettext as _
from core.ids import uuid7
from gateway.call_request import CallRequest
from gateway.methods.search_tools import is_hidden
from gateway.protocol import replies
from gateway.protocol.context import RpcRequest
from gateway.submit.foresee import foresee_call
from registry.publishing.published_tools import PublishedTool


async def explain(rpc: RpcRequest) -> bytes:
    """The very answer that the call would get, with the tool at this address."""
    given = rpc.message.params.get("arguments")
    given = given if isinstance(given, dict) else {}
    tool = rpc.context.tools.find(str(given.get("tool")))
    if tool is None or is_hidden(rpc.context, tool):
        return rpc.sentence(_("There is no such tool here: name one as it is listed."))
    foreseen = await foresee_call(rpc.runtime, _ask(rpc, tool, given.get("arguments", {})), tool)
    members = foreseen.members()
    told = members | {name: members[name] or None for name in ("rule", "allowed")}
    return rpc.result(replies.structured(told, modern=rpc.client.modern))


def _ask(rpc: RpcRequest, tool: PublishedTool, arguments: Any) -> CallRequest:
    context = rpc.context
    return CallRequest(
        call_id=uuid7(),
        bearer=context.bearer,
        toolset=context.toolset,
        tool=tool,
        tool_name=tool.exposed_name,
        arguments=orjson.dumps(arguments),
        parsed=arguments,
        origin=Call.Origin.MCP,
    )
