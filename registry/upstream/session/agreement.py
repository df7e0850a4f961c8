"""The agreement with an HTTP server: revision, session, and the request heads that follow."""

import re
from dataclasses import dataclass, field
from typing import Any

import orjson
from yarl import URL

from core.kept_english import gettext as _
from registry.upstream.headers import encode
from registry.upstream.session.log_level import Loudness
from registry.upstream.transport.http_request import head
from registry.upstream.values import NotSent, Target
from registry.upstream.wire import MODERN

_COMMON = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    # Nothing is decompressed: a small bomb must stay small.
    "Accept-Encoding": "identity",
    "User-Agent": "countersign",
}
_NOT_FOR_TARGETS = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "expect"),
    *("host", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
}
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")
_PREPARED = 1000


@dataclass(slots=True)
class Agreement:
    """The outcome of initialization with a server; immutable, and replaced when it is repeated."""

    revision: str
    url: URL
    headers: dict[str, str]
    # What the server said of itself; empty where a hint spared the question.
    opening: dict[str, Any] = field(default_factory=dict)
    session: str = ""
    loudness: Loudness = field(default_factory=Loudness)
    # On the loop's clock: the server knew its session then.
    known_at: float = 0.0
    # It speaks 2026-07-28: asked several times of each call.
    modern: bool = field(init=False)
    _prepared: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.modern = self.revision == MODERN

    def for_tool(self, name: str) -> tuple[bytes, bytes]:
        """The head of a tool's calls and its name as JSON, made once."""
        if name not in self._prepared:
            if len(self._prepared) >= _PREPARED:
                self._prepared.clear()
            self._prepared[name] = (self.head("tools/call", name), orjson.dumps(name))
        return self._prepared[name]

    def head(self, method: str = "", name: str = "") -> bytes:
        headers = self.headers.copy()
        if self.modern and method:
            headers["Mcp-Method"] = method
        if self.modern and name:
            headers["Mcp-Name"] = encode(name)
        return head("POST", self.url, headers)

    def listening(self) -> bytes:
        return head("GET", self.url, self.headers | {"Accept": "text/event-stream"})

    def resuming(self, event: str) -> bytes:
        headers = self.headers | {"Accept": "text/event-stream", "Last-Event-ID": event}
        return head("GET", self.url, headers)


def check_wanted(target: Target, revision: str) -> None:
    """Raises NotSent where an operator wants another revision to be spoken."""
    if target.wanted and revision != target.wanted:
        said = _(
            "The server is to be spoken to in MCP %(wanted)s, as is set for it here, and "
            "speaks %(spoken)s."
        )
        raise NotSent(said % {"wanted": target.wanted, "spoken": revision})


def base_headers(target: Target) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in target.headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise NotSent(_("The server's header “%s” cannot be sent in HTTP.") % name[:60])
        if name.lower() in _NOT_FOR_TARGETS or name.lower().startswith("mcp-"):
            raise NotSent(_("The server's header “%s” is set by Countersign itself.") % name[:60])
        headers[name] = value
    return headers | _COMMON
