"""A record of format 1 as an upgrade left it: sealed under the name that every installation had, it
goes on under one of its own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from audit import verify
from tests.database import Databases, manage

ENTRIES, SEALED = 690, 650
WRITTEN = """
    INSERT INTO audit_entry (action, actor_kind, actor, reason)
    SELECT 'note.made', 'system', 'countersign', 'Note ' || n || '.'
    FROM generate_series(1, %s) n
"""
# Past every trigger, one of which writes entries.
PAST = "SET LOCAL session_replication_role = replica; "
OLD_FORMAT = PAST + "UPDATE audit_entryrow SET format = 1"
OLD_NAME = (
    PAST
    + """
    ALTER TABLE audit_signer ALTER COLUMN name SET DEFAULT 'countersign';
    UPDATE audit_origin SET name = 'countersign';
"""
)
# What the upgrade to format 2 left.
OWN_NAME = PAST + "UPDATE audit_origin SET name = 'countersign.invalid/' || md5('own')"
FIRST_OF_FORMAT_2 = """
    INSERT INTO audit_entry (action, actor_kind, actor, details)
    SELECT 'record.format', 'system', 'countersign', jsonb_build_object(
        'format', 2, 'name', o.name, 'size', c.size, 'end', c.note)
    FROM audit_origin o, (SELECT size, note FROM audit_checkpoint ORDER BY id DESC LIMIT 1) c
"""
# The words that a leaf of format 1 commits to.
AS_JSON = """
    SELECT salt, json_build_object('id', id, 'at', to_char(at AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'transaction', transaction::text, 'action', action, 'actor_kind', actor_kind,
        'actor_id', actor_id, 'actor', actor, 'call_id', call_id, 'seq', seq,
        'from_state', from_state, 'to_state', to_state, 'agent_id', agent_id, 'agent', agent,
        'person_id', person_id, 'person', person, 'server', server, 'tool', tool,
        'definition_digest', definition_digest, 'arguments_digest', arguments_digest,
        'result_digest', result_digest, 'reason', reason, 'details', details)::text
    FROM audit_entry WHERE format = 1 ORDER BY id
"""


@pytest.fixture
def env(fresh_database: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return fresh_database | {"COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "key")}


@pytest.fixture
def past(databases: Databases, env: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """Past every right."""
    with databases.superuser(env) as link:
        yield link


def write(link: psycopg.Connection[Any], count: int) -> None:
    link.execute(WRITTEN, [count])
    link.execute(OLD_FORMAT)


def root_of_words(link: psycopg.Connection[Any]) -> bytes:
    """Of the sealed entries, computed from their words alone."""
    rows = link.execute(AS_JSON).fetchall()
    assert len(rows) == ENTRIES
    tree = verify.Peaks()
    for salt, text in rows[:SEALED]:
        list(tree.append(verify.leaf_hash(salt, verify.canonical(json.loads(text)))))
    return tree.root()


@pytest.mark.long
@pytest.mark.usefixtures("db")
def test_what_was_sealed_before_holds_and_goes_on(
    databases: Databases, env: dict[str, str], past: psycopg.Connection[Any]
) -> None:
    sealer = env | {"DATABASE_URL": databases.seal_url(env)}
    past.execute(OLD_NAME)
    write(past, SEALED)
    assert manage(["audit_seal"], env=sealer) == f"{SEALED} entries sealed.\n"
    write(past, ENTRIES - SEALED)
    past.execute(OWN_NAME)
    past.execute(FIRST_OF_FORMAT_2)

    assert manage(["audit_seal"], env=sealer) == f"{ENTRIES - SEALED + 1} entries sealed.\n"

    assert "entries hold" in manage(["audit_verify"], env=env)
    before, now = manage(["audit_key"], env=env).splitlines()
    assert re.fullmatch(rf"countersign\+.* until {SEALED}", before)
    assert now.startswith("countersign.invalid/")
    (last, root), (note, _) = past.execute(
        "SELECT note, root FROM audit_checkpoint ORDER BY id"
    ).fetchall()
    assert root == root_of_words(past)
    assert last.startswith(f"countersign\n{SEALED}\n")
    assert note.startswith(f"{now.split('+')[0]}\n{ENTRIES + 1}\n")
