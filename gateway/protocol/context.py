"""One request of an agent that was let in, on its way to its answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from accounts.tokens import Bearer
from audit.services import Actor
from calls.content.answers import Answer
from calls.running.log_book import FIRST, Place
from calls.running.progress import OnStep
from gateway.process.log_lines import LogStream
from gateway.process.runtime import Runtime, Snapshot
from gateway.protocol import large_results, replies, result_encoding
from gateway.protocol.client import Client
from gateway.protocol.errors import unauthorized
from gateway.protocol.header_cache import HeaderCacheEntry
from gateway.protocol.headers import Headers
from gateway.protocol.messages import RpcMessage
from gateway.protocol.reply_stream import ProgressRelay, ReplyStream
from gateway.protocol.revisions import MISSING_CAPABILITY, OLDEST
from policies.limits.compiled import LimitReached
from registry import extensions
from registry.methods import METHODS
from registry.models import OwnTool
from registry.publishing.agent_names import ToolsByName
from registry.publishing.published_items import PublishedItems
from registry.publishing.published_tools import CALL, PublishedTool, PublishedToolset


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class RequestContext:
    runtime: Runtime
    snapshot: Snapshot
    bearer: Bearer
    toolset: PublishedToolset
    # Empty where all servers of the toolset are spoken to at once.
    server: str
    # By the names that stand at this address.
    tools: ToolsByName[PublishedTool]
    headers: Headers
    # Where requests with the very same head came before.
    known: HeaderCacheEntry | None = None

    @property
    def place(self) -> str:
        return f"{self.toolset.slug}/{self.server}" if self.server else self.toolset.slug

    @property
    def searches(self) -> bool:
        """Whether tools are searched for here; at a server's own address they are listed."""
        return self.toolset.search_mode and not self.server

    @property
    def offered(self) -> Mapping[str, PublishedItems]:
        """Resources and prompts that are offered at this address, by server."""
        offered = self.toolset.offered
        if not self.server:
            return offered
        return {self.server: offered[self.server]} if self.server in offered else {}

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.bearer.agent_id, self.bearer.agent_name)

    async def renewed(self) -> RequestContext:
        """This request in the newest configuration; itself, if its address is gone. Raises RpcError
        where the token is no longer valid."""
        snapshot = await self.runtime.newest()
        if not snapshot.tokens.holds(self.bearer):
            raise unauthorized()
        toolset = snapshot.catalogue.toolset(self.toolset.slug)
        if toolset is None or self.bearer.agent_id not in toolset.agents:
            return self
        tools = toolset.by_server.get(self.server) if self.server else toolset.by_exposed
        if tools is None:
            return self
        return replace(self, snapshot=snapshot, toolset=toolset, tools=tools)


def _status(error: bytes) -> int:
    """The HTTP status of a server's error: 400 where the client lacks a capability, else 200."""
    return 400 if orjson.loads(error).get("code") == MISSING_CAPABILITY else 200


@dataclass(slots=True)
class RpcRequest:
    """One JSON-RPC request on its way to its answer."""

    context: RequestContext
    client: Client
    message: RpcMessage
    reply: ReplyStream
    # Where the client asked to hear how far it is.
    progress: ProgressRelay | None
    # Where it wants to hear what is logged.
    lines: LogStream | None = None
    # The newest question that it was asked on its stream.
    asked_last: int = 0
    # A tool of ours brings what became of a call: of any method, as the result of a tool.
    brings: bool = False
    # Its tool has no outputSchema, so a refusal may have structured content.
    structured: bool = False
    # Limits that its call passed, and that only warn.
    warnings: tuple[LimitReached, ...] = ()
    # Of the answer, where it comes as one document.
    status: int = 200
    # Answers to these have no place for a sentence, and no tasks.
    reads: bool = field(init=False)
    takes_tasks: bool = field(init=False)
    # Its client wants a task of 2025-11-25 for it; other revisions know no such wish.
    as_task: bool = field(init=False)
    # It continues an earlier call (MCP 2026-07-28, multi round-trip requests).
    is_retry: bool = field(init=False)

    def __post_init__(self) -> None:
        method, client = self.message.method, self.client
        self.reads = method != CALL and (method in METHODS or extensions.is_one(method))
        self.takes_tasks = client.takes_tasks and not self.reads
        self.is_retry = client.modern and "requestState" in self.message.params
        self.as_task = client.asks_for_tasks and not self.reads and "task" in self.message.params

    @property
    def runtime(self) -> Runtime:
        return self.context.runtime

    @property
    def agent_id(self) -> int:
        return self.context.bearer.agent_id

    async def look_again(self) -> None:
        """Reads the configuration anew: what the request names may have been published a moment
        ago."""
        self.context = await self.context.renewed()

    @property
    def hold_s(self) -> float:
        """How long it waits for people before it is told to come back."""
        return self._chosen_hold_s or settings.HOLD_S

    @property
    def _chosen_hold_s(self) -> int | None:
        """The operator's setting for the agent, or else for its toolset."""
        return self.context.bearer.hold_s or self.context.toolset.hold_s

    @property
    def learned_hold_s(self) -> float:
        """The same, and no longer than its client was seen to wait."""
        return self.runtime.habits.hold_s(self.agent_id, self.client.name, self.hold_s)

    @property
    def first_hold_s(self) -> float:
        """The same of the call itself: where its client hears nothing meanwhile it may be one that
        gives up after 5 s, and its model can come back."""
        usual, can_come_back = self.learned_hold_s, OwnTool.AWAIT in self.context.toolset.own_tools
        if self._chosen_hold_s or self.progress or self.reads or not can_come_back:
            return usual
        return min(usual, settings.FIRST_HOLD_S)

    def waiting(self, call_id: UUID) -> AbstractContextManager[None]:
        """Notes, while entered, that the request waits for the call, from which `learned_hold_s`
        follows."""
        return self.runtime.habits.waiting(self.agent_id, self.client.name, call_id)

    @property
    def on_step(self) -> OnStep | None:
        return self.progress.step if self.progress else None

    @property
    def logged(self) -> Place:
        """The first line of the log that it was not told."""
        return self.lines.place if self.lines else FIRST

    @property
    def warnings_meta(self) -> dict[str, Any]:
        """In `_meta` of an answer of ours."""
        return {replies.LIMITS: replies.warnings(self.warnings)} if self.warnings else {}

    def answered(self, answer: Answer) -> bytes:
        if self.warnings:
            answer = replace(answer, warnings=self.warnings)
        modern, method = self.client.modern, self.message.method
        if answer.error is not None and modern:
            self.status = _status(answer.error)
        if self.reads:
            return result_encoding.of(answer, self.message.id, method=method, modern=modern)
        if self.brings and answer.result is not None:
            answer = replace(answer, result=result_encoding.as_tool(answer.result))
        return replies.of(
            self.fitted(answer), self.message.id, modern=modern, structured=self.structured
        )

    def fitted(self, answer: Answer) -> Answer:
        """With links in place of what is more than this request's agent takes."""
        meta, most = self.message.meta, settings.AGENT_RESULT_BYTES
        if large_results.MAX_BYTES in meta:
            most = large_results.wanted(meta, default=most)
        if answer.result is None or len(answer.result) <= most:
            return answer
        # The oldest revision knows no links in results.
        links = self.client.revision != OLDEST
        body = large_results.shorten(answer.result, answer.call_id, most=most, links=links)
        return replace(answer, result=body)

    def result(self, body: bytes) -> bytes:
        return replies.result(self.message.id, body)

    def sentence(self, text: str, **meta: Any) -> bytes:
        """In place of a result."""
        if self.warnings:
            meta["limits"] = replies.warnings(self.warnings)
            text = " ".join([text, *(one.sentence for one in self.warnings)])
        if self.reads:
            return result_encoding.not_given(self.message.id, result_encoding.WAITS, text, **meta)
        modern, structured = self.client.modern, self.structured
        return self.result(replies.sentence(text, meta=meta, modern=modern, structured=structured))
