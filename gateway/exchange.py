"""One request of an agent that was let in, what is known of its client, and the turn it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accounts.tokens import Bearer
from audit.services import Actor
from calls.answers import Answer
from calls.progress import OnStep
from gateway import replies
from gateway.headers import Headers
from gateway.messages import Message
from gateway.revisions import MODERN, TASKS
from gateway.runtime import Runtime, Snapshot
from gateway.stream import Progress, Reply
from registry.published import PublishedTool, PublishedToolset


@dataclass(frozen=True, slots=True)
class Exchange:
    runtime: Runtime
    snapshot: Snapshot
    bearer: Bearer
    toolset: PublishedToolset
    # Empty where all servers of the toolset are spoken to at once.
    server: str
    # By the names that stand at this address.
    tools: Mapping[str, PublishedTool]
    headers: Headers

    @property
    def place(self) -> str:
        return f"{self.toolset.slug}/{self.server}" if self.server else self.toolset.slug

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.bearer.agent_id, self.bearer.agent_name)


@dataclass(frozen=True, slots=True)
class Client:
    """What a client says of itself: with each request, or once at its session's start."""

    revision: str
    name: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    @property
    def takes_tasks(self) -> bool:
        extensions = self.capabilities.get("extensions")
        return self.modern and isinstance(extensions, dict) and TASKS in extensions

    @property
    def opens_urls(self) -> bool:
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and "url" in elicitation


def named(info: Any) -> str:
    """A client's name and version, as far as it says."""
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[key]) for key in ("name", "version") if info.get(key))[:200]


@dataclass(frozen=True, slots=True)
class Turn:
    """One JSON-RPC request on its way to its answer."""

    exchange: Exchange
    client: Client
    message: Message
    reply: Reply
    # Where the client asked to hear how far it is.
    progress: Progress | None

    @property
    def runtime(self) -> Runtime:
        return self.exchange.runtime

    @property
    def agent_id(self) -> int:
        return self.exchange.bearer.agent_id

    @property
    def on_step(self) -> OnStep | None:
        return self.progress.step if self.progress else None

    def answered(self, answer: Answer) -> bytes:
        return replies.of(answer, self.message.id, modern=self.client.modern)

    def result(self, body: bytes) -> bytes:
        return replies.result(self.message.id, body)

    def sentence(self, text: str, **meta: Any) -> bytes:
        """In place of a tool's result."""
        return self.result(replies.sentence(text, meta=meta, modern=self.client.modern))
