"""Arguments that an agent repeats in headers where a tool wants it: both have to say the same.

Source: MCP 2026-07-28, basic/transports/streamable-http, "Server Behavior for Custom Headers".
"""

from __future__ import annotations

from typing import Any

from core.header_params import PREFIX, agrees, header_value, value_at
from gateway.protocol.context import RequestContext
from gateway.protocol.headers import Headers
from gateway.protocol.modern import differs, mismatch
from registry.publishing.published_tools import PublishedTool


def check(context: RequestContext, tool: PublishedTool, arguments: Any) -> None:
    """Raises the refusal of the first header that is missing, too much, or says something else."""
    for path, name in context.toolset.param_headers(tool).items():
        _compare(context.headers, f"{PREFIX}{name}", value_at(arguments, path))


def _compare(headers: Headers, name: str, value: Any) -> None:
    key = name.lower().encode()
    if key in headers.repeated:
        raise mismatch(f"The header {name} came more than once.")
    if header_value(value) is None:
        # Somebody would have routed by what is not in the body.
        if headers.text(key) is not None:
            raise differs(name)
        return
    said = headers.decoded(key)
    if said is None:
        raise mismatch(f"The header {name} is missing or malformed.")
    if not agrees(said, value):
        raise differs(name)
