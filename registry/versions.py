"""A tool's definition was seen: is it the published one, a new one, or a change to be held?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import F

from audit.models import Entry
from audit.services import Actor, entry, record_all
from registry import listing
from registry.models import Definition, Publication, Tool
from registry.versioned import AT_ONCE, Sighting, kept


def see(tool: Tool, *, digest: str, body: str, by: Actor) -> str:
    (action,) = see_all([Sighting(tool, digest, body)], by=by)
    return action


def see_all(seen: Sequence[Sighting[Tool]], *, by: Actor) -> list[str]:
    """Keep what was seen as each tool's latest definition and let its state follow.

    A tool may have no row yet. Returns for each the entry's action, or nothing where nothing moved.
    Only the published digest serves; anything else is held until a person publishes it. The caller
    holds the rows of server and tools.
    """
    actions = list(map(_action, seen))
    moved = [(one, action) for one, action in zip(seen, actions, strict=True) if action]
    if moved:
        _keep([one for one, _ in moved])
        record_all([_recorded(action, one.of, by) for one, action in moved])
    return actions


def miss_all(tools: Iterable[Tool], *, by: Actor) -> list[str]:
    """Their server no longer lists them. What was published stays known, should it come back."""
    gone = [tool for tool in tools if tool.state != Tool.State.RETIRED]
    for tool in gone:
        tool.state = Tool.State.RETIRED
    Tool.objects.bulk_update(gone, ["state"], AT_ONCE)
    record_all([_vanished(tool, by) for tool in gone])
    return ["tool.vanished" for _ in gone]


def publish_new(tools: Sequence[Tool], *, by: Actor, reason: str) -> None:
    """Let agents have the latest definition of each, which is known to have no problem. None was
    published before, and the caller holds their server's row."""
    Tool.objects.filter(pk__in=[tool.pk for tool in tools]).update(
        published=F("latest"), state=Tool.State.PUBLISHED
    )
    record_all([_recorded("definition.published", tool, by, reason) for tool in tools])
    Publication.objects.bulk_create(Publication(definition=tool.latest) for tool in tools)


def _keep(seen: Sequence[Sighting[Tool]]) -> None:
    """Rows for what is new, and in each tool's row what it claims to be now."""
    Tool.objects.bulk_create([one.of for one in seen if one.of._state.adding], AT_ONCE)
    contents = {}
    for one, definition in zip(seen, kept(Definition, "tool", seen), strict=True):
        tool, state = one.of, _state(one.of, one.digest)
        contents[tool] = definition.content
        tool.latest, tool.state = definition, state
        for name, claim in listing.claims(contents[tool]).items():
            setattr(tool, name, claim)
    Tool.objects.bulk_update(contents, ["latest", "state", "hints", "risk"], AT_ONCE)
    listing.note(contents)


def _state(tool: Tool, digest: str) -> Tool.State:
    if tool.published is None:
        return Tool.State.NEW
    return Tool.State.PUBLISHED if tool.published.digest == digest else Tool.State.CHANGED


def _action(one: Sighting[Tool]) -> str:
    tool, after = one.of, _state(one.of, one.digest)
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


def _vanished(tool: Tool, by: Actor) -> Entry:
    return entry("tool.vanished", actor=by, server=tool.server.slug, tool=tool.exposed_name)
