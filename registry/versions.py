"""A tool's definition was seen: is it the published one, a new one, or a change to be held?"""

from __future__ import annotations

from audit.services import Actor, record
from registry import listing
from registry.models import Definition, Tool


def see(tool: Tool, *, digest: str, body: str, by: Actor) -> str:
    """Keep what was seen as the tool's latest definition and let its state follow.

    Returns the entry's action, or nothing where nothing moved. Only the published digest
    serves; anything else is held until a person publishes it. The caller holds the rows of
    server and tool.
    """
    published = tool.published.digest if tool.published else ""
    state = _state(published, digest)
    if tool.latest and tool.latest.digest == digest and tool.state == state:
        return ""

    action = _action(tool.state, state)
    tool.latest, tool.state = _kept(tool, digest, body), state
    tool.save(update_fields=["latest", "state"])
    listing.note(tool, tool.latest.content)
    record(
        action,
        actor=by,
        server=tool.server.slug,
        tool=tool.exposed_name,
        definition_digest=digest,
        version=tool.latest.version,
    )
    return action


def miss(tool: Tool, *, by: Actor) -> str:
    """Its server no longer lists it. What was published stays known, should it come back."""
    if tool.state == Tool.State.RETIRED:
        return ""
    tool.state = Tool.State.RETIRED
    tool.save(update_fields=["state"])
    record("tool.vanished", actor=by, server=tool.server.slug, tool=tool.exposed_name)
    return "tool.vanished"


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
