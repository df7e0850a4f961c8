"""Reads other MCP registries, one page at a time, through the guarded client.

Source: modelcontextprotocol/registry, docs/reference/api/openapi.yaml. A person asks for each page:
no cursor is followed that nobody asked for, and a registry that never ends costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from core import strict_json
from core.english import gettext as _
from core.guarded_http import RequestFailed, WebLimits, fetch
from core.strict_json import Ambiguous
from registry.server_json.document import Json, ServerJsonRefused, split_url

OFFICIAL = "https://registry.modelcontextprotocol.io"
META = "io.modelcontextprotocol.registry/official"
PAGE = 30
LONGEST_CURSOR = 2000
LIMITS = WebLimits(connect_s=5, idle_s=10, total_s=20, max_bytes=4 * 1024 * 1024)


class RegistryEntry(NamedTuple):
    """One server as a registry lists it."""

    name: str
    title: str
    description: str
    version: str


class RegistryPage(NamedTuple):
    entries: list[RegistryEntry]
    cursor: str


class RegistryAnswer(NamedTuple):
    """A server.json, and what its registry says of it."""

    body: Json
    status: str
    published_at: str


def base_of(url: str) -> str:
    """The registry's address without the API's part of it. Raises ServerJsonRefused."""
    base = url.strip().rstrip("/")
    base = base.removesuffix("/servers").removesuffix("/v0.1").rstrip("/")
    split = split_url(base)
    if split.scheme not in ("http", "https") or not split.hostname or "@" in split.netloc:
        raise ServerJsonRefused(_("The registry's address must be an http or https URL."))
    if split.query or split.fragment or len(base) > 500:
        raise ServerJsonRefused(_("The registry's address is too long or has a query."))
    return base


def list_servers(base: str, search: str = "", cursor: str = "") -> RegistryPage:
    """Raises ServerJsonRefused."""
    asked = {"limit": str(PAGE), "version": "latest", "search": search, "cursor": cursor}
    query = urlencode({name: text for name, text in asked.items() if text})
    answer = _get(f"{base}/v0.1/servers?{query}")
    servers, metadata = answer.get("servers"), answer.get("metadata") or {}
    if not isinstance(servers, list) or not isinstance(metadata, dict):
        raise ServerJsonRefused(_("The registry's answer has no list of servers."))
    # The page is as long as was asked for, however much is sent.
    entries = [entry for one in servers[:PAGE] if (entry := _entry(one))]
    more = metadata.get("nextCursor")
    ends = not isinstance(more, str) or len(more) > LONGEST_CURSOR or more == cursor
    return RegistryPage(entries, "" if ends else str(more))


def get_server(base: str, name: str, version: str = "latest") -> RegistryAnswer:
    """Raises ServerJsonRefused."""
    path = f"{quote(name, safe='')}/versions/{quote(version, safe='')}"
    answer = _get(f"{base}/v0.1/servers/{path}")
    body = answer.get("server")
    if not isinstance(body, dict) or body.get("name") != name:
        raise ServerJsonRefused(_("The registry answered with another server than “%s”.") % name)
    about = _about(answer)
    return RegistryAnswer(body, _plain(about, "status"), _plain(about, "publishedAt"))


def _get(url: str) -> Json:
    try:
        reply = fetch("GET", url, {"Accept": "application/json"}, limits=LIMITS)
    except RequestFailed as error:
        raise ServerJsonRefused(str(error)) from error
    if reply.status != 200:
        said = _("The registry answers with status %d.")
        raise ServerJsonRefused(said % reply.status)
    try:
        answer = strict_json.loads(reply.body)
    except Ambiguous as error:
        raise ServerJsonRefused(_("The registry's answer is not JSON: %s") % error) from error
    if not isinstance(answer, dict):
        raise ServerJsonRefused(_("The registry's answer is no JSON object."))
    return answer


def _entry(answer: Any) -> RegistryEntry | None:
    server = answer.get("server") if isinstance(answer, dict) else None
    if not isinstance(server, dict) or not _plain(server, "name"):
        return None
    texts = {name: _plain(server, name) for name in ("name", "title", "description", "version")}
    return RegistryEntry(**texts)


def _about(answer: Json) -> Json:
    meta = answer.get("_meta")
    about = meta.get(META) if isinstance(meta, dict) else None
    return about if isinstance(about, dict) else {}


def _plain(body: Json, name: str) -> str:
    found = body.get(name)
    return found[:255].replace("\0", "") if isinstance(found, str) else ""
