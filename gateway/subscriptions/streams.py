"""Streams on which agents hear of changes: subscriptions/listen, and the GET of earlier revisions.

Source: MCP 2026-07-28, basic/patterns/subscriptions; 2025-11-25, basic/transports.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any
from uuid import UUID

import orjson

from core.errors import RecordUnavailable
from core.events_in_time import set_within
from gateway.methods import stream_resumption
from gateway.process import completed_pages
from gateway.process.runtime import Snapshot
from gateway.protocol import legacy
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import CLOSE, RETRY_LATER, RpcError, invalid_params
from gateway.protocol.reply_stream import ReplyStream
from gateway.protocol.revisions import META
from gateway.protocol.sessions import session_key
from gateway.submit.token_scope import is_switched_off
from gateway.subscriptions import session_progress, task_updates
from gateway.subscriptions.resource_updates import Subscriptions
from registry.publishing.published_tools import CALL, PublishedTool, PublishedToolset
from registry.publishing.tool_override import OverriddenTool

SUBSCRIPTION = META + "subscriptionId"
# What may be asked for, and the method that tells of it.
CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
# Each holds a connection and a task, whoever asks for it.
OF_ONE_AGENT, OF_ALL = 32, 2_000

UPDATES, TASKS = "resourceSubscriptions", "taskIds"
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_open: Counter[int] = Counter()
_ends: set[asyncio.Event] = set()


async def listen(rpc: RpcRequest) -> bytes:
    """Streams notifications until the client disconnects or this process stops."""
    wanted = rpc.message.params.get("notifications")
    if not isinstance(wanted, dict):
        raise invalid_params("params.notifications must be an object: what you want to hear of.")
    # Whoever may not hear of tasks is told so before there is a stream.
    tasks = await task_updates.known_tasks(rpc, wanted[TASKS]) if TASKS in wanted else {}
    tag = {SUBSCRIPTION: orjson.Fragment(rpc.message.id)}
    with _place(rpc.context) as ended, _relay_resources(rpc.context, rpc.reply, tag) as heard:
        rpc.reply.stream()
        # What we cannot tell of is left out, so that the client knows.
        honoured: dict[str, Any] = {name: True for name in CHANGES if wanted.get(name) is True}
        told = {name: _notification(CHANGES[name], {"_meta": tag}) for name in honoured}
        uris = wanted.get(UPDATES)
        allowed = await heard.allowed(uris if isinstance(uris, list) else [])
        if allowed:
            honoured[UPDATES] = list(allowed)
        if tasks:
            honoured[TASKS] = list(tasks)
        rpc.reply.push(_notification(_ACKNOWLEDGED, {"notifications": honoured, "_meta": tag}))
        await heard.join(allowed)
        with _background(_tell_of_tasks(rpc, tasks, tag)):
            await _hear(rpc.context, rpc.reply, ended, told)
    return rpc.result(orjson.dumps({"resultType": "complete", "_meta": tag}))


async def get(context: RequestContext, receive: Any, send: Any) -> None:
    """The stream beside a session of an earlier revision."""
    if not context.headers.text(legacy.SESSION):
        message = "Only POST here: a stream to GET stands beside a session, and none was named."
        raise RpcError(405, message, headers=((b"allow", b"POST"), CLOSE))
    legacy.client_of(context.headers, context.bearer.agent_id)
    if context.headers.get(stream_resumption.LAST_EVENT):
        with _place(context):
            await stream_resumption.resume(context, receive, send)
        return
    session = session_key(context.headers.text(legacy.SESSION) or "")
    reply = ReplyStream(receive, send)

    def done(page: str) -> None:
        reply.push(_notification(completed_pages.NOTICE, {"elicitationId": page}))

    listening = context.runtime.pages.listening(session, done)
    with _place(context) as ended, _relay_resources(context, reply, None) as heard, listening:
        reply.stream()
        told = {name: _notification(method, None) for name, method in CHANGES.items()}
        progress = session_progress.telling(context.runtime, reply, session)
        with progress, _background(heard.follow(session)):
            await _hear(context, reply, ended, told)
    await reply.end()


async def _tell_of_tasks(rpc: RpcRequest, tasks: Mapping[str, UUID], tag: dict[str, Any]) -> None:
    def push(task: Mapping[str, Any]) -> None:
        rpc.reply.push(_notification(task_updates.NOTICE, {**task, "_meta": tag}))

    await task_updates.tell(rpc, tasks.values(), push)


@contextlib.contextmanager
def _background(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Runs while the stream is open."""
    task = asyncio.create_task(work, name="beside a stream")
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _relay_resources(
    context: RequestContext, reply: ReplyStream, tag: dict[str, Any] | None
) -> Iterator[Subscriptions]:
    """Relays updates of single resources."""
    more = {} if tag is None else {"_meta": tag}
    heard = Subscriptions(
        context, lambda uri: reply.push(_notification(_UPDATED, {"uri": uri, **more}))
    )
    try:
        yield heard
    finally:
        heard.close()


def end_all() -> None:
    """This process stops: said in good form, so that clients come back at once."""
    for ended in _ends:
        ended.set()


@contextlib.contextmanager
def _place(context: RequestContext) -> Iterator[asyncio.Event]:
    agent = context.bearer.agent_id
    if _open[agent] >= OF_ONE_AGENT or len(_ends) >= OF_ALL:
        raise RpcError(
            429,
            f"An agent may listen on {OF_ONE_AGENT} streams at a time: close one.",
            headers=(RETRY_LATER,),
        )
    _open[agent] += 1
    ended = asyncio.Event()
    _ends.add(ended)
    try:
        yield ended
    finally:
        _ends.discard(ended)
        _open[agent] -= 1
        if not _open[agent]:
            del _open[agent]


async def _hear(
    context: RequestContext, reply: ReplyStream, ended: asyncio.Event, told: Mapping[str, bytes]
) -> None:
    """`told`: by the name of what changes, what the client is to read."""

    async def gone() -> None:
        ended.set()

    reply.begin()
    reply.watch_disconnect(gone)
    look = _watcher(context, ended, lambda name: reply.push(told[name]) if name in told else None)
    config_changes = context.runtime.config_changes
    config_changes.join(look)
    try:
        # Something may have changed between the request's snapshot and now.
        with contextlib.suppress(RecordUnavailable):
            look(await context.runtime.newest())
        # An expired token changes nothing that anybody would look at.
        await set_within(ended, context.bearer.expires_at - time.time())
    finally:
        config_changes.leave(look)


def _watcher(
    context: RequestContext, ended: asyncio.Event, tell: Callable[[str], None]
) -> Callable[[Snapshot], None]:
    shown = _offered(context, context.snapshot) or {}

    def look(snapshot: Snapshot) -> None:
        nonlocal shown
        now = _offered(context, snapshot)
        if now is None:
            # Revoked, or no longer this agent's: who may not ask may not hear either.
            ended.set()
            return
        changed = [name for name in CHANGES if now[name] != shown.get(name)]
        shown = now
        for name in changed:
            tell(name)

    return look


def _offered(context: RequestContext, snapshot: Snapshot) -> dict[str, Any] | None:
    """The lists at this address, as far as a change of them shows; None without access."""
    toolset = snapshot.catalogue.toolset(context.toolset.slug)
    if toolset is None or context.bearer.agent_id not in toolset.agents:
        return None
    if not snapshot.tokens.holds(context.bearer) or is_switched_off(toolset, context.bearer):
        return None
    tools = toolset.by_server.get(context.server) if context.server else toolset.by_exposed
    if tools is None:
        return None
    servers = [context.server] if context.server else list(toolset.offered)
    others = {slug: toolset.offered[slug] for slug in servers if slug in toolset.offered}
    searched = toolset.search_mode and not context.server
    own = (toolset.own_tools, toolset.separator) if not context.server else ()
    return {
        "toolsListChanged": (searched, own, {} if searched else _listed_tools(toolset, tools)),
        "promptsListChanged": {slug: one.prompts for slug, one in others.items()},
        "resourcesListChanged": {slug: one.listed for slug, one in others.items()},
    }


def _listed_tools(
    toolset: PublishedToolset, tools: Mapping[str, PublishedTool]
) -> dict[str, tuple[int, OverriddenTool]]:
    return {
        name: (tool.definition_id, toolset.override_for(tool))
        for name, tool in tools.items()
        if tool.method == CALL
    }


def _notification(method: str, params: dict[str, Any] | None) -> bytes:
    members: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        members["params"] = params
    return orjson.dumps(members)
