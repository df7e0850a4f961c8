"""Resources that results link to: whose agent got a link from a server may read it there, though
the server lists it nowhere. What another agent's results hold, it may not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from core.journal import Statement

# Of one result; and what is longer cannot be asked for.
LINKS_MAX, URI_MAX = 1000, 8192
# In every result that has one.
MARK = b'"resource'

# Together with the outcome that holds them, and only if that is what was written down.
KEEP = Statement(
    "keep links",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, result_digest text, links text[])
), kept AS (
    INSERT INTO calls_link (call_id, agent_id, server_id, uri_digest)
    SELECT c.id, c.agent_id, c.server_id, u.digest
    FROM asked a
    JOIN calls_call c ON c.id = a.id AND c.id BETWEEN %s AND %s
            AND c.result_digest = a.result_digest,
        unnest(a.links) AS u(digest)
    WHERE c.server_id IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT id FROM asked
""",
    order=3,
    bounded=True,
)
FIND = "SELECT server_id FROM calls_link WHERE agent_id = %s AND uri_digest = %s"


def lines_of(line: Mapping[str, Any]) -> list[tuple[Statement, dict[str, Any]]]:
    """A second line beside one that ends a call, for resource links in its result; none without
    links."""
    if not line.get("links"):
        return []
    return [(KEEP, {name: line[name] for name in ("id", "result_digest", "links")})]


def digest(uri: str) -> str:
    return hashlib.sha256(uri.encode(errors="surrogatepass")).hexdigest()


def digests(result: bytes) -> list[str]:
    """Digests of the URIs that a tool's or prompt's result links to or embeds, each once."""
    try:
        found = dict.fromkeys(_uris(_content(orjson.loads(result))))
    except orjson.JSONDecodeError:
        return []
    return [digest(uri) for uri in list(found)[:LINKS_MAX]]


def _content(result: Any) -> list[Any]:
    match result:
        case {"content": list(content)}:
            return content
        case {"messages": list(messages)}:
            return [one.get("content") for one in messages if isinstance(one, dict)]
    return []


def _uris(content: list[Any]) -> Iterator[str]:
    for item in content:
        match item:
            case {"type": "resource_link", "uri": str(uri)}:
                pass
            case {"type": "resource", "resource": {"uri": str(uri)}}:
                pass
            case _:
                continue
        if len(uri) <= URI_MAX:
            yield uri
