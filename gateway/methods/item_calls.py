"""resources/read, prompts/get, completion/complete and methods of extensions: calls like those of
tools, by the one door, that answer in another form."""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.translation import gettext as _

from calls.models import Call
from calls.record.call_options import NO_OPTIONS
from core.logs import CallContext
from gateway.call_request import CallRequest, SubmitResult
from gateway.methods import pending, tools
from gateway.protocol import handles
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError
from gateway.protocol.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from gateway.submit.submit import submit
from registry.methods import COMPLETE, GET, METHODS, READ
from registry.publishing.published_catalogue import PublishedTool, Violation


async def call_item(
    rpc: RpcRequest,
    tool: PublishedTool | None,
    params: dict[str, Any],
    *,
    wrong: tuple[Violation, ...] = (),
) -> bytes:
    """`params`: what its server gets. `tool`: by which it is asked, None for what there is not."""
    method, arguments = rpc.message.method, orjson.dumps(params)
    digest = handles.asked(rpc.context.place, method, arguments)
    if rpc.client.modern and "requestState" in rpc.message.params:
        return await pending.retried(rpc, digest=digest)
    # By the protocol the others change nothing, and may be asked for again and again.
    key, again = ("", False) if method in METHODS else tools.idempotency_of(rpc)
    # Whoever completes an argument as it is typed is asked nothing.
    options = NO_OPTIONS if method == COMPLETE else await tools.options_of(rpc, tool)
    call_request = CallRequest(
        bearer=rpc.context.bearer,
        toolset=rpc.context.toolset,
        tool=tool,
        tool_name=method,
        arguments=arguments,
        parsed=orjson.loads(arguments),
        origin=Call.Origin.MCP,
        revision=rpc.client.revision,
        client=rpc.client.name,
        request_key=tools.key_of(rpc) if rpc.client.session else "",
        key=key,
        again=again,
        wrong=wrong,
        # Nobody decides on each letter that is typed.
        at_once=method == COMPLETE,
        responses=b"" if method == COMPLETE else tools.responses_of(rpc),
        options=options,
        may_reply_early=bool(options.abilities) or rpc.takes_tasks,
    )
    tools.watch(rpc, call_request)
    listener = tools.listener_of(rpc, call_request)
    with CallContext(call_request.call_id):
        submitted = await submit(rpc.runtime, call_request, call_listener=listener)
    if submitted.refusal in ("unknown_tool", "invalid"):
        raise _refused(rpc, submitted)
    if submitted.answer is not None:
        return rpc.answered(submitted.answer)
    return await tools.pending_answer(rpc, submitted, digest=digest)


def _refused(rpc: RpcRequest, submitted: SubmitResult) -> RpcError:
    told: dict[str, Any] = {"call": str(submitted.call_id)}
    if submitted.refusal == "invalid":
        told["violations"] = [
            {"path": v.path, "expected": v.expected} for v in submitted.violations
        ]
        return RpcError(400, submitted.reason, code=INVALID_PARAMS, data=told)
    if rpc.message.method == READ:
        return no_resource(rpc, told)
    said = {
        GET: _("There is no such prompt here: get one as it is listed."),
        COMPLETE: _("Nothing here completes arguments of that."),
    }
    return RpcError(400, said[rpc.message.method], code=INVALID_PARAMS, data=told)


def no_resource(rpc: RpcRequest, told: dict[str, Any]) -> RpcError:
    code = INVALID_PARAMS if rpc.client.modern else RESOURCE_NOT_FOUND
    said = _("There is no such resource for this agent, or no longer.")
    data = told | {"uri": str(rpc.message.params.get("uri"))[:500]}
    return RpcError(400, said, code=code, data=data)
