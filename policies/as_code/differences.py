"""Changes that a policy file makes, object by object."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import rfc8785

from policies.as_code.documents import Objects, PolicyFile
from policies.as_code.sections import Plain, Section, every_section
from registry.managed import SERVERS, ManagedName
from registry.models import ManagedPart

# What a file manages, besides its sections.
MANAGED = "managed_by"


class PolicyChange(NamedTuple):
    """One object that a file adds, changes, removes, or puts elsewhere in its list."""

    section: str
    name: str
    kind: str
    before: Plain | None = None
    after: Plain | None = None

    @property
    def members(self) -> list[str]:
        """The members that are not as before."""
        before, after = self.before or {}, self.after or {}
        return [name for name in {**before, **after} if before.get(name) != after.get(name)]

    def plain(self) -> dict[str, Any]:
        return {**self._asdict(), "members": self.members if self.kind == "changed" else []}


def digest_of(value: Any) -> str:
    """The digest of JSON in its one canonical form (RFC 8785)."""
    return sha256(rfc8785.dumps(value)).hexdigest()


def changes(present: Objects, wanted: Objects) -> list[PolicyChange]:
    """In the order in which they are applied."""
    return [
        change
        for section in every_section()
        if section.key in wanted
        for change in _of_section(section, present[section.key], wanted[section.key])
    ]


def all_changes(file: PolicyFile) -> list[PolicyChange]:
    """With the change of what the file manages."""
    found = changes(file.present, file.wanted)
    before = managed_now()
    parts = parts_of(file.wanted) if file.managed_by else []
    # A file without parts manages nothing, and nothing is stored of it.
    after = _managed(file.managed_by if parts else "", parts)
    if before == after:
        return found
    return [PolicyChange(MANAGED, file.managed_by, "changed", before, after), *found]


def parts_of(wanted: Objects) -> list[ManagedName]:
    """The parts that a file manages: sections as a whole, or the objects that it names."""
    return [
        part
        for section in every_section()
        if section.key in wanted
        for part in (
            [ManagedName(section.key)]
            if section.is_whole
            else [ManagedName(section.key, name) for name in wanted[section.key]]
        )
    ]


def managed_now() -> Plain:
    rows = list(ManagedPart.objects.all())
    parts = [ManagedName(row.section, row.name) for row in rows]
    return _managed(rows[0].source if rows else "", parts)


def _managed(source: str, parts: Collection[ManagedName]) -> Plain:
    return {"source": source, "parts": sorted(" ".join(part).strip() for part in parts)}


def base_digest(file: PolicyFile) -> str:
    """The digest of all that the file is about, as it is now, in its order."""
    present = {key: [*map(list, of.items())] for key, of in file.present.items()}
    return digest_of({"present": present, "managed": managed_now()})


def _of_section(
    section: Section, present: Mapping[str, Plain], wanted: Mapping[str, Plain]
) -> Iterator[PolicyChange]:
    gone = [name for name in present if name not in wanted] if section.is_whole else []
    for name in gone:
        yield PolicyChange(section.key, name, "removed", present[name])
    for name, after in wanted.items():
        before = present.get(name)
        if before is None:
            yield PolicyChange(section.key, name, "added", None, after)
        elif before != after:
            yield PolicyChange(section.key, name, "changed", before, after)
    if section.order is not None:
        yield from _moved(section.key, list(present), list(wanted))


def _moved(section: str, present: list[str], wanted: list[str]) -> Iterator[PolicyChange]:
    """Those of both lists that stand after others than before."""
    both = set(present) & set(wanted)
    before = [name for name in present if name in both]
    after = [name for name in wanted if name in both]
    for was, name in zip(before, after, strict=True):
        if was != name:
            place = {"place": before.index(name) + 1}, {"place": after.index(name) + 1}
            yield PolicyChange(section, name, "moved", *place)


def needed_permissions(found: Collection[PolicyChange]) -> list[str]:
    """Permissions that confirming them takes: those of the console's pages."""
    by_key = {one.key: one for one in every_section()}
    needed = {
        name
        for one in found
        if one.section in by_key
        for name in by_key[one.section].needs[one.kind]
    }
    if any((one.after or {}).get("shows_arguments") for one in found):
        needed.add("calls.view_payload")
    if any(one.section == SERVERS and "results" in one.members for one in found):
        needed.add("registry.operate_server")
    return sorted(needed)
