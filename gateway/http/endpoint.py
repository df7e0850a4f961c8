"""The agents' endpoint: a raw ASGI application, in front of everything that Django does.

Thousands of requests a second pass here on one core. What is refused is refused in the order of
what it costs us: address, origin, size, token, body, meaning.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.conf import settings

from accounts.agent_sign_in import access_tokens
from accounts.tokens import Bearer
from core import figures, outage
from core.errors import RecordUnavailable
from gateway.dispatch import dispatch
from gateway.http import body, health, proofs, request_checks, resource_metadata
from gateway.http.address_usage import AddressUsage
from gateway.http.body import Disconnected
from gateway.http.proofs import ProofRejected, check_scheme
from gateway.http.rejected_tokens import RejectedTokens
from gateway.http.signed_tokens import SignedTokens, address_of
from gateway.http.token_usage import TokenUsage
from gateway.process.current import close_runtime, get_runtime
from gateway.process.runtime import Runtime, Snapshot
from gateway.protocol.context import RequestContext
from gateway.protocol.errors import CLOSE, Header, RpcError, unauthorized, unavailable
from gateway.protocol.header_cache import BODY, KNOWN, HeaderCacheEntry
from gateway.protocol.headers import Headers
from gateway.protocol.reply_stream import respond
from gateway.submit.token_scope import NOT_FOR_TOOLSET, is_switched_off
from gateway.subscriptions import streams
from registry.publishing.published_tools import PublishedToolset

LOOK_AGAIN_S = 0.05
LEAVE_S = 3.0
# Of the time that a process has to end, for answers on their way.
ANSWERED_S = 5.0


NO_RECORD = "The record cannot be read or written right now. Try again soon."


class InFlightCounter:
    """How many are inside, for whoever wants to close."""

    def __init__(self) -> None:
        self._inside = 0
        self._emptied: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._inside -= 1
        if self._emptied is not None and not self._inside and not self._emptied.done():
            self._emptied.set_result(None)

    async def empty(self, *, seconds: float) -> None:
        """Waits until no request is left, at most so long."""
        if self._inside:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._emptied], timeout=seconds)


class Endpoint:
    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._tokens = request_checks.TokenCache()
        self._signed = SignedTokens()
        self._rejected = RejectedTokens()
        self._used = TokenUsage()
        self._addresses = AddressUsage()
        self._looked_at = float("-inf")
        self._in_flight = InFlightCounter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._no_request(scope, receive, send)
            return
        with self._in_flight:
            try:
                if scope["path"] in health.PATHS:
                    await health.respond(scope, send, self._what_is_wrong)
                    return
                if scope["path"].startswith(resource_metadata.WELL_KNOWN):
                    await self._describe(scope, send)
                    return
                if scope["path"] == resource_metadata.ISSUER_KNOWN:
                    await respond(send, 307, b"", resource_metadata.to_issuer())
                    return
                context = await self._admit(scope)
                if scope["method"] == "GET":
                    await streams.get(context, receive, send)
                    return
                content = scope.get(BODY)
                if content is None:
                    content = await body.read(receive, limit=request_checks.MAX_BODY)
                    if await context.runtime.fresh() is not context.snapshot:
                        # It may have come slowly, and the token may be revoked since.
                        context = await self._admit(scope)
                await dispatch.answer(context, content, receive, send)
            except RpcError as refusal:
                await self._refuse(scope, receive, send, refusal)
            except RecordUnavailable as error:
                await self._refuse(scope, receive, send, unavailable(error))
            except outage.AWAY:
                await self._refuse(scope, receive, send, unavailable(RecordUnavailable(NO_RECORD)))
            except Disconnected:
                return

    async def _no_request(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            # A WebSocket: refused before it is accepted.
            await send({"type": "websocket.close", "code": 1000})

    async def _refuse(self, scope: Any, receive: Any, send: Any, refusal: RpcError) -> None:
        figures.refused[refusal.status] += 1
        if refusal.status == 401:
            refusal.headers = (await self._challenge(scope, refusal), CLOSE)
        # Whoever expects to be told before sending a body has not sent it.
        expects = any(name == b"expect" for name, _ in scope["headers"])
        if CLOSE in refusal.headers and not expects and BODY not in scope:
            await body.discard(receive)
        await respond(send, refusal.status, refusal.body(), refusal.headers)

    async def _challenge(self, scope: Any, refusal: RpcError) -> Header:
        path, headers = scope["path"], Headers(scope["headers"])
        try:
            is_open = await self._gives_tokens(path)
        except (RecordUnavailable, *outage.AWAY):
            is_open = False
        if not isinstance(refusal, ProofRejected):
            # Source: RFC 6750, 3.1: none where no token was sent.
            error = "invalid_token" if request_checks.token_of(headers) else ""
            return resource_metadata.challenge(path, error=error, is_open=is_open)
        resource = resource_metadata.resource_of(*_address(scope))
        await self._rejected.note_proof(scope, headers, str(refusal), resource)
        return resource_metadata.proof_challenge(path, refusal.error, str(refusal), is_open=is_open)

    async def _describe(self, scope: Any, send: Any) -> None:
        request_checks.check_origin(Headers(scope["headers"]), read_only=True)
        if scope["method"] != "GET":
            raise RpcError(405, "Only GET here.", headers=((b"allow", b"GET"), CLOSE))
        is_open = await self._gives_tokens(scope["path"])
        said = resource_metadata.document(scope["path"], is_open=is_open)
        await respond(send, 200, said, resource_metadata.HEADERS)

    async def _gives_tokens(self, path: str) -> bool:
        """Whether our token endpoint gives tokens for the toolset at this path: to clients that
        users sign in, or to workloads of its agents."""
        snapshot = await (self._runtime or await self._start()).fresh()
        toolset = snapshot.catalogue.toolset(resource_metadata.slug_of(path))
        if toolset is None:
            return False
        workloads = snapshot.tokens.workload_agents
        return toolset.agent_sign_in or not workloads.isdisjoint(toolset.agents)

    async def _admit(self, scope: Any) -> RequestContext:
        known: HeaderCacheEntry | None = scope.get(KNOWN)
        headers = Headers(scope["headers"])
        if known is not None and known.address is not None:
            toolset, server = known.address
        else:
            toolset, server = _address(scope)
            request_checks.check_origin(headers)
            request_checks.check_size(headers)
        runtime = self._runtime or await self._start()
        snapshot = await runtime.fresh()
        try:
            bearer, found = self._recognize(snapshot, headers, toolset, server)
        except RpcError:
            if request_checks.looks_signed(request_checks.token_of(headers)):
                resource = resource_metadata.resource_of(toolset, server)
                snapshot, bearer = await self._check_signed(scope, runtime, headers, resource)
                found = _toolset(snapshot, toolset, server, bearer)
            else:
                snapshot = await self._look_again(runtime, headers)
                bearer, found = await self._recognize_late(
                    scope, snapshot, headers, toolset, server
                )
        if bearer.jkt:
            # As the client wrote it.
            url = resource_metadata.resource_of(toolset, server)
            url += "/" if scope["path"].endswith("/") else ""
            await proofs.prove(scope, headers, bearer, url, runtime.call_runtime.journal)
        if scope["method"] == "GET":
            request_checks.check_ear(headers)
        elif known is None or known.address is None:
            request_checks.check_form(headers)
            if known is not None:
                known.address = toolset, server
        if bearer.token_id not in self._used.tokens:
            self._used.note(bearer.token_id, address_of(scope, headers))
        peer = scope["client"][0] if scope.get("client") else ""
        if known is None or known.peer != peer or known.noted_until < time.monotonic():
            until = await self._addresses.note(bearer.agent_id, peer, headers)
            if known is not None:
                known.peer, known.noted_until = peer, until
        tools = found.by_server[server] if server else found.by_exposed
        return RequestContext(runtime, snapshot, bearer, found, server, tools, headers, known)

    def _recognize(
        self, snapshot: Snapshot, headers: Headers, toolset: str, server: str
    ) -> tuple[Bearer, PublishedToolset]:
        bearer = self._tokens.bearer(headers, snapshot.tokens)
        signed_in = bearer.signed_in
        if signed_in and signed_in.resource != resource_metadata.resource_of(toolset, server):
            raise unauthorized()
        found = _toolset(snapshot, toolset, server, bearer)
        if signed_in and is_switched_off(found, bearer):
            raise unauthorized()
        return bearer, found

    async def _recognize_late(
        self, scope: Any, snapshot: Snapshot, headers: Headers, toolset: str, server: str
    ) -> tuple[Bearer, PublishedToolset]:
        try:
            return self._recognize(snapshot, headers, toolset, server)
        except ProofRejected:
            raise
        except NotForToolset as error:
            resource = resource_metadata.resource_of(toolset, server)
            await self._rejected.note_proof(scope, headers, str(error), resource)
            raise
        except RpcError as error:
            token = request_checks.token_of(headers)
            if access_tokens.has_form(token) or (token and error.status == 401):
                resource = resource_metadata.resource_of(toolset, server)
                await self._rejected.note(scope, headers, token, snapshot.tokens, resource)
            raise

    async def _check_signed(
        self, scope: Any, runtime: Runtime, headers: Headers, resource: str
    ) -> tuple[Snapshot, Bearer]:
        # A client, or its owner's account, may be a moment old too.
        checked = await self._look_again(runtime, headers)
        bearer = await self._signed.bearer(scope, headers, checked, resource)
        # The provider may have taken its time over its keys, and the configuration have changed.
        snapshot = await runtime.fresh()
        if snapshot is not checked and not snapshot.tokens.holds(bearer):
            bearer = await self._signed.bearer(scope, headers, snapshot, resource)
        check_scheme(headers, bearer)
        self._tokens.learn(headers, snapshot.tokens, bearer)
        return snapshot, bearer

    async def _look_again(self, runtime: Runtime, headers: Headers) -> Snapshot:
        """A token or toolset may be a moment old. Strangers cannot make us look all the time."""
        if not request_checks.shows_token(headers):
            return await runtime.fresh()
        # Whoever comes within the same moment shares one look.
        await asyncio.sleep(max(0.0, self._looked_at + LOOK_AGAIN_S - time.monotonic()))
        self._looked_at = time.monotonic()
        return await runtime.newest()

    async def _start(self) -> Runtime:
        self._runtime = await get_runtime()
        return self._runtime

    async def _what_is_wrong(self) -> str:
        runtime = self._runtime or await self._start()
        await runtime.fresh()
        return "" if runtime.call_runtime.listener.is_listening else health.NOT_LISTENING

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                # Calls that are cut off are written down before the record is closed.
                await self._in_flight.empty(seconds=LEAVE_S)
                await close_runtime()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    def shorten_waits(self) -> None:
        """This process is about to end: who would wait for longer comes back to another one."""
        if self._runtime is not None:
            self._runtime.watch.shorten_waits(settings.STOP_WITHIN_S - ANSWERED_S)


def _address(scope: Any) -> tuple[str, str]:
    """/mcp/<toolset> or /mcp/<toolset>/<server>, also with a slash at the end."""
    parts = scope["path"].removesuffix("/").split("/")
    if len(parts) not in (3, 4) or parts[1] != "mcp" or not all(parts[2:]):
        raise _nothing_here()
    if scope["method"] not in ("POST", "GET"):
        message = "Only POST here, and GET beside a session: there is none to DELETE."
        raise RpcError(405, message, headers=((b"allow", b"POST"), CLOSE))
    return parts[2], parts[3] if len(parts) == 4 else ""


class NotForToolset(RpcError):
    """A valid token that is limited to other toolsets."""

    def __init__(self) -> None:
        super().__init__(403, NOT_FOR_TOOLSET, headers=(CLOSE,))


def _toolset(snapshot: Snapshot, slug: str, server: str, bearer: Bearer) -> PublishedToolset:
    """The toolset at this address. Raises the same error for another agent's as for one that does
    not exist."""
    toolset = snapshot.catalogue.toolset(slug)
    if toolset is None or bearer.agent_id not in toolset.agents:
        raise _nothing_here()
    if bearer.toolsets and slug not in bearer.toolsets:
        raise NotForToolset
    if server and server not in toolset.by_server:
        raise _nothing_here()
    return toolset


def _nothing_here() -> RpcError:
    return RpcError(404, "There is no such toolset for this agent.", headers=(CLOSE,))


app = Endpoint()
