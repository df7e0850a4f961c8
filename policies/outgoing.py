"""Secrets and personal data in the arguments of a call, for conditions.

Looked for only where a condition asks: by the detectors that mask them in results.
"""

from __future__ import annotations

import json
from typing import Any

from core.english import gettext as _
from inspection.nested_texts import NestedTooDeep, texts_within
from inspection.results import ResultRules, clean, is_named
from policies.undecided import Undecided

ROOT = "outgoing"
_MEMBERS = {
    "outgoing.secrets": ResultRules(secrets=True),
    "outgoing.personal": ResultRules(personal=True),
}
NAMES = tuple(_MEMBERS)
# For every name of a member that holds a secret: none is written out for each of its values.
_NAME = "password"


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
    named = {name for name in {name for name, _text in texts} if is_named(name)}
    distinct = {(name in named, text) for name, text in texts}
    members = [{_NAME if is_secret else "": text} for is_secret, text in distinct]
    return json.dumps(members, ensure_ascii=False).encode(errors="replace")
