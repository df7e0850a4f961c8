"""The trace that a request belongs to, passed on to its server and kept in the record.

Only in the forms of W3C Trace Context and Baggage, and short: nobody decides on what stands there.
Source: MCP 2026-07-28, basic/index, "General fields" (SEP-414).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FORMS = {
    "traceparent": re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"),
    "tracestate": re.compile(r"[!-~][ -~]{0,511}"),
    "baggage": re.compile(r"[!-~][ -~]{0,1023}"),
}
MEMBERS = tuple(_FORMS)


def of(meta: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, form in _FORMS.items():
        value = meta.get(name)
        if isinstance(value, str) and form.fullmatch(value):
            found[name] = value
    return found
