"""Changes that people made to a call's arguments, for pages and for the agent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from calls.models import Amendment, Call
from core import exact_json
from core.english import gettext as _
from core.exact_json import ABSENT, JsonDifference
from registry.schemas.violations import json_path

# Of the sentence; the list beside it is whole.
SAID = 10
VALUE_SAID = 200
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class AmendmentSummary:
    """`changes`: a JSON array; None where the agent is told that there are some, not which."""

    changes: bytes | None
    sentence: str

    @property
    def json(self) -> bytes:
        return self.changes or b"true"


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One changed argument as JSON: quotes tell a text from a number. Empty: not there.

    `by`: the names of those who made it what it is, in their order.
    """

    at: str
    was: str
    now: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Amendments:
    """The changes people made to a call's arguments; `edits`: in order."""

    edits: list[Amendment]
    private: bool
    rows: list[ArgumentChange]

    @property
    def who(self) -> list[str]:
        return list(dict.fromkeys(edit.person.shown_name for edit in self.edits))


def edited(call: Call, edits: list[Amendment] | None = None) -> Amendments | None:
    """`edits`: the call's, where they were read already."""
    if call.amendment is None:
        return None
    edits = edits_of([call.pk])[call.pk] if edits is None else edits
    steps = _steps(bytes(call.arguments), edits)
    rows = [_row(change, steps) for change in between(bytes(call.arguments), call.to_send)]
    return Amendments(edits, call.amendment.private, rows)


def edits_of(calls: Collection[UUID]) -> dict[UUID, list[Amendment]]:
    """Everything that people made of these calls, in one question."""
    found: dict[UUID, list[Amendment]] = {pk: [] for pk in calls}
    for edit in Amendment.objects.filter(call__in=calls).select_related("person").order_by("seq"):
        found[edit.call_id].append(edit)
    return found


_Step = tuple[str, list[Path]]


def _steps(asked: bytes, edits: list[Amendment]) -> list[_Step]:
    """The author of each edit, and the places that it changed."""
    steps, before = [], asked
    for edit in edits:
        after = bytes(edit.arguments)
        steps.append((edit.person.shown_name, [change.path for change in between(before, after)]))
        before = after
    return steps


def _row(change: JsonDifference, steps: list[_Step]) -> ArgumentChange:
    was, now = (
        "" if side is ABSENT else exact_json.dumps(side) for side in (change.before, change.after)
    )
    makers = tuple(dict.fromkeys(_makers(change.path, steps)))
    # As cards name it.
    return ArgumentChange(json_path(change.path).removeprefix("$."), was, now, makers)


def _makers(path: Path, steps: list[_Step]) -> list[str]:
    """The authors of the text at this place: the last who replaced all of it, and later editors."""
    makers: list[str] = []
    for name, places in steps:
        if any(path[: len(place)] == place for place in places):
            makers = [name]
        elif any(place[: len(path)] == path for place in places):
            makers.append(name)
    return makers


def between(asked: bytes, sent: bytes) -> list[JsonDifference]:
    return list(exact_json.changes(exact_json.loads(asked), exact_json.loads(sent)))


def modified(asked: bytes, sent: bytes, *, private: bool) -> AmendmentSummary:
    if private:
        return AmendmentSummary(
            None, _("A person changed the arguments before they were sent; not said: which.")
        )
    found = between(asked, sent)
    said = [_sentence(change) for change in found[:SAID]]
    if len(found) > SAID:
        said.append(_("and %(n)d more") % {"n": len(found) - SAID})
    sentence = _("A person changed the arguments before they were sent: %(what)s.")
    return AmendmentSummary(
        orjson.dumps([_plain(change) for change in found]), sentence % {"what": "; ".join(said)}
    )


def _sentence(change: JsonDifference) -> str:
    path = json_path(change.path)
    if change.before is ABSENT:
        return _("%(path)s added: %(now)s") % {"path": path, "now": _short(change.after)}
    if change.after is ABSENT:
        return _("%(path)s unset") % {"path": path}
    return _("%(path)s: %(was)s → %(now)s") % {
        "path": path,
        "was": _short(change.before),
        "now": _short(change.after),
    }


def _short(value: Any) -> str:
    text = exact_json.pretty(value) if isinstance(value, str) else exact_json.dumps(value)
    return text if len(text) <= VALUE_SAID else f"{text[:VALUE_SAID]}…"


def _plain(change: JsonDifference) -> dict[str, Any]:
    """JSON knows nothing that is absent: then the member is."""
    sides = {"before": change.before, "after": change.after}
    found = {
        name: orjson.Fragment(exact_json.dumps(value).encode())
        for name, value in sides.items()
        if value is not ABSENT
    }
    return {"path": json_path(change.path), **found}
