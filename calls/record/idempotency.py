"""A request that comes again: what was it the first time, and must it not be sent once more?

Two ways to know. A key names one call of its agent for as long as `lasts_s` says after that ended;
who takes it is decided by the database, for any number of processes. And without a key, a call is
the same again when agent, tool and arguments are, and nobody knows that the agent ever heard what
became of the first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from calls.record.states import LIVE
from core.ids import FIRST_ID
from core.journal import Statement

# So long after its call ended does an agent's own key stand for it.
KEY_S = 24 * 3600
GUARD_S = 600

_LIVE = ", ".join(f"'{state.value}'" for state in LIVE)

# SQL over a call `c`: its server wants a page opened first, and its agent to ask once more then.
# Source: MCP 2025-11-25, client/elicitation, URLElicitationRequiredError.
_PAGE_FIRST = """(
    SELECT position('"code":-32042'::bytea IN r.body) > 0
    FROM calls_result r WHERE r.call_id = c.id AND r.kind = 'error')"""

# SQL over a key `k`: may another call have it? What certainly never ran keeps no guard from
# sending, and no agent from trying once more what failed on its way to the server.
_FREE = f"""COALESCE((
    SELECT CASE
        WHEN c.state IN ({_LIVE}) THEN false
        WHEN c.executed = 'no' AND (k.guard OR c.state = 'failed') THEN true
        WHEN c.executed = 'reported' AND {_PAGE_FIRST} THEN true
        ELSE c.finished_at + make_interval(secs => k.lasts_s) <= clock_timestamp() END
    FROM calls_call c WHERE c.id = k.call_id
    -- Not there: not yet, for who looks from before its commit, or never, once that is long ago.
), k.at < clock_timestamp() - interval '1 minute')"""

# Written with the call's own first row, in the same commit: OPEN opens a call with a key only if
# it has it. A line's id is the key's, so that two with one key never share a statement.
CLAIM_KEY = Statement(
    "once",
    f"""
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id text, call_id uuid, lasts_s int, guard boolean)
), taken AS (
    INSERT INTO calls_once AS k (id, call_id, lasts_s, guard, at)
    -- In one order, whoever comes: two processes never wait for each other.
    SELECT id, call_id, lasts_s, guard, clock_timestamp() FROM asked ORDER BY id
    ON CONFLICT (id) DO UPDATE SET call_id = EXCLUDED.call_id, at = EXCLUDED.at
    -- A line may come twice when the first commit's fate was unknown.
    WHERE k.call_id = EXCLUDED.call_id OR {_FREE}
    RETURNING id
)
SELECT a.id, t.id IS NOT NULL FROM asked a LEFT JOIN taken t ON t.id = a.id
""",
    order=-2,
)

# The call that a key stands for.
FIRST = f"""
    SELECT c.id, c.state, c.tool_name, c.arguments_digest
    FROM calls_once k JOIN calls_call c ON c.id = k.call_id
    WHERE k.id = %s AND NOT {_FREE}
"""

FORGET = f"""
    DELETE FROM calls_once k WHERE k.at < clock_timestamp() - interval '1 day' AND {_FREE}
"""

# SQL over a call `p` that may have run, and whose agent may not know what became of it. Of the last
# two months alone, so that PostgreSQL opens few partitions: no call waits longer (KEPT_S in
# calls/record/listed_tasks.py), and no clock of ours is a month ahead.
UNHEARD = "(p.executed = 'unknown' OR p.unheard_at IS NOT NULL)"
LATELY = f"""{UNHEARD} AND p.executed <> 'no' AND p.state <> 'held'
    AND COALESCE(p.finished_at, clock_timestamp())
        > clock_timestamp() - make_interval(secs => {GUARD_S})
    AND p.id BETWEEN {FIRST_ID.format(moment="now() - interval '62 days'")}
        AND {FIRST_ID.format(moment="now() + interval '31 days'")}"""
ALIKE = f"""
    SELECT p.id, p.state, p.tool_name, p.arguments_digest FROM calls_call p
    WHERE p.agent_id = %s AND p.tool_id = %s AND p.arguments_digest = %s AND {LATELY}
    ORDER BY p.id DESC LIMIT 1
"""
# Whatever became of it.
REPEATED = """
    SELECT p.id FROM calls_call p
    WHERE p.agent_id = %s AND p.tool_id = %s AND p.arguments_digest = %s AND p.id >= %s
      AND p.executed <> 'no'
    ORDER BY p.id DESC LIMIT 1
"""


class SameCall(NamedTuple):
    """A row of FIRST or ALIKE: what was asked for before."""

    id: UUID
    state: str
    tool_name: str
    arguments_digest: str


class KeyClaim(NamedTuple):
    """The answer of CLAIM_KEY."""

    id: str
    is_taken: bool


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """`id` says nothing of what an agent chose as its key."""

    id: str
    guard: bool

    def line(self, call_id: UUID) -> dict[str, Any]:
        """One line of CLAIM_KEY."""
        lasts_s = GUARD_S if self.guard else KEY_S
        return {"id": self.id, "call_id": call_id, "lasts_s": lasts_s, "guard": self.guard}


def agent_key(agent_id: int, key: str) -> ClaimedKey:
    """The key that an agent chose."""
    return ClaimedKey(_digest("key", str(agent_id), key), guard=False)


def duplicate_key(agent_id: int, tool_id: int, arguments_digest: str) -> ClaimedKey:
    """The key that all duplicates of a call share: equal agent, tool and arguments."""
    return ClaimedKey(_digest("guard", str(agent_id), str(tool_id), arguments_digest), guard=True)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
