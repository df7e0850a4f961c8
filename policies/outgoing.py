"""Secrets and personal data in the arguments of a call, for conditions.

Looked for only where a condition asks: by the detectors that mask them in results.
"""

from __future__ import annotations

import json
from typing import Any

from inspection.results import ResultRules, clean

ROOT = "outgoing"
_MEMBERS = {
    "outgoing.secrets": ResultRules(secrets=True),
    "outgoing.personal": ResultRules(personal=True),
}
NAMES = tuple(_MEMBERS)


class Facts(dict[str, Any]):
    """The values that conditions read; what is in the arguments is found once it is read."""

    def __missing__(self, name: str) -> list[str]:
        if name not in _MEMBERS:
            raise KeyError(name)
        found = clean(json.dumps(self["args"], ensure_ascii=False).encode(), _MEMBERS[name]).found
        kinds = self[name] = sorted(kind.removeprefix("masked.") for kind in found)
        return kinds
