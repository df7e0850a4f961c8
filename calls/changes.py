"""What people changed of a call's arguments, for people and for the agent that asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from django.utils.translation import gettext as _

from accounts.models import User
from calls.models import Call
from core import exact_json
from core.exact_json import ABSENT, Change
from registry.violations import json_path

# Of the sentence; the list beside it is whole.
SAID = 10
VALUE_SAID = 200


@dataclass(frozen=True, slots=True)
class Modified:
    """`changes`: a JSON array; None where the agent is told that there are some, not which."""

    changes: bytes | None
    sentence: str

    @property
    def json(self) -> bytes:
        return self.changes or b"true"


@dataclass(frozen=True, slots=True)
class Row:
    """One changed argument as JSON: quotes tell a text from a number. Empty: not there."""

    at: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Edited:
    """What people made of a call's arguments, against what the agent asked."""

    by: User
    note: str
    private: bool
    rows: list[Row]


def edited(call: Call) -> Edited | None:
    made = call.amendment
    if made is None:
        return None
    rows = [_row(change) for change in between(bytes(call.arguments), call.to_send)]
    return Edited(made.person, made.note, made.private, rows)


def _row(change: Change) -> Row:
    was, now = (
        "" if side is ABSENT else exact_json.dumps(side) for side in (change.before, change.after)
    )
    return Row(json_path(change.path), was, now)


def between(asked: bytes, sent: bytes) -> list[Change]:
    return list(exact_json.changes(exact_json.loads(asked), exact_json.loads(sent)))


def modified(asked: bytes, sent: bytes, *, private: bool) -> Modified:
    if private:
        return Modified(
            None, _("A person changed the arguments before they were sent; not said: which.")
        )
    found = between(asked, sent)
    said = [_said(change) for change in found[:SAID]]
    if len(found) > SAID:
        said.append(_("and %(n)d more") % {"n": len(found) - SAID})
    sentence = _("A person changed the arguments before they were sent: %(what)s.")
    return Modified(
        orjson.dumps([_plain(change) for change in found]), sentence % {"what": "; ".join(said)}
    )


def _said(change: Change) -> str:
    path = json_path(change.path)
    if change.before is ABSENT:
        return _("%(path)s added: %(now)s") % {"path": path, "now": _short(change.after)}
    if change.after is ABSENT:
        return _("%(path)s left out") % {"path": path}
    return _("%(path)s: %(was)s → %(now)s") % {
        "path": path,
        "was": _short(change.before),
        "now": _short(change.after),
    }


def _short(value: Any) -> str:
    text = exact_json.pretty(value) if isinstance(value, str) else exact_json.dumps(value)
    return text if len(text) <= VALUE_SAID else f"{text[:VALUE_SAID]}…"


def _plain(change: Change) -> dict[str, Any]:
    """JSON knows nothing that is absent: then the member is."""
    sides = {"before": change.before, "after": change.after}
    found = {
        name: orjson.Fragment(exact_json.dumps(value).encode())
        for name, value in sides.items()
        if value is not ABSENT
    }
    return {"path": json_path(change.path), **found}
