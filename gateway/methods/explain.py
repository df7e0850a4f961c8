"""An agent asks what rules would say, before it asks for a call. Nothing is sent or recorded."""

from __future__ import annotations

from typing import Any

import orjson

from calls.models import Call
from core.english import gettext as _
from core.ids import uuid7
from gateway.call_request import CallRequest, subject, with_fixed_arguments
from gateway.protocol import replies
from gateway.protocol.context import RpcRequest
from gateway.submit import limits
from gateway.submit.submit import decide
from policies.decide import Decision
from policies.models import Effect
from registry.publishing.published_tools import PublishedTool


async def explain(rpc: RpcRequest) -> bytes:
    """The very decision that the call would meet, with the tool at this address.

    No other rule is named than the one that decides: an agent that was misled would learn where
    the gaps are.
    """
    given = rpc.message.params.get("arguments")
    given = given if isinstance(given, dict) else {}
    tool = rpc.context.tools.find(str(given.get("tool")))
    if tool is None:
        return rpc.sentence(_("There is no such tool here: name one as it is listed."))
    arguments = given.get("arguments", {})
    call_request, differing = with_fixed_arguments(_ask(rpc, tool, arguments))
    snapshot = await rpc.runtime.newest()
    decision = await decide(rpc.runtime, snapshot, call_request, tool)
    bearer, arguments = call_request.bearer, call_request.arguments
    granted = decision.effect == Effect.ASK and snapshot.grants.matching(
        subject(call_request, tool), decision, arguments, bearer.parties, bearer.inviters
    )
    members = _members(decision, granted=bool(granted))
    members["limits"] = limits.covering_limits(snapshot.limits, call_request, tool)
    members["results"] = tool.with_results(decision.results).result_sentences
    members["labels"] = list(tool.labels)
    members["violations"] = [
        {"path": v.path, "expected": v.expected}
        for v in differing or tool.violations(call_request.parsed)
    ]
    return rpc.result(replies.structured(members, modern=rpc.client.modern))


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


def _members(decision: Decision, *, granted: bool) -> dict[str, Any]:
    said = {
        Effect.ALLOW: _("It would run at once."),
        Effect.ASK: _("It would wait until people approve it."),
        Effect.DENY: _("It would be denied."),
    }
    text = _("It would run: a standing approval covers it.") if granted else said[decision.effect]
    return {
        "effect": decision.effect,
        "granted": granted,
        "said": text,
        "rule": decision.public_rule or None,
        "reason": decision.reason,
        "allowed": decision.instead or None,
    }
