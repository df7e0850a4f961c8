"""A tool's definition was seen: is it the published one, a new one, or a change to be held?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Max

from audit.models import Entry
from audit.services import Actor, entry, record, record_all
from registry import listing
from registry.models import Definition, Publication, Tool

# Rows of one statement.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a server says a tool is, which may have no row yet."""

    tool: Tool
    digest: str
    body: str


def see(tool: Tool, *, digest: str, body: str, by: Actor) -> str:
    (action,) = see_all([Sighting(tool, digest, body)], by=by)
    return action


def see_all(seen: Sequence[Sighting], *, by: Actor) -> list[str]:
    """Keep what was seen as each tool's latest definition and let its state follow.

    Returns for each the entry's action, or nothing where nothing moved. Only the published digest
    serves; anything else is held until a person publishes it. The caller holds the rows of
    server and tools.
    """
    actions = list(map(_action, seen))
    moved = [(one, action) for one, action in zip(seen, actions, strict=True) if action]
    if moved:
        _keep([one for one, _ in moved])
        record_all([_recorded(action, one.tool, by) for one, action in moved])
    return actions


def miss(tool: Tool, *, by: Actor) -> str:
    """Its server no longer lists it. What was published stays known, should it come back."""
    if tool.state == Tool.State.RETIRED:
        return ""
    tool.state = Tool.State.RETIRED
    tool.save(update_fields=["state"])
    record("tool.vanished", actor=by, server=tool.server.slug, tool=tool.exposed_name)
    return "tool.vanished"


def publish_new(tools: Sequence[Tool], *, by: Actor, reason: str) -> None:
    """Let agents have the latest definition of each, which is known to have no problem. None was
    published before, and the caller holds their server's row."""
    Tool.objects.filter(pk__in=[tool.pk for tool in tools]).update(
        published=F("latest"), state=Tool.State.PUBLISHED
    )
    record_all([_recorded("definition.published", tool, by, reason) for tool in tools])
    Publication.objects.bulk_create(Publication(definition=tool.latest) for tool in tools)


def _keep(seen: Sequence[Sighting]) -> None:
    """Rows for what is new, and in each tool's row what it claims to be now."""
    Tool.objects.bulk_create([one.tool for one in seen if one.tool._state.adding], AT_ONCE)
    contents = {}
    for one, definition in zip(seen, _kept(seen), strict=True):
        tool, state = one.tool, _state(one.tool, one.digest)
        contents[tool] = definition.content
        tool.latest, tool.state = definition, state
        for name, claim in listing.claims(contents[tool]).items():
            setattr(tool, name, claim)
    Tool.objects.bulk_update(contents, ["latest", "state", "hints", "risk"], AT_ONCE)
    listing.note(contents)


def _kept(seen: Sequence[Sighting]) -> list[Definition]:
    """A version that comes back is the same row again, so that flapping fills no table."""
    before = Definition.objects.filter(tool__in=[one.tool for one in seen if one.tool.latest_id])
    known = {
        (row.tool_id, row.digest): row
        for row in before.filter(digest__in={one.digest for one in seen})
    }
    newest = dict(before.order_by().values_list("tool").annotate(Max("version")))
    kept = [
        known.get((one.tool.pk, one.digest))
        or Definition(
            tool=one.tool,
            version=newest.get(one.tool.pk, 0) + 1,
            digest=one.digest,
            body=one.body,
        )
        for one in seen
    ]
    Definition.objects.bulk_create([row for row in kept if row._state.adding], AT_ONCE)
    return kept


def _state(tool: Tool, digest: str) -> Tool.State:
    if tool.published is None:
        return Tool.State.NEW
    return Tool.State.PUBLISHED if tool.published.digest == digest else Tool.State.CHANGED


def _action(one: Sighting) -> str:
    tool, after = one.tool, _state(one.tool, one.digest)
    if tool.latest and tool.latest.digest == one.digest and tool.state == after:
        return ""
    if after == Tool.State.CHANGED:
        return "definition.changed"
    if after == Tool.State.PUBLISHED:
        return "definition.restored"
    return "tool.returned" if tool.state == Tool.State.RETIRED else "definition.found"


def _recorded(action: str, tool: Tool, by: Actor, reason: str = "") -> Entry:
    latest = tool.latest
    return entry(
        action,
        actor=by,
        reason=reason,
        server=tool.server.slug,
        tool=tool.exposed_name,
        definition_digest=latest.digest if latest else "",
        version=latest.version if latest else 0,
    )
