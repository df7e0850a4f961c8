"""Agents hear when a resource changes that they may read: on their subscriptions/listen, and in
earlier revisions by resources/subscribe, beside their session.

Source: MCP 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
from django.db import connection, transaction
from django.utils import timezone

from audit.services import record
from calls.models import Call
from core.errors import RecordUnavailable
from core.events_in_time import set_within
from core.ids import uuid7
from core.listen import SUBSCRIBED
from gateway.call_request import CallRequest
from gateway.methods import item_calls, resources
from gateway.protocol import sessions
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import RpcError, invalid_params, invalid_request
from gateway.submit.submit import decide
from policies.models import Effect
from registry.methods import READ
from registry.models import Subscription
from registry.publishing.published_tools import PublishedTool

URIS_MAX = 100
# A lost nudge costs this much.
LOOK_AGAIN_S = 30.0
# What cannot be known now is asked again after this.
KNOWN_AGAIN_S = 1.0


async def readable(context: RequestContext, uri: str) -> PublishedTool | None:
    """The tool row through which the resource is read, if its server sends updates and rules allow
    the agent to read it now."""
    runtime = context.runtime
    snapshot = await runtime.fresh()
    toolset = snapshot.catalogue.toolset(context.toolset.slug)
    if toolset is None or context.bearer.agent_id not in toolset.agents:
        return None
    now = replace(context, snapshot=snapshot, toolset=toolset)
    server = resources.server_of(now, uri)
    tool = toolset.method_tool(server, READ)
    if tool is None or not toolset.offered[server].tells:
        return None
    if snapshot.freezes.over(context.bearer.agent_id, tool.server_id):
        return None
    decision = await decide(runtime, snapshot, _ask(now, tool, uri), tool)
    return tool if decision.effect == Effect.ALLOW else None


def _ask(context: RequestContext, tool: PublishedTool, uri: str) -> CallRequest:
    """To read it, for rules alone."""
    return CallRequest(
        call_id=uuid7(),
        bearer=context.bearer,
        toolset=context.toolset,
        tool=tool,
        tool_name=READ,
        arguments=orjson.dumps({"uri": uri}),
        parsed={"uri": uri},
        origin=Call.Origin.MCP,
    )


class Subscriptions:
    """The resource subscriptions of one stream."""

    def __init__(self, context: RequestContext, push: Callable[[str], None]) -> None:
        self._context = context
        self._push = push
        self._joined: dict[str, PublishedTool] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}

    async def allowed(self, uris: Iterable[Any]) -> dict[str, PublishedTool]:
        """The URIs that can be subscribed to here, with the tools that read them."""
        found = {}
        for uri in list(uris)[:URIS_MAX]:
            if isinstance(uri, str) and (tool := await readable(self._context, uri)):
                found[uri] = tool
        return found

    async def join(self, allowed: dict[str, PublishedTool]) -> None:
        for uri, tool in allowed.items():
            if uri not in self._joined:
                await asyncio.to_thread(_note, self._context, tool, uri)
                self._context.runtime.updates.join(tool.connection, uri, self._tell)
                self._joined[uri] = tool

    def leave(self, uris: Iterable[str]) -> None:
        for uri in uris:
            tool = self._joined.pop(uri)
            self._context.runtime.updates.leave(tool.connection, uri, self._tell)

    def close(self) -> None:
        self.leave(list(self._joined))
        for check in self._checks.values():
            check.cancel()

    async def follow(self, session: str) -> None:
        """Keeps up with the session's subscriptions, which any of its requests may change."""
        nudge = self._context.runtime.updates.nudge(session)
        while True:
            nudge.clear()
            with contextlib.suppress(RecordUnavailable):
                wanted = await asyncio.to_thread(_of_session, session)
                self.leave([uri for uri in self._joined if uri not in wanted])
                await self.join(
                    await self.allowed(uri for uri in wanted if uri not in self._joined)
                )
            await set_within(nudge, LOOK_AGAIN_S)

    def _tell(self, uri: str) -> None:
        # Who floods us with changes of one resource has it checked once at a time.
        if uri not in self._checks:
            check = asyncio.create_task(self._checked(uri), name="tell of a resource")
            self._checks[uri] = check

    async def _checked(self, uri: str) -> None:
        """Told only while the agent may read it."""
        try:
            may = await self._may(uri)
        finally:
            # What changes from here on is told of once more.
            del self._checks[uri]
        if may:
            self._push(uri)

    async def _may(self, uri: str) -> bool:
        while True:
            with contextlib.suppress(RecordUnavailable):
                return bool(await readable(self._context, uri))
            await asyncio.sleep(KNOWN_AGAIN_S)


async def subscribe(rpc: RpcRequest) -> bytes:
    uri = _uri(rpc)
    tool = await readable(rpc.context, uri)
    if tool is None:
        raise await _not_here(rpc, uri)
    await asyncio.to_thread(_keep, rpc, uri)
    return rpc.result(b"{}")


async def unsubscribe(rpc: RpcRequest) -> bytes:
    uri = _uri(rpc)
    await asyncio.to_thread(_drop, rpc, uri)
    return rpc.result(b"{}")


def _uri(rpc: RpcRequest) -> str:
    if not rpc.client.session:
        raise invalid_request("A subscription belongs to a session, and none was named.")
    uri = rpc.message.params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("params.uri must be a string.")
    return uri


async def _not_here(rpc: RpcRequest, uri: str) -> RpcError:
    server = resources.server_of(rpc.context, uri)
    if not server:
        return item_calls.no_resource(rpc, {})
    if not rpc.context.offered[server].tells:
        return invalid_params("Its server does not tell of changes.")
    said = "No rule lets this agent read it without asking a person, so it does not hear of it."
    return RpcError(403, said, data={"uri": uri[:500]})


def _keep(rpc: RpcRequest, uri: str) -> None:
    session = sessions.session_key(rpc.client.session)
    try:
        with transaction.atomic():
            over = timezone.now() - timedelta(seconds=sessions.LASTS_S)
            Subscription.objects.filter(at__lt=over).delete()
            if Subscription.objects.filter(session=session).count() >= URIS_MAX:
                raise RpcError(429, f"A session subscribes to {URIS_MAX} resources at most.")
            Subscription.objects.get_or_create(
                session=session, uri=uri, defaults={"agent_id": rpc.agent_id}
            )
            _ring(session)
    finally:
        connection.close()


def _drop(rpc: RpcRequest, uri: str) -> None:
    session = sessions.session_key(rpc.client.session)
    try:
        with transaction.atomic():
            Subscription.objects.filter(session=session, uri=uri).delete()
            _ring(session)
    finally:
        connection.close()


def _ring(session: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [SUBSCRIBED, session])


def _of_session(session: str) -> list[str]:
    try:
        return list(Subscription.objects.filter(session=session).values_list("uri", flat=True))
    finally:
        connection.close()


def _note(context: RequestContext, tool: PublishedTool, uri: str) -> None:
    """Its server is about to learn that somebody wants to hear of it."""
    bearer = context.bearer
    try:
        record(
            "resource.subscribed",
            actor=context.actor,
            agent=(bearer.agent_id, bearer.agent_name),
            server=tool.server_slug,
            tool=tool.exposed_name,
            uri=uri[:2000],
        )
    finally:
        connection.close()
