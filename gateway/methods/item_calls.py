"""resources/read, prompts/get, completion/complete and methods of extensions: calls like those of
tools, by the one door, that answer in another form."""

from __future__ import annotations

from typing import Any

import orjson

from calls.record.call_options import NO_OPTIONS
from core.english import gettext as _
from core.logs import CallContext
from gateway.call_request import CallRequest, SubmitResult
from gateway.methods import pending, sign_in, tools
from gateway.protocol import handles
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError
from gateway.protocol.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from gateway.submit.submit import submit
from registry.methods import COMPLETE, GET, READ
from registry.publishing.published_tools import PublishedTool, Violation


async def call_item(
    rpc: RpcRequest,
    tool: PublishedTool | None,
    params: dict[str, Any],
    *,
    extra_violations: tuple[Violation, ...] = (),
) -> bytes:
    """`params`: what its server gets. `tool`: by which it is asked, None for what there is not."""
    method, arguments = rpc.message.method, orjson.dumps(params)
    digest = handles.request_digest(rpc.context.place, method, arguments)
    if rpc.is_retry:
        return await pending.retried(rpc, digest=digest)
    call_request = await _request(rpc, tool, arguments)
    call_request = call_request._replace(extra_violations=extra_violations)
    if "inputResponses" in rpc.message.params:
        await sign_in.wait_for_person(rpc, tool)
    listener = tools.listen(rpc, call_request)
    with CallContext(call_request.call_id):
        submitted = await submit(rpc.runtime, call_request, call_listener=listener)
    rpc.warnings = submitted.warnings
    if submitted.refusal in ("unknown_tool", "invalid"):
        raise _refused(rpc, submitted)
    if submitted.answer is not None:
        if submitted.answer.consent_page:
            return sign_in.ask(rpc, submitted.answer)
        return rpc.answered(submitted.answer)
    return await tools.pending_answer(rpc, submitted, digest=digest)


async def _request(rpc: RpcRequest, tool: PublishedTool | None, arguments: bytes) -> CallRequest:
    method = rpc.message.method
    # A completion is asked for while its argument is typed: its user is asked nothing meanwhile.
    options = NO_OPTIONS if method == COMPLETE else await tools.options_of(rpc, tool)
    made = tools.request_of(rpc, tool, method, arguments, orjson.loads(arguments), options)
    return made._replace(may_hold=False, responses=b"") if method == COMPLETE else made


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
