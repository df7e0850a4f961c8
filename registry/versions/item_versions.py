"""Keeping what servers list beside their tools: each version, and which of them agents get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audit.models import Entry
from audit.services import Actor, entry, record_all
from core.english import gettext as _
from core.errors import CountersignError
from inspection.definitions import Finding, Scan
from registry.models import Item, ItemVersion, Server, versioned
from registry.models.versioned import (
    AT_ONCE,
    Sighting,
    change,
    elsewhere,
    retire,
    state,
    store_versions,
)
from registry.schemas import definitions

KEY = {
    Item.Kind.RESOURCE: "uri",
    Item.Kind.TEMPLATE: "uriTemplate",
    Item.Kind.PROMPT: "name",
    Item.Kind.INSTRUCTIONS: "name",
}


class ItemNotPublished(CountersignError):
    """The version is not what was reviewed, or is gone."""


class ItemSync:
    """Synchronizes stored items of one kind with the server's list, while the server's row is
    locked. `stated`: as in `Sighting`."""

    def __init__(
        self,
        server: Server,
        kind: Item.Kind,
        identity: Mapping[str, Any],
        stated: str | None = None,
    ) -> None:
        self._server = server
        self._kind = kind
        self._identity = identity
        # What a server says of its resources is data, and changes with them.
        self._stated = None if kind == Item.Kind.RESOURCE else stated
        known = server.items.filter(kind=kind).for_change()
        self._known = {item.key: item for item in known}
        for item in known:
            item.server = server
        self._seen: dict[str, Sighting[Item]] = {}

    def key_of(self, item: Mapping[str, Any]) -> str:
        return str(item[KEY[self._kind]])

    def take(self, content: Mapping[str, Any], external: tuple[Finding, ...] = ()) -> None:
        """It is listed now, and this is what is said of it; `external`: what an external scanner
        found in it. Raises Unreadable."""
        body = definitions.body(content)
        digest = definitions.digest(self._identity, content)
        key = self.key_of(content)
        item = self._known.get(key) or Item(server=self._server, kind=self._kind, key=key)
        self._seen[key] = Sighting(item, digest, body, external, self._stated)

    def see(self, *, by: Actor) -> list[str]:
        """Keeps what was taken as each item's latest version and lets its state follow. Returns
        the entries' actions; there is none where nothing moved."""
        return _see(list(self._seen.values()), by=by)

    def miss_others(self, *, by: Actor) -> list[str]:
        """Retires items that the list no longer holds."""
        others = [item for key, item in self._known.items() if key not in self._seen]
        gone = retire(Item, others)
        record_all([_recorded("item.vanished", item, by) for item in gone])
        return ["item.vanished" for _ in gone]

    def hold_all(self, *, by: Actor) -> None:
        _see(elsewhere(self._identity, self._known.values()), by=by)


def publish(item: Item, *, actor: Actor, difference: str | None, reason: str) -> None:
    """Let agents have its latest version. `difference`: what somebody was shown, by its digest;
    None: nobody looked."""
    latest = item.latest
    if latest is None or item.state == Item.State.RETIRED:
        raise ItemNotPublished(_("“%s” is gone from its server.") % item.key[:200])
    if difference not in (None, versioned.difference(item)):
        said = _("“%s” has changed since it was reviewed: look at it again.")
        raise ItemNotPublished(said % item.key[:200])
    # The update decides: what was reviewed must still be what the server says.
    moved = Item.objects.filter(pk=item.pk, latest=latest).exclude(state=Item.State.RETIRED)
    if not moved.update(published=latest, state=Item.State.PUBLISHED):
        raise ItemNotPublished(_("“%s” changed at this moment: look at it again.") % item.key[:200])
    item.published, item.state = latest, Item.State.PUBLISHED
    record_all([_published(item, actor, reason)])


def publish_new(items: Sequence[Item], *, by: Actor, reason: str) -> None:
    """Let agents have the latest version of each. None was published before, and the caller holds
    their rows."""
    for item in items:
        item.published, item.state = item.latest, Item.State.PUBLISHED
    Item.objects.bulk_update(items, ["published", "state"], AT_ONCE)
    record_all([_published(item, by, reason) for item in items])


def _see(seen: Sequence[Sighting[Item]], *, by: Actor) -> list[str]:
    moved = [(one, f"item.{said}") for one in seen if (said := change(one))]
    if moved:
        _keep([one for one, _ in moved])
        record_all([_recorded(action, one.of, by) for one, action in moved])
    return [action for _, action in moved]


def _keep(seen: Sequence[Sighting[Item]]) -> None:
    Item.objects.bulk_create([one.of for one in seen if one.of._state.adding], AT_ONCE)
    for one, version in zip(seen, store_versions(ItemVersion, "item", seen), strict=True):
        one.of.latest, one.of.state = version, state(one.of, one.digest)
    Item.objects.bulk_update([one.of for one in seen], ["latest", "state"], AT_ONCE)


def _published(item: Item, by: Actor, reason: str) -> Entry:
    found = item.latest.findings if item.latest else Scan(())
    if not found.risks:
        return _recorded("item.published", item, by, reason=reason)
    rules = sorted({one.rule for one in found.risks})
    return _recorded(
        "item.published", item, by, reason=reason, risk_score=found.score, findings=rules
    )


def _recorded(action: str, item: Item, by: Actor, *, reason: str = "", **details: Any) -> Entry:
    return entry(
        action,
        actor=by,
        reason=reason,
        server=item.server.slug,
        definition_digest=item.latest.digest if item.latest else "",
        kind=item.kind,
        key=item.key,
        version=item.latest.version if item.latest else 0,
        **details,
    )
