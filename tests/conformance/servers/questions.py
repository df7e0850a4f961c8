"""The tools of the conformance suite that ask their client something before they answer."""

from typing import Any

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    InputRequiredResult,
    TextContent,
)

from tests.conformance.servers import offer

MISSING_CAPABILITY = -32021


def ask(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """Which round it is stands in the state; a client without one is in the first."""
    at, abilities = int(params.request_state or "0"), _abilities(ctx)
    wanted = _wanted(params, at, abilities)
    given = params.input_responses or {}
    if given.keys() >= wanted.keys():
        at += 1
        if at == len(offer.TOOLS[params.name]["asks"]):
            said = "state-ok " + ", ".join(f"{key}={given[key]}" for key in wanted)
            return CallToolResult(content=[TextContent(type="text", text=said)])
        wanted = _wanted(params, at, abilities)
    requests: Any = wanted
    return InputRequiredResult(input_requests=requests, request_state=str(at))


def _abilities(ctx: ServerRequestContext[Any]) -> set[str]:
    known = ctx.session.client_capabilities or ClientCapabilities()
    return {name for name in ("elicitation", "sampling", "roots") if getattr(known, name)}


def _wanted(params: CallToolRequestParams, at: int, abilities: set[str]) -> dict[str, Any]:
    """As far as the client can be asked, which one tool insists on."""
    if params.name == "test_missing_capability" and "sampling" not in abilities:
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_CAPABILITY, "This tool samples.", data)
    asked = offer.asked(params.name, at, params.arguments or {})
    able = {key: one for key, one in asked.items() if _ability(one) in abilities}
    return able or asked


def _ability(request: dict[str, Any]) -> str:
    return str(request["method"].partition("/")[0])
