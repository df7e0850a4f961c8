"""Streams on which agents hear of changes: subscriptions/listen, and the GET of earlier revisions.

Source: MCP 2026-07-28, basic/patterns/subscriptions; 2025-11-25, basic/transports.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any
from uuid import UUID

import orjson

from core.errors import RecordUnavailable
from gateway import legacy, pages, resuming, task_news
from gateway.exchange import Exchange, Turn
from gateway.refusals import CLOSE, RETRY_LATER, Refusal, invalid_params
from gateway.revisions import META
from gateway.runtime import Snapshot
from gateway.sessions import session_key
from gateway.stream import Reply
from gateway.subscribing import Subscriptions
from registry.published import CALL

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


async def listen(turn: Turn) -> bytes:
    """Until the client goes away or this process stops."""
    wanted = turn.message.params.get("notifications")
    if not isinstance(wanted, dict):
        raise invalid_params("params.notifications must be an object: what you want to hear of.")
    # Whoever may not hear of tasks is told so before there is a stream.
    tasks = await task_news.known(turn, wanted[TASKS]) if TASKS in wanted else {}
    tag = {SUBSCRIPTION: orjson.Fragment(turn.message.id)}
    with _place(turn.exchange) as ended, _hearing(turn.exchange, turn.reply, tag) as heard:
        turn.reply.stream()
        # What we cannot tell of is left out, so that the client knows.
        honoured: dict[str, Any] = {name: True for name in CHANGES if wanted.get(name) is True}
        told = {name: _notification(CHANGES[name], {"_meta": tag}) for name in honoured}
        uris = wanted.get(UPDATES)
        allowed = await heard.allowed(uris if isinstance(uris, list) else [])
        if allowed:
            honoured[UPDATES] = list(allowed)
        if tasks:
            honoured[TASKS] = list(tasks)
        turn.reply.push(_notification(_ACKNOWLEDGED, {"notifications": honoured, "_meta": tag}))
        await heard.join(allowed)
        with _beside(_tell_of_tasks(turn, tasks, tag)):
            await _hear(turn.exchange, turn.reply, ended, told)
    return turn.result(orjson.dumps({"resultType": "complete", "_meta": tag}))


async def get(exchange: Exchange, receive: Any, send: Any) -> None:
    """The stream beside a session of an earlier revision."""
    if not exchange.headers.text(legacy.SESSION):
        message = "Only POST here: a stream to GET stands beside a session, and none was named."
        raise Refusal(405, message, headers=((b"allow", b"POST"), CLOSE))
    legacy.client_of(exchange.headers, exchange.bearer.agent_id)
    if exchange.headers.get(resuming.LAST_EVENT):
        with _place(exchange):
            await resuming.resume(exchange, receive, send)
        return
    session = session_key(exchange.headers.text(legacy.SESSION) or "")
    reply = Reply(receive, send)

    def done(page: str) -> None:
        reply.push(_notification(pages.NOTICE, {"elicitationId": page}))

    listening = exchange.runtime.pages.listening(session, done)
    with _place(exchange) as ended, _hearing(exchange, reply, None) as heard, listening:
        reply.stream()
        told = {name: _notification(method, None) for name, method in CHANGES.items()}
        with _beside(heard.follow(session)):
            await _hear(exchange, reply, ended, told)
    await reply.end()


async def _tell_of_tasks(turn: Turn, tasks: Mapping[str, UUID], tag: dict[str, Any]) -> None:
    def push(task: Mapping[str, Any]) -> None:
        turn.reply.push(_notification(task_news.NOTICE, {**task, "_meta": tag}))

    await task_news.tell(turn, tasks.values(), push)


@contextlib.contextmanager
def _beside(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """As long as the stream is open."""
    task = asyncio.create_task(work, name="beside a stream")
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _hearing(
    exchange: Exchange, reply: Reply, tag: dict[str, Any] | None
) -> Iterator[Subscriptions]:
    """Of changes of single resources."""
    more = {} if tag is None else {"_meta": tag}
    heard = Subscriptions(
        exchange, lambda uri: reply.push(_notification(_UPDATED, {"uri": uri, **more}))
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
def _place(exchange: Exchange) -> Iterator[asyncio.Event]:
    agent = exchange.bearer.agent_id
    if _open[agent] >= OF_ONE_AGENT or len(_ends) >= OF_ALL:
        raise Refusal(
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
    exchange: Exchange, reply: Reply, ended: asyncio.Event, told: Mapping[str, bytes]
) -> None:
    """`told`: by the name of what changes, what the client is to read."""

    async def gone() -> None:
        ended.set()

    reply.begin()
    reply.linger(gone)
    look = _watcher(exchange, ended, lambda name: reply.push(told[name]) if name in told else None)
    ears = exchange.runtime.ears
    ears.join(look)
    try:
        # Something may have changed between the request's snapshot and now.
        with contextlib.suppress(RecordUnavailable):
            look(await exchange.runtime.fresh())
        await ended.wait()
    finally:
        ears.leave(look)


def _watcher(
    exchange: Exchange, ended: asyncio.Event, tell: Callable[[str], None]
) -> Callable[[Snapshot], None]:
    shown = _offered(exchange, exchange.snapshot) or {}

    def look(snapshot: Snapshot) -> None:
        nonlocal shown
        now = _offered(exchange, snapshot)
        if now is None:
            # Revoked, or no longer this agent's: who may not ask may not hear either.
            ended.set()
            return
        changed = [name for name in CHANGES if now[name] != shown.get(name)]
        shown = now
        for name in changed:
            tell(name)

    return look


def _offered(exchange: Exchange, snapshot: Snapshot) -> dict[str, Any] | None:
    """What lists would show there, as far as it takes to see a change; None without access."""
    toolset = snapshot.catalogue.toolset(exchange.toolset.slug)
    if toolset is None or exchange.bearer.agent_id not in toolset.agents:
        return None
    if not snapshot.tokens.holds(exchange.bearer):
        return None
    tools = toolset.by_server.get(exchange.server) if exchange.server else toolset.by_exposed
    if tools is None:
        return None
    servers = [exchange.server] if exchange.server else list(toolset.offered)
    others = {slug: toolset.offered[slug] for slug in servers if slug in toolset.offered}
    return {
        "toolsListChanged": {
            name: (tool.definition_id, toolset.how(tool))
            for name, tool in tools.items()
            if tool.method == CALL
        },
        "promptsListChanged": {slug: one.prompts for slug, one in others.items()},
        "resourcesListChanged": {slug: one.listed for slug, one in others.items()},
    }


def _notification(method: str, params: dict[str, Any] | None) -> bytes:
    members: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        members["params"] = params
    return orjson.dumps(members)
