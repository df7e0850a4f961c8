"""Versions of tools' definitions: is the one just seen published, new, or changed?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from django.db.models import F, Q

from accounts.models import User
from audit.models import Entry
from audit.services import Actor, entry, record_all
from inspection.definitions import Scan, scan
from registry import names
from registry.labels import Label, labels
from registry.models import Definition, Publication, Tool
from registry.models.versioned import AT_ONCE, Sighting, change, retire, state, store_versions
from registry.versions import search_index


def see_all(seen: Sequence[Sighting[Tool]], *, by: Actor) -> list[str]:
    """Stores each tool's seen definition as its latest one, and updates the tool's state.

    A tool may have no row yet. Returns the actions of the entries, empty if nothing changed.
    Only the published digest is served; everything else waits for review. The caller has locked
    the rows of the server and of its tools.
    """
    moved = [(one, _action(said)) for one in seen if (said := change(one))]
    if moved:
        _keep([one for one, _ in moved])
        record_all([_recorded(action, one.of, by) for one, action in moved])
    return [action for _, action in moved]


def miss_all(tools: Iterable[Tool], *, by: Actor) -> list[str]:
    """Marks tools as removed upstream: their server no longer lists them."""
    gone = retire(Tool, tools)
    record_all([_vanished(tool, by) for tool in gone])
    return ["tool.vanished" for _ in gone]


def publish_new(tools: Sequence[Tool], *, by: Actor, reason: str) -> None:
    """Publishes the latest definition of each tool, known to be valid. None was published
    before, and the caller has locked their rows."""
    Tool.objects.filter(pk__in=[tool.pk for tool in tools]).update(
        published=F("latest"), state=Tool.State.PUBLISHED
    )
    note_published(tools, by=by, reason=reason)


def note_published(
    tools: Sequence[Tool], *, by: Actor, person: User | None = None, reason: str = ""
) -> list[Publication]:
    """Records that agents now have the latest definition of each tool."""
    record_all([_published(tool, by, reason) for tool in tools])
    made = [Publication(definition=tool.latest, person=person) for tool in tools]
    Publication.objects.bulk_create(made, AT_ONCE)
    relabel(tools)
    return made


def relabel(tools: Sequence[Tool]) -> None:
    """Stores the labels of tools of which agents have another definition now."""
    said = _labels_of(tools)
    moved = []
    for tool in tools:
        before, tool.labels = tool.labels, labels(said[tool.pk], tool.label_choices)
        if tool.labels != before:
            moved.append(tool)
    Tool.objects.bulk_update(moved, ["labels"], AT_ONCE)


def labels_of(tool: Tool, choices: dict[Label, str]) -> list[str]:
    """The tool's labels with these words of an operator."""
    return labels(_labels_of([tool])[tool.pk], choices)


def _labels_of(tools: Sequence[Tool]) -> dict[int, list[dict[str, bool]]]:
    """The hints that count for each tool's labels: of its latest definition, of the one that agents
    have, and of the one published last, which they had if it was withdrawn or rolled back."""
    last = Publication.objects.filter(definition__tool__in=tools)
    last = last.order_by("definition__tool_id", "-at", "-pk").distinct("definition__tool_id")
    ends = {pk for tool in tools for pk in (tool.latest_id, tool.published_id) if pk}
    counting = Definition.objects.filter(Q(pk__in=ends) | Q(pk__in=last.values("definition")))
    said = defaultdict(list)
    for definition in counting.order_by():
        said[definition.tool_id].append(definition.hints)
    return said


def _keep(seen: Sequence[Sighting[Tool]]) -> None:
    """Creates rows of new definitions, and stores the latest hints in each tool's row."""
    Tool.objects.bulk_create([one.of for one in seen if one.of._state.adding], AT_ONCE)
    contents = {}
    rows = store_versions(Definition, "tool", seen, _Inspector(seen).scan)
    for one, definition in zip(seen, rows, strict=True):
        tool = one.of
        contents[tool] = definition.content
        tool.latest, tool.state = definition, state(tool, one.digest)
        for name, claim in search_index.claims(contents[tool]).items():
            setattr(tool, name, claim)
    said = _labels_of(list(contents))
    for tool in contents:
        tool.labels = labels(said[tool.pk], tool.label_choices)
    columns = ["latest", "state", "hints", "risk", "labels"]
    Tool.objects.bulk_update(contents, columns, AT_ONCE)
    search_index.note(contents)


class _Inspector:
    """Looks at new definitions, beside what other servers' tools are called."""

    def __init__(self, seen: Sequence[Sighting[Tool]]) -> None:
        servers = {one.of.server_id for one in seen}
        others = Tool.objects.filter(state=Tool.State.PUBLISHED).exclude(server__in=servers)
        self._exposed = dict(others.values_list("name", "exposed_name"))
        self._names = names.Names(self._exposed)

    def scan(self, one: Sighting[Tool]) -> Scan:
        like = self._names.like(one.of.name)
        # Many servers have a tool called `search`.
        is_other = like.casefold() != one.of.name.casefold()
        return scan(
            orjson.loads(one.body),
            others=self._exposed,
            like=self._exposed.get(like, "") if is_other else "",
            earlier=one.earlier,
        )


def _action(said: str) -> str:
    return "tool.returned" if said == "returned" else f"definition.{said}"


def _recorded(action: str, tool: Tool, by: Actor, reason: str = "", **details: Any) -> Entry:
    latest = tool.latest
    return entry(
        action,
        actor=by,
        reason=reason,
        server=tool.server.slug,
        tool=tool.exposed_name,
        definition_digest=latest.digest if latest else "",
        version=latest.version if latest else 0,
        **details,
    )


def _published(tool: Tool, by: Actor, reason: str) -> Entry:
    """With what was found in it, which whoever published it had before them."""
    found = tool.latest.findings if tool.latest else Scan(())
    if not found.risks:
        return _recorded("definition.published", tool, by, reason)
    rules = sorted({one.rule for one in found.risks})
    return _recorded(
        "definition.published", tool, by, reason, risk_score=found.score, findings=rules
    )


def _vanished(tool: Tool, by: Actor) -> Entry:
    return entry("tool.vanished", actor=by, server=tool.server.slug, tool=tool.exposed_name)
