"""Keeping what servers list beside their tools: each version, and which of them agents get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from audit.services import Actor, record
from core.errors import CountersignError
from registry import definitions
from registry.models import Item, ItemVersion, Server

KEY = {Item.Kind.RESOURCE: "uri", Item.Kind.TEMPLATE: "uriTemplate", Item.Kind.PROMPT: "name"}


class NotPublished(CountersignError):
    """The version is not what was reviewed, or is gone."""


class Shelf:
    """What is known of one kind at a server whose row is held."""

    def __init__(self, server: Server, kind: Item.Kind, identity: Mapping[str, Any]) -> None:
        self._server = server
        self._kind = kind
        self._identity = identity
        known = server.items.filter(kind=kind).for_change()
        self._known = {item.key: item for item in known}
        for item in known:
            item.server = server
        self._seen: set[str] = set()

    def key_of(self, item: Mapping[str, Any]) -> str:
        return str(item[KEY[self._kind]])

    def see(self, content: Mapping[str, Any], *, by: Actor) -> str:
        """Keeps it as the latest version and lets the item's state follow; returns the entry's
        action, or nothing where nothing moved. Raises Unreadable."""
        body = definitions.body(content)
        digest = definitions.digest(self._identity, content)
        key = self.key_of(content)
        item = self._known.get(key) or Item(server=self._server, kind=self._kind, key=key)
        self._seen.add(key)
        return _see(item, digest=digest, body=body, by=by)

    def miss_others(self, *, by: Actor) -> Iterator[str]:
        for key, item in self._known.items():
            if key not in self._seen and item.state != Item.State.RETIRED:
                item.state = Item.State.RETIRED
                item.save(update_fields=["state"])
                yield _recorded("item.vanished", item, by)

    def hold_all(self, *, by: Actor) -> None:
        """The same words at another address are another version."""
        for item in self._known.values():
            if item.latest is not None and item.state != Item.State.RETIRED:
                digest = definitions.digest(self._identity, item.latest.content)
                _see(item, digest=digest, body=item.latest.body, by=by)


def publish(item: Item, *, actor: Actor, digest: str = "", reason: str = "") -> None:
    """Let agents have its latest version; `digest`: the one that somebody has read."""
    latest = item.latest
    if latest is None or item.state == Item.State.RETIRED:
        raise NotPublished(_("“%s” is gone from its server.") % item.key[:200])
    if digest and latest.digest != digest:
        said = _("“%s” has changed since it was reviewed: look at it again.")
        raise NotPublished(said % item.key[:200])
    # The update decides: what was reviewed must still be what the server says.
    moved = Item.objects.filter(pk=item.pk, latest=latest).exclude(state=Item.State.RETIRED)
    if not moved.update(published=latest, state=Item.State.PUBLISHED):
        raise NotPublished(_("“%s” changed at this moment: look at it again.") % item.key[:200])
    item.published, item.state = latest, Item.State.PUBLISHED
    _recorded("item.published", item, actor, reason=reason)


def _see(item: Item, *, digest: str, body: str, by: Actor) -> str:
    state = _state(item, digest)
    if item.latest and item.latest.digest == digest and item.state == state:
        return ""
    action = _action(item, state)
    if item._state.adding:
        item.save()
    item.latest, item.state = _kept(item, digest, body), state
    item.save(update_fields=["latest", "state"])
    return _recorded(action, item, by)


def _kept(item: Item, digest: str, body: str) -> ItemVersion:
    """A version that comes back is the same row again, so that flapping fills no table."""
    newest = item.versions.first() if item.latest else None
    if newest and (known := item.versions.filter(digest=digest).first()):
        return known
    version = newest.version + 1 if newest else 1
    return ItemVersion.objects.create(item=item, version=version, digest=digest, body=body)


def _state(item: Item, digest: str) -> Item.State:
    if item.published is None:
        return Item.State.NEW
    is_same = item.published.digest == digest
    return Item.State.PUBLISHED if is_same else Item.State.CHANGED


def _action(item: Item, after: Item.State) -> str:
    if after == Item.State.CHANGED:
        return "item.changed"
    if after == Item.State.PUBLISHED:
        return "item.restored"
    return "item.returned" if item.state == Item.State.RETIRED else "item.found"


def _recorded(action: str, item: Item, by: Actor, *, reason: str = "") -> str:
    record(
        action,
        actor=by,
        reason=reason,
        server=item.server.slug,
        definition_digest=item.latest.digest if item.latest else "",
        kind=item.kind,
        key=item.key,
        version=item.latest.version if item.latest else 0,
    )
    return action
