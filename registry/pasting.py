"""Servers out of the JSON that people have already: of MCP clients, or a server.json."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from core import json_words
from core.english import gettext as _
from core.errors import CountersignError
from registry.names import MAX_SLUG

MAX_BYTES = 256 * 1024
# Where clients keep their servers: Claude, Cursor and Gemini; VS Code, in mcp.json and settings.
_PLACES = (("mcpServers",), ("servers",), ("mcp", "servers"))
_URLS = ("url", "httpUrl", "serverUrl")
_HTTP = ("", "http", "streamable-http", "streamableHttp", "streamable_http")
_placeholder = re.compile(r"\$\{?\w|\{\w+\}").search


class PasteRefused(CountersignError):
    """The pasted text is no known configuration; says which ones are."""


@dataclass(frozen=True, slots=True)
class PastedServer:
    """One server as it was pasted; with a problem, it cannot be registered so."""

    slug: str
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    title: str = ""
    problem: str = ""


def read(text: str) -> list[PastedServer]:
    if len(text) > MAX_BYTES:
        raise PasteRefused(_("This is longer than any configuration: 256 KiB are read."))
    try:
        whole = orjson.loads(text)
        json.loads(text, object_pairs_hook=_without_doubles)
    except orjson.JSONDecodeError as error:
        raise PasteRefused(
            _("This is not JSON (line %(line)d, column %(column)d: %(why)s). Comments must go.")
            % {"line": error.lineno, "column": error.colno, "why": json_words.describe(error)}
        ) from error
    found = list(_servers(whole)) if isinstance(whole, dict) else []
    if not found:
        raise PasteRefused(
            _(
                "No server is in it. Paste an object with “mcpServers” (Claude, Cursor, Gemini) or "
                "“servers” (VS Code), or a server.json with “remotes”."
            )
        )
    return _told_apart(found)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses two servers with one name, of which JSON would silently keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, n in Counter(pair[0] for pair in pairs).items() if n > 1)
        raise PasteRefused(
            _("The name “%s” is there twice in one object: one of the two would be lost.") % twice
        )
    return found


def _told_apart(found: list[PastedServer]) -> list[PastedServer]:
    """Marks servers that would share a name here, or have none."""
    count = Counter(one.slug for one in found)
    return [_named(one, count[one.slug]) for one in found]


def _named(one: PastedServer, count: int) -> PastedServer:
    if one.problem or (one.slug and count == 1):
        return one
    if not one.slug:
        why = _("Its name has none of the characters allowed in names: a-z, 0-9, “-” and “_”.")
    else:
        why = _("%(count)d of them would have this name here: give each its own.") % {
            "count": count
        }
    return replace(one, problem=why)


def _servers(whole: dict[str, Any]) -> Iterator[PastedServer]:
    if isinstance(listed := whole.get("server"), dict):
        whole = listed
    if isinstance(whole.get("remotes"), list) or isinstance(whole.get("packages"), list):
        yield from _of_registry(whole)
        return
    places = [servers for place in _PLACES if isinstance(servers := _at(whole, place), dict)]
    for servers in places:
        yield from (_of_client(name, server) for name, server in servers.items())
    if not places and whole and all(isinstance(server, dict) for server in whole.values()):
        # The inner object alone, as it stands on many a project's page.
        yield from (_of_client(name, server) for name, server in whole.items())


def _at(whole: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        whole = whole.get(name) if isinstance(whole, dict) else None
    return whole


def _of_client(name: str, server: Any) -> PastedServer:
    slug = slugged(name)
    if not isinstance(server, dict):
        return PastedServer(slug, problem=_("It is not an object."))
    if "command" in server:
        command = " ".join(map(str, [server["command"], *_as_list(server.get("args"))]))[:200]
        return PastedServer(
            slug,
            problem=_(
                "It runs a program, “%s”, and programs come only from this host's catalogue "
                "of commands: add it there, then register it by its name."
            )
            % command,
        )
    url = next((server[key] for key in _URLS if isinstance(server.get(key), str)), "")
    kind = server.get("type") or server.get("transport") or ""
    return _checked(slug, url, str(kind), server.get("headers") or {})


def _of_registry(whole: dict[str, Any]) -> Iterator[PastedServer]:
    slug, title = slugged(str(whole.get("name", "")).rpartition("/")[2]), whole.get("title")
    title = title[:200] if isinstance(title, str) else ""
    remotes = [one for one in _as_list(whole.get("remotes")) if isinstance(one, dict)]
    spoken = [one for one in remotes if str(one.get("type", "")) in _HTTP] or remotes
    if not spoken:
        yield PastedServer(
            slug,
            problem=_(
                "It has packages to run and no remote address. Programs come only from this "
                "host's catalogue of commands."
            ),
        )
        return
    chosen = spoken[0]
    headers = {
        str(one.get("name", "")): str(one.get("value", ""))
        for one in _as_list(chosen.get("headers"))
        if isinstance(one, dict) and (one.get("value") or one.get("isRequired"))
    }
    missing = [name for name, value in headers.items() if not value]
    pasted = _checked(slug, str(chosen.get("url", "")), str(chosen.get("type", "")), headers, title)
    if missing and not pasted.problem:
        problem = _("It needs a value for the header “%s”: write it into the JSON.") % missing[0]
        pasted = PastedServer(slug, pasted.url, {}, title, problem)
    yield pasted


def _checked(slug: str, url: str, kind: str, headers: Any, title: str = "") -> PastedServer:
    if kind not in _HTTP:
        why = _("Its transport is “%s”; servers are reached by Streamable HTTP.") % kind[:40]
    elif not url:
        why = _("It has no URL.")
    elif not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        why = _("Its headers are not names with texts.")
    elif any(_placeholder(text) for text in (url, *headers.values())):
        why = _("It has a placeholder, such as ${…}: write the value itself in its place.")
    else:
        return PastedServer(slug, url, headers, title)
    return PastedServer(slug, url, {}, title, why)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def slugged(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:MAX_SLUG].rstrip("-_")
