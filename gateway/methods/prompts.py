"""prompts/* and completion/complete: what servers offer, under names like those of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from core.english import gettext as _
from gateway.methods import item_calls, lists
from gateway.protocol import messages
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import invalid_params
from registry.methods import COMPLETE, GET
from registry.publishing.published_tools import Violation

# What else a completion says.
_COMPLETED = ("argument", "context")


async def prompts(rpc: RpcRequest) -> bytes:
    return lists.answered(rpc, "prompts", _prompts)


async def get(rpc: RpcRequest) -> bytes:
    name = rpc.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    server, own_name, prompt = _find_prompt(rpc.context, name)
    if prompt is None:
        await rpc.look_again()
        server, own_name, prompt = _find_prompt(rpc.context, name)
    tool = rpc.context.toolset.method_tool(server, GET) if prompt else None
    params: dict[str, Any] = {"name": own_name}
    given = rpc.message.params.get("arguments")
    if given is not None:
        params["arguments"] = orjson.Fragment(messages.raw_arguments(rpc.message))
    return await item_calls.call_item(
        rpc, tool, params, extra_violations=tuple(_missing(prompt or {}, given))
    )


async def complete(rpc: RpcRequest) -> bytes:
    given = rpc.message.params
    ref = given.get("ref")
    if not isinstance(ref, dict):
        raise invalid_params("params.ref must be an object.")
    if not _referred(rpc.context, ref)[0]:
        await rpc.look_again()
    server, ref = _referred(rpc.context, ref)
    tool = rpc.context.toolset.method_tool(server, COMPLETE) if server else None
    params = {"ref": ref} | {name: given[name] for name in _COMPLETED if name in given}
    return await item_calls.call_item(rpc, tool, params)


def _referred(context: RequestContext, ref: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Which server knows it, and by what name."""
    match ref:
        case {"type": "ref/prompt", "name": str(name)}:
            server, own_name, prompt = _find_prompt(context, name)
            return (server, {**ref, "name": own_name}) if prompt else ("", ref)
        case {"type": "ref/resource", "uri": str(uri)}:
            knowing = (slug for slug, one in context.offered.items() if uri in one.templates)
            return next(knowing, ""), ref
    return "", ref


def _prompts(context: RequestContext) -> Iterator[tuple[str, bytes]]:
    for slug, offered in context.offered.items():
        for name, content in offered.prompts.items():
            seen = name if context.server else f"{slug}.{name}"
            yield seen, orjson.dumps({**content, "name": seen})


def _find_prompt(context: RequestContext, name: str) -> tuple[str, str, Mapping[str, Any] | None]:
    """The server, the prompt's own name there, and the prompt if agents may get it."""
    # No server's name has a dot.
    slug, _dot, rest = name.partition(".")
    server, own_name = (context.server, name) if context.server else (slug, rest)
    offered = context.offered.get(server)
    return server, own_name, offered.prompts.get(own_name) if offered else None


def _missing(prompt: Mapping[str, Any], given: Any) -> Iterator[Violation]:
    if given is not None and not isinstance(given, dict):
        return
    for argument in prompt.get("arguments") or ():
        name = argument["name"]
        if argument.get("required") is True and name not in (given or {}):
            yield Violation(f"$.arguments.{name}", _("is missing, and the prompt needs it"))
