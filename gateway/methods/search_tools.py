"""Search mode: tools for finding the toolset's tools, and for calling what was found.

Searching opens no call. A call through `call_tool` is the call of the tool that it names, in rules,
approvals, limits and the record: the envelope is opened before anything is decided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from core import strict_json
from core.english import gettext as _
from gateway.protocol import messages, replies
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.messages import RpcMessage
from gateway.submit.named_tools import is_denied
from gateway.tool_search import indexes
from gateway.tool_search.definitions import MAX_QUERY, MOST, MOST_PAGES, USUAL
from registry.models import SearchTool
from registry.publishing import agent_names
from registry.publishing.published_tools import CALL, PublishedTool, Violation

# Of a description, so much is shown with what was found.
SHORT = 240


class Envelope(NamedTuple):
    """A call that names the tool it means in its arguments."""

    message: RpcMessage
    reads_only: bool


async def search_tool(rpc: RpcRequest, name: str) -> str:
    """Which of the tools for searching this names here; "" if none."""
    found = agent_names.search_tool(name)
    if found and not rpc.context.searches:
        # The mode may have been chosen a moment ago.
        await rpc.look_again()
    return found if rpc.context.searches else ""


def _arguments_of(rpc: RpcRequest) -> dict[str, Any]:
    given = rpc.message.params.get("arguments")
    return given if isinstance(given, dict) else {}


def _unknown_argument(rpc: RpcRequest, *known: str) -> str:
    """The first argument that there is not; "" if all are known."""
    return next(iter(sorted(_arguments_of(rpc).keys() - {*known})), "")[:60]


async def search(rpc: RpcRequest) -> bytes:
    if unknown := _unknown_argument(rpc, "query", "limit", "page"):
        return rpc.sentence(_("There is no argument “%(name)s” here.") % {"name": unknown})
    given = _arguments_of(rpc)
    query, limit, page = given.get("query"), given.get("limit", USUAL), given.get("page", 1)
    if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY:
        return rpc.sentence(
            _("query must be a text of 1 to %(n)d characters: what the tool should do.")
            % {"n": MAX_QUERY}
        )
    for name, number, most in (("limit", limit, MOST), ("page", page, MOST_PAGES)):
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            return rpc.sentence(
                _("%(name)s must be a number from 1 to %(n)d.") % {"name": name, "n": most}
            )
    return await _search(rpc, query, (page - 1) * limit, page * limit)


async def _search(rpc: RpcRequest, query: str, start: int, end: int) -> bytes:
    """Those from `start` to before `end`, in the order in which they fit."""
    context = rpc.context
    # One more tells whether there is another page.
    ranked = await indexes.search(
        context, query, end + 1, lambda name: not _is_denied(context, name)
    )
    found = [_in_short(rpc, name) for name in ranked[start:end]]
    members: dict[str, Any] = {"tools": found}
    if len(ranked) > end:
        members["more"] = True
    if not found:
        members["hint"] = _("Nothing has these words. Try other words, or fewer.")
    return rpc.result(replies.structured(members, modern=rpc.client.modern))


def _in_short(rpc: RpcRequest, name: str) -> dict[str, Any]:
    tool = rpc.context.tools[name]
    told = rpc.context.toolset.definition_for(name, tool)
    text = str(told.get("description") or "")
    found = {
        "name": name,
        "title": told.get("title"),
        "description": text if len(text) <= SHORT else f"{text[:SHORT]}…",
        "arguments": _argument_names(told),
        "readOnly": tool.only_reads,
    }
    return {key: value for key, value in found.items() if value is not None}


def _argument_names(told: dict[str, Any]) -> list[str]:
    """Those that it requires are marked with a star."""
    schema = told["inputSchema"]
    properties, required = schema.get("properties"), schema.get("required") or ()
    names = list(properties)[:MOST] if isinstance(properties, dict) else []
    return [f"{name}*" if name in required else name for name in names]


def _is_denied(context: RequestContext, name: str) -> bool:
    """Whether rules deny it to this agent whatever the arguments, or its token does not open it:
    then it is not named."""
    tool = context.tools.find(name)
    assert tool is not None
    return (context.bearer.reads_only and not tool.only_reads) or _rules_deny(context, tool)


def _rules_deny(context: RequestContext, tool: PublishedTool) -> bool:
    return is_denied(context.snapshot.rules, context.bearer, context.toolset, tool)


def is_hidden(context: RequestContext, tool: PublishedTool) -> bool:
    """Whether it looks unknown to this agent: it cannot be found here either."""
    return context.searches and _rules_deny(context, tool)


async def describe(rpc: RpcRequest) -> bytes:
    if unknown := _unknown_argument(rpc, "tool"):
        return rpc.sentence(_("There is no argument “%(name)s” here.") % {"name": unknown})
    name = str(_arguments_of(rpc).get("tool"))
    tool = rpc.context.tools.find(name)
    if tool is None or tool.method != CALL or _is_denied(rpc.context, name):
        return rpc.sentence(_("There is no such tool here: search for it."))
    told = rpc.context.toolset.definition_for(name, tool)
    return rpc.result(replies.structured(told, modern=rpc.client.modern))


# Those that call nothing.
LOOKS = {SearchTool.SEARCH.value: search, SearchTool.DESCRIBE.value: describe}


def open_envelope(message: RpcMessage, search_tool: str) -> Envelope:
    """The call that is meant, with its arguments as they were written. Raises RpcError."""
    given = message.params.get("arguments")
    if not isinstance(given, dict) or not isinstance(given.get("tool"), str):
        raise invalid_params("arguments.tool must be a string: the name of the tool to call.")
    if unknown := sorted(given.keys() - {"tool", "arguments"}):
        raise invalid_params(
            f"arguments.{unknown[0]} is unknown: put the tool's own into arguments.arguments."
        )
    inner = {key: value for key, value in message.params.items() if key != "arguments"}
    inner["name"] = given["tool"]
    text = ""
    if given.get("arguments") is not None:
        inner["arguments"] = given["arguments"]
        text = "" if message.plain else _with_arguments(messages.raw_arguments(message))
    opened = RpcMessage(message.id, message.method, inner, text, message.meta, message.plain)
    return Envelope(opened, search_tool == SearchTool.CALL_READ)


def _with_arguments(outer: bytes) -> str:
    """A message that has nothing but these arguments, for `raw_arguments`."""
    written = outer.decode()
    start, end = strict_json.spans(written)["arguments"]
    return f'{{"params": {{"arguments": {written[start:end]}}}}}'


def read_only_violations(rpc: RpcRequest, tool: PublishedTool | None) -> tuple[Violation, ...]:
    """Why this tool may not be called as one that only reads."""
    if tool is None or tool.only_reads:
        return ()
    call = rpc.context.toolset.own_name(SearchTool.CALL)
    return (Violation("$", f"is not for a tool that may change something: use {call}"),)
