"""An entry as the plain JSON that is sealed, exported and checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from audit.models import Entry
from audit.verify import canonical, leaf_hash

COLUMNS = (
    "id",
    "at",
    "transaction",
    "action",
    "actor_kind",
    "actor_id",
    "actor",
    "call_id",
    "seq",
    "from_state",
    "to_state",
    "agent_id",
    "agent",
    "person_id",
    "person",
    "server",
    "tool",
    "definition_digest",
    "arguments_digest",
    "result_digest",
    "reason",
    "details",
)

# What a leaf is made of.
LEAF_COLUMNS = (*COLUMNS, "format", "salt")


def leaf(row: Mapping[str, Any]) -> bytes:
    """`row` has all of LEAF_COLUMNS. Of a format that is not ours nothing is a leaf."""
    match row["format"]:
        case 1:
            return leaf_hash(bytes(row["salt"]), canonical(body(row)))
        case _:
            return b""


def body(row: Mapping[str, Any]) -> dict[str, Any]:
    """`row` has all of COLUMNS."""
    return {
        **{name: row[name] for name in COLUMNS},
        "at": moment(row["at"]),
        # Wider than numbers of JSON that every language reads alike.
        "transaction": str(row["transaction"]),
        "call_id": str(row["call_id"]) if row["call_id"] else None,
    }


def body_of(entry: Entry) -> dict[str, Any]:
    return body({name: getattr(entry, name) for name in COLUMNS})


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
