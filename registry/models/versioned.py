"""Versioned definitions of what servers offer: versions are never changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, TypeVar

import orjson
from django.db import models
from django.db.models import Max
from django.utils import timezone

from inspection.definitions import EarlierDefinition, Finding, Scan, scan
from registry.schemas import definitions


class Version(models.Model):
    """One immutable version of a definition."""

    version = models.PositiveIntegerField()
    # SHA-256 over the canonical form of all that reaches a model, and of the server's identity.
    digest = models.CharField(max_length=64)
    # As the server wrote it, as JSON text.
    body = models.TextField()
    first_seen_at = models.DateTimeField(default=timezone.now, editable=False)
    # What was found in it (inspection/definitions.py): the one column that is ever written again,
    # when a release finds more (registry/versions/stored_findings.py).
    scan = models.JSONField(null=True, editable=False)

    class Meta:
        abstract = True

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = orjson.loads(self.body)
        return content

    @property
    def description(self) -> str:
        return str(self.content.get("description") or "")

    @property
    def findings(self) -> Scan:
        """The stored findings; those of older rules, or missing ones, are computed now."""
        kept = Scan.of_kept(self.scan)
        return kept or scan(self.content).with_others(Scan.lasting_of_kept(self.scan))


Of = TypeVar("Of", bound=models.Model)
Kept = TypeVar("Kept", bound=Version)
# Rows of one statement.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Sighting(Generic[Of]):
    """An item in a server's list, with its row."""

    of: Of
    digest: str
    body: str
    # What an external scanner found in it.
    external: tuple[Finding, ...] = ()
    # The version of itself that its server states, as it did at the discovery before. None: it
    # states another one, which explains a change.
    stated: str | None = None

    @property
    def earlier(self) -> EarlierDefinition | None:
        """The definition before, where nothing explains that it changed."""
        latest = self.of.latest  # type: ignore[attr-defined]
        if self.stated is None or latest is None:
            return None
        return EarlierDefinition(latest.content, self.stated)


def scan_alone(one: Sighting[Any]) -> Scan:
    return scan(orjson.loads(one.body), earlier=one.earlier)


def store_versions(
    model: type[Kept],
    owner: str,
    seen: Sequence[Sighting[Any]],
    inspect: Callable[[Sighting[Any]], Scan] = scan_alone,
) -> list[Kept]:
    """Gets or creates the rows of these versions; `owner` names the column of the item. A
    version that returns reuses its row, so that flapping fills no table."""
    before = model._default_manager.filter(
        **{f"{owner}__in": [one.of for one in seen if one.of.latest_id]}
    )
    same = before.filter(digest__in={one.digest for one in seen})
    known = {(getattr(row, f"{owner}_id"), row.digest): row for row in same}
    _read_latest(model, seen)
    newest = dict(before.order_by().values_list(owner).annotate(Max("version")))
    rows = [
        known.get((one.of.pk, one.digest))
        or model(
            **{owner: one.of},
            version=newest.get(one.of.pk, 0) + 1,
            digest=one.digest,
            body=one.body,
            scan=inspect(one).with_others(one.external).kept(),
        )
        for one in seen
    ]
    model._default_manager.bulk_create([row for row in rows if row._state.adding], AT_ONCE)
    return rows


def _read_latest(model: type[Kept], seen: Sequence[Sighting[Any]]) -> None:
    """Reads the definitions before, of which only digests were read, to compare with them."""
    compared = [one.of for one in seen if one.stated is not None and one.of.latest_id]
    latest = model._default_manager.in_bulk([of.latest_id for of in compared])
    for of in compared:
        of.latest = latest[of.latest_id]


def difference(of: Any) -> str:
    """Digest of what stands between what was published of an item and what its server says now,
    with what was found in that. It binds a press to what was shown: neither end may have moved
    since, nor may a newer release find more."""
    ends = [version.digest if version else "" for version in (of.published, of.latest)]
    found = json.dumps(of.latest.findings.kept()["findings"] if of.latest else [])
    return sha256("\n".join(["countersign difference 2", *ends, found]).encode()).hexdigest()


def state(of: Any, digest: str) -> str:
    """The item's state: only a published version is served, any other waits for review."""
    if of.published is None:
        return str(of.State.NEW)
    return str(of.State.PUBLISHED if of.published.digest == digest else of.State.CHANGED)


def change(one: Sighting[Any]) -> str:
    """How the seen version differs: found, changed, restored, returned; empty if not at all."""
    of, after = one.of, state(one.of, one.digest)
    if of.latest and of.latest.digest == one.digest and of.state == after:
        return ""
    if after == of.State.CHANGED:
        return "changed"
    if after == of.State.PUBLISHED:
        return "restored"
    return "returned" if of.state == of.State.RETIRED else "found"


def elsewhere(identity: Mapping[str, Any], rows: Iterable[Any]) -> list[Sighting[Any]]:
    """The same items seen at another address, where the same definition is another version."""
    return [
        Sighting(row, definitions.digest(identity, row.latest.content), row.latest.body)
        for row in rows
        if row.latest and row.state != row.State.RETIRED
    ]


def retire(model: type[models.Model], rows: Iterable[Any]) -> list[Any]:
    """Marks items that their server no longer lists. Their published versions stay known, in
    case they return."""
    gone = [row for row in rows if row.state != row.State.RETIRED]
    for row in gone:
        row.state = row.State.RETIRED
    model._default_manager.bulk_update(gone, ["state"], AT_ONCE)
    return gone
