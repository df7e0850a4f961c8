"""Discovery: asks servers what they offer and stores the answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import psycopg
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit.services import SYSTEM, record
from core import abilities
from core.english import gettext as _
from core.english import ngettext
from core.errors import CountersignError
from core.text import revealed
from registry import extensions, methods, names, services
from registry.connections import Commands, ServerConnection, Unreachable, connection
from registry.credentials import credential_store
from registry.discovery.external_scanner import (
    NOT_SCANNED,
    TOOL,
    ExternalScan,
    ScannedDefinition,
    scan_new,
)
from registry.icons import declared
from registry.models import Discovery, Item, Server, Tool, usual_relays
from registry.models.versioned import Sighting, Version
from registry.openapi.importing import listing
from registry.schemas import definitions
from registry.upstream import Limits, NotSent, Target, UpstreamError, Upstreams
from registry.upstream import ServerListing as Found
from registry.versions import item_versions, tool_versions

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LIMITS = Limits(connect_s=5, idle_s=20, total_s=60)
# Somebody sits before the page and waits.
PROBE_LIMITS = Limits(connect_s=5, idle_s=10, total_s=20)
KEPT = 50
# Commands take a second or two of a processor to start; the rest of the house needs it too.
AT_ONCE = 2


async def look_at(server_ids: Iterable[int]) -> list[Discovery]:
    """Discovers these servers over connections and processes that are closed afterwards."""
    upstreams = Upstreams(networks=settings.UPSTREAM_NETWORKS)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(server_id: int) -> Discovery:
        async with room:
            try:
                return await discover(server_id, upstreams)
            except Exception:
                # A mistake of ours about one server must not keep the others from being asked.
                log.exception("server %d could not be looked at", server_id)
                server = await _in_thread(Server.objects.get, pk=server_id)
                return await _in_thread(_noted, server, False, _("This look failed: see the log."))

    try:
        return await asyncio.gather(*map(one, server_ids))
    finally:
        await upstreams.aclose()


async def enabled_ids() -> list[int]:
    """Ids of the servers that are discovered periodically."""
    enabled = Server.objects.filter(enabled=True).order_by("pk")
    return await _in_thread(lambda: list(enabled.values_list("pk", flat=True)))


async def discover(server_id: int, upstreams: Upstreams) -> Discovery:
    """Discovers one server. Its failures are stored in the returned row, not raised."""
    async with _turn(server_id):
        return await _discover(server_id, upstreams)


@contextlib.asynccontextmanager
async def _turn(server_id: int) -> AsyncIterator[None]:
    """Lets one discovery of a server run at a time; the next one waits, since it may need newer
    lists than those being read."""
    async with await psycopg.AsyncConnection.connect(
        settings.DATABASE_DIRECT_URL,
        autocommit=True,
        connect_timeout=5,
        application_name="countersign discovery",
    ) as link:
        await link.execute("SELECT pg_advisory_lock(71003, %s)", [server_id])
        yield


class ServerSession:
    """One connection or process of a server, for discovery and for its list changes."""

    def __init__(self, server_id: int, told: Callable[[], None]) -> None:
        self._server_id = server_id
        networks = settings.UPSTREAM_NETWORKS
        self._upstreams = Upstreams(networks=networks, on_lists=lambda _key: told())

    async def keep(self, opened: asyncio.Event) -> None:
        """Keeps the session open until the server ends it. Raises Unreachable, with the reason."""
        server = await _in_thread(Server.objects.get, pk=self._server_id)
        try:
            await self._upstreams.attend(await _in_thread(_target, server), opened)
        except UpstreamError as error:
            raise Unreachable(str(error)) from error

    async def look(self, *, on_its_word: bool) -> Discovery:
        row = await discover(self._server_id, self._upstreams)
        if on_its_word:
            # Later looks may have pushed it out, and its server may be gone.
            kept = Discovery.objects.filter(pk=row.pk)
            await _in_thread(kept.update, on_its_word=True)
        return row

    async def aclose(self) -> None:
        await self._upstreams.aclose()


async def _discover(server_id: int, upstreams: Upstreams) -> Discovery:
    server = await _in_thread(Server.objects.get, pk=server_id)
    if not server.enabled:
        return await _in_thread(_noted, server, False, _("The server is disabled: not asked."))
    try:
        if server.transport == Server.Transport.API:
            found = await _in_thread(listing, server)
        else:
            found = await upstreams.discover(await _in_thread(_target, server), LIMITS)
    except (UpstreamError, Unreachable) as error:
        return await _in_thread(fail, server, str(error))
    external = NOT_SCANNED
    if settings.SCANNER:
        external = await _in_thread(scan_new, server, list(_scanned(found)))
    return await _in_thread(apply, server, found, external)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The reply of an unregistered server."""

    name: str
    version: str
    revision: str
    by_events: bool
    # Name, description, and why it could not be offered, if it could not.
    tools: list[tuple[str, str, str]]


async def probe(slug: str, reached: ServerConnection) -> ProbeResult:
    """Asks a server once and stores nothing. Raises Unreachable with the server's own words."""
    upstreams = Upstreams(networks=settings.UPSTREAM_NETWORKS)
    try:
        found = await upstreams.discover(_target_of(reached, usual_relays()), PROBE_LIMITS)
    except UpstreamError as error:
        detail = error.detail if isinstance(error, NotSent) else ""
        raise Unreachable("\n".join(filter(None, (str(error), detail)))[:4000]) from error
    finally:
        await upstreams.aclose()
    taken = names.Names()
    tools = [_probed(slug, tool, taken) for tool in found.tools]
    tools += [(item["name"], str(item["description"]), "") for item in _methods(found)]
    info = {key: str(found.server_info.get(key) or "")[:200] for key in ("name", "version")}
    return ProbeResult(
        revision=found.revision,
        by_events=found.by_events,
        tools=[*tools, *((name, "", why) for name, why in found.left_out)],
        **info,
    )


def _probed(slug: str, tool: Mapping[str, Any], taken: names.Names) -> tuple[str, str, str]:
    name, description = str(tool["name"]), str(tool.get("description") or "")
    try:
        taken.add(names.exposed(slug, name, taken))
    except names.NameRefused as error:
        return name, description, str(error)
    return name, description, " ".join(definitions.problems(tool))


async def _in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    return await database_sync_to_async(work, thread_sensitive=False)(*arguments, **named)


def _target(server: Server) -> Target:
    """Raises Unreachable. Where each person has their own credential, its owner's is used."""
    reached = connection(server, Commands())
    if server.sign_in:
        try:
            found = credential_store.for_discovery(server)
        except CountersignError as error:
            raise Unreachable(str(error)) from error
        reached = reached.with_credential(found.row, found.headers)
    return _target_of(reached, server.relays)


def _target_of(known: ServerConnection, relays: Iterable[str]) -> Target:
    """`relays`: what it may ask of agents. Some servers list tools only to who can be asked."""
    return Target(
        key=known.key,
        transport=known.transport,
        url=known.url,
        argv=known.argv,
        env=known.env,
        headers=known.headers,
        revision=known.revision,
        wanted=known.wanted,
        by_events=known.by_events,
        asks=abilities.of(frozenset(relays)),
    )


@transaction.atomic
def fail(asked: Server, reason: str) -> Discovery:
    """Stores that the discovery failed. The server's tools stay as they are."""
    server = Server.objects.select_for_update().get(pk=asked.pk)
    reason = revealed(reason)[:2000]
    if server.connection_version == asked.connection_version:
        _set_health(server, Server.Health.DOWN, reason)
    return _noted(server, False, reason)


@transaction.atomic
def apply(asked: Server, found: Found, external: ExternalScan = NOT_SCANNED) -> Discovery:
    """Stores the answer, unless the server's address has changed meanwhile."""
    server = Server.objects.select_for_update().get(pk=asked.pk)
    if server.connection_version != asked.connection_version:
        return _noted(server, False, _("The server's connection was changed while it was asked."))

    first, before = server.discovered_at is None, server.server_info.get("version", "")
    _take_down(server, found)
    _set_health(server, Server.Health.OK, "")
    stated = server.server_info.get("version", "")
    look = _Look(server, external, stated if stated == before else None)
    look.at(found)
    if first and (server.publish_on_discovery or settings.PUBLISH_ON_DISCOVERY):
        look.publish()
    return _noted(server, True, look.summary(found), moved=look.moved)


class _Look:
    """One discovery of a server's tools, while the server's row is locked. `stated`: as in
    `Sighting`."""

    def __init__(self, server: Server, external: ExternalScan, stated: str | None) -> None:
        self._server, self._external, self._stated = server, external, stated
        self._identity = services.identity_of(server)
        self._known = {tool.name: tool for tool in server.tools.for_change()}
        self._taken = names.Names(tool.exposed_name for tool in self._known.values())
        self._seen: list[Sighting[Tool]] = []
        self._moves: Counter[str] = Counter()
        self._said: list[str] = [*external.said]

    def at(self, found: Found) -> None:
        offered = methods.unknown(_lists_by_kind(found))
        for tool in found.tools:
            if methods.is_one(tool["name"]):
                # It could pass for the method that has this name here, or once had.
                self._leave_out(tool["name"], _("Methods are called so: rename it there."))
            elif self._take(tool):
                offered.add(tool["name"])
        listed = map(extensions.definition, self._server.methods)
        for method in (*_methods(found), *listed):
            self._take(method)
            offered.add(method["name"])
        for name, why in found.left_out:
            self._leave_out(name, why)
        self._moves.update(tool_versions.see_all(self._seen, by=SYSTEM))
        gone = [known for name, known in self._known.items() if name not in offered]
        self._moves.update(tool_versions.miss_all(gone, by=SYSTEM))
        self._at_items(found)

    def _at_items(self, found: Found) -> None:
        for kind, items in _lists_by_kind(found).items():
            if items is None:
                continue
            shelf = item_versions.ItemSync(self._server, kind, self._identity, self._stated)
            for item in items:
                try:
                    key = shelf.key_of(item)
                    shelf.take(item, self._external.of(kind, key))
                except definitions.Unreadable as error:
                    self._leave_out(shelf.key_of(item), str(error))
            self._moves.update(shelf.see(by=SYSTEM) + shelf.miss_others(by=SYSTEM))

    def _take(self, tool: Mapping[str, Any]) -> bool:
        try:
            body = definitions.body(tool)
            digest = definitions.digest(self._identity, tool)
            row = self._known.get(tool["name"]) or self._new(tool["name"])
        except (definitions.Unreadable, names.NameRefused) as error:
            self._leave_out(tool["name"], str(error))
            return False
        # Definitions of methods are ours, and a release of ours may change them.
        stated = None if methods.is_one(tool["name"]) else self._stated
        external = self._external.of(TOOL, tool["name"])
        self._seen.append(Sighting(row, digest, body, external, stated))
        return True

    def publish(self) -> None:
        reason = _("Published on first discovery, as this installation is set up.")
        new = self._server.tools.filter(state=Tool.State.NEW, latest__isnull=False)
        well = [tool for tool in new.select_related("latest") if self._is_well(tool)]
        if well:
            tool_versions.publish_new(well, by=SYSTEM, reason=reason)
            self._moves["definition.published"] += len(well)
        waiting = self._server.items.waiting().for_change()
        if items := [item for item in waiting if self._needs_no_review(item.key, item.latest)]:
            item_versions.publish_new(items, by=SYSTEM, reason=reason)
            self._moves["item.published"] += len(items)

    def _is_well(self, tool: Tool) -> bool:
        problems = definitions.problems(tool.latest.content) if tool.latest else []
        if problems:
            self._said.append(f"{tool.exposed_name}: {' '.join(problems)}")
        return not problems and self._needs_no_review(tool.exposed_name, tool.latest)

    def _needs_no_review(self, name: str, version: Version | None) -> bool:
        """Whether nothing was found in it that who publishes it has to see."""
        risks = version.findings.risks if version else []
        if not risks:
            return True
        said = _("“%s” is not published automatically: the findings must be reviewed first.")
        if {one.rule for one in risks} == {"external-failed"}:
            said = _("“%s” is not published by itself: the external scanner did not look at it.")
        self._said.append(said % name[:200])
        return False

    @property
    def moved(self) -> bool:
        return any(action != "left_out" for action in self._moves)

    def summary(self, found: Found) -> str:
        moved = [_moved(action, n) for action, n in sorted(self._moves.items())]
        return revealed("\n".join([" ".join([*_counted(found), *moved]), *self._said])[:20_000])

    def _new(self, name: str) -> Tool:
        placed = names.of_method if methods.is_one(name) else names.exposed
        exposed_name = placed(self._server.slug, name, self._taken)
        self._taken.add(exposed_name)
        return Tool(server=self._server, name=name, exposed_name=exposed_name)

    def _leave_out(self, name: str, why: str) -> None:
        self._moves["left_out"] += 1
        self._said.append(_("“%(name)s” is left out: %(why)s") % {"name": name[:200], "why": why})


def _lists_by_kind(found: Found) -> dict[Item.Kind, methods.Listed]:
    return {
        Item.Kind.RESOURCE: found.resources,
        Item.Kind.TEMPLATE: found.templates,
        Item.Kind.PROMPT: found.prompts,
        Item.Kind.INSTRUCTIONS: _instructions(found.instructions),
    }


def _scanned(found: Found) -> Iterator[ScannedDefinition]:
    for tool in found.tools:
        yield ScannedDefinition(TOOL, tool["name"], tool)
    for kind, items in _lists_by_kind(found).items():
        for item in items or ():
            yield ScannedDefinition(kind, str(item[item_versions.KEY[kind]]), item)


def _instructions(text: str) -> list[dict[str, Any]]:
    return [{"name": "instructions", "text": text}] if text.strip() else []


def _methods(found: Found) -> Iterator[dict[str, Any]]:
    return methods.of(_lists_by_kind(found), found.capabilities)


def _counted(found: Found) -> list[str]:
    count = len(found.tools)
    said = [ngettext("Found %d tool.", "Found %d tools.", count) % count]
    sentences = {
        Item.Kind.RESOURCE: _("Resources: %d."),
        Item.Kind.TEMPLATE: _("Resource templates: %d."),
        Item.Kind.PROMPT: _("Prompts: %d."),
        Item.Kind.INSTRUCTIONS: _("Instructions: %d."),
    }
    return said + [
        sentences[kind] % len(items) for kind, items in _lists_by_kind(found).items() if items
    ]


def _moved(action: str, count: int) -> str:
    sentences = {
        "definition.found": _("New, to be published: %d."),
        "definition.changed": _("Changed, needs review: %d."),
        "definition.restored": _("As published before: %d."),
        "definition.published": _("Published: %d."),
        "tool.returned": _("Back again, to be published: %d."),
        "tool.vanished": _("Gone: %d."),
        "item.found": _("New beside tools, to be published: %d."),
        "item.changed": _("Changed beside tools, needs review: %d."),
        "item.restored": _("Beside tools, as published before: %d."),
        "item.published": _("Published beside tools: %d."),
        "item.returned": _("Back again beside tools, to be published: %d."),
        "item.vanished": _("Gone beside tools: %d."),
        "left_out": _("Left out: %d."),
    }
    return sentences[action] % count


def _take_down(server: Server, found: Found) -> None:
    info: dict[str, Any] = {
        key: revealed(value)[:200]
        for key in ("name", "title", "version")
        if isinstance(value := found.server_info.get(key), str)
    }
    if icons := declared.chosen_icons(found.server_info.get("icons")):
        info["icons"] = icons
    fields: dict[str, Any] = {"discovered_at": timezone.now(), "server_info": info}
    if found.named:
        # Asked in another way it names none: what it said before still holds.
        fields["named_revisions"] = list(found.named)
    # Named only when it moved: naming it makes every process read its configuration again.
    if server.revision != found.revision:
        fields["revision"] = found.revision
    if server.by_events != found.by_events:
        fields["by_events"] = found.by_events
    if server.tells_of_updates != (tells := _tells_of_updates(found)):
        fields["tells_of_updates"] = tells
    if server.tells_of_lists != (tells := _tells_of_lists(found)):
        fields["tells_of_lists"] = tells
    for name, value in fields.items():
        setattr(server, name, value)
    server.save(update_fields=list(fields))


def _tells_of_updates(found: Found) -> bool:
    declared = found.capabilities.get("resources")
    return isinstance(declared, dict) and declared.get("subscribe") is True


def _tells_of_lists(found: Found) -> bool:
    declared = [found.capabilities.get(kind) for kind in ("tools", "prompts", "resources")]
    return any(isinstance(one, dict) and one.get("listChanged") is True for one in declared)


def _set_health(server: Server, health: Server.Health, reason: str) -> None:
    changed = server.health != health
    if changed:
        server.health_since = timezone.now()
    server.health, server.health_reason = health, reason
    server.save(update_fields=["health", "health_reason", "health_since"])
    if changed:
        action = "server.reached" if health == Server.Health.OK else "server.lost"
        record(action, actor=SYSTEM, server=server.slug, reason=reason)


def _noted(server: Server, succeeded: bool, summary: str, *, moved: bool = False) -> Discovery:
    row = Discovery.objects.create(server=server, succeeded=succeeded, summary=summary, moved=moved)
    old = server.discoveries.order_by("-pk").values_list("pk", flat=True)[KEPT:]
    Discovery.objects.filter(pk__in=list(old)).delete()
    return row
