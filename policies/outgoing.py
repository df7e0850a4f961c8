"""Secrets and personal data in the arguments of a call, for conditions.

Looked for only where a condition asks: by the detectors that mask them in results.
"""

from __future__ import annotations

import json
from typing import Any

from core.english import gettext as _
from inspection import personal, secret_names
from inspection.nested_texts import NestedTooDeep, texts_within
from inspection.results import ResultRules, clean, seen_name
from policies.undecided import Undecided

ROOT = "outgoing"
_MEMBERS = {
    "outgoing.secrets": ResultRules(secrets=True),
    "outgoing.personal": ResultRules(personal=True),
}
NAMES = tuple(_MEMBERS)
# For the names of members that tell something of their values: none is written out for each.
_SECRET, _PHONE = "password", "phone"


class Facts(dict[str, Any]):
    """The values that conditions read; what is in the arguments is found once it is read."""

    def __missing__(self, name: str) -> list[str]:
        """Raises Undecided."""
        if name not in _MEMBERS:
            raise KeyError(name)
        found = clean(_document(self["args"]), _MEMBERS[name]).found
        kinds = self[name] = sorted(kind.removeprefix("masked.") for kind in found)
        return kinds


def _document(arguments: Any) -> bytes:
    """All texts in the arguments as JSON, however they are nested."""
    try:
        texts = [*texts_within(arguments)]
    except NestedTooDeep as error:
        said = _("texts in the arguments hold others more often than is looked at")
        raise Undecided(said) from error
    names = {name: seen_name(name) for name, _text in texts}
    distinct = {(_role(names[name], text), text) for name, text in texts}
    members = [{role: text} for role, text in distinct]
    return json.dumps(members, ensure_ascii=False).encode(errors="replace")


def _role(name: str, text: str) -> str:
    if secret_names.holds_secret(name, text):
        return _SECRET
    return _PHONE if personal.is_of_phone(name) else ""
