"""A tool's definition was seen: is it the published one, a new one, or a change to be held?"""

from __future__ import annotations

from audit.services import Actor, record
from registry.models import Definition, Tool


def see(tool: Tool, *, digest: str, body: str, by: Actor) -> Definition:
    """Keep what was seen as the tool's latest definition and let its state follow.

    Only the published digest serves; anything else is held until a person publishes it.
    The caller holds the server's row.
    """
    latest = _kept(tool, digest, body)
    published = tool.published.digest if tool.published else ""
    state = _state(published, digest)
    if tool.latest_id == latest.pk and tool.state == state:
        return latest

    action = _action(tool.state, state)
    tool.latest, tool.state = latest, state
    tool.save(update_fields=["latest", "state"])
    record(
        action,
        actor=by,
        server=tool.server.slug,
        tool=tool.name,
        definition_digest=digest,
        version=latest.version,
    )
    return latest


def _kept(tool: Tool, digest: str, body: str) -> Definition:
    """A version that comes back is the same row again, so that flapping fills no table."""
    known = tool.definitions.filter(digest=digest).first()
    if known:
        return known
    newest = tool.definitions.first()
    version = newest.version + 1 if newest else 1
    return Definition.objects.create(tool=tool, version=version, digest=digest, body=body)


def _state(published: str, seen: str) -> Tool.State:
    if not published:
        return Tool.State.NEW
    return Tool.State.PUBLISHED if published == seen else Tool.State.CHANGED


def _action(before: str, after: Tool.State) -> str:
    if after == Tool.State.CHANGED:
        return "definition.changed"
    if after == Tool.State.PUBLISHED:
        return "definition.restored"
    return "tool.returned" if before == Tool.State.RETIRED else "definition.found"
