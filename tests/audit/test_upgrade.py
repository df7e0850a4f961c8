"""A record that an earlier release sealed, brought to the schema of this one."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from audit import verify
from audit.signing import SigningKey, read_key, write_key
from tests.database import Databases, manage

# 700 ids, of which 14 stay without an entry, and so many entries that were sealed.
IDS, ENTRIES, SEALED = 700, 686, 650
BATCH = 230
# The first 300 came last: their transaction took its time.
LATE = 300
WRITTEN = """
    INSERT INTO audit_entry (action, actor_kind, actor, reason)
    SELECT 'note.made', 'system', 'countersign', 'Note ' || n || '.'
    FROM generate_series(1, %s) n WHERE n %% 50 <> 7
"""
AS_JSON = """
    SELECT id, json_build_object('id', id, 'at', to_char(at AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'transaction', transaction::text, 'action', action, 'actor_kind', actor_kind,
        'actor_id', actor_id, 'actor', actor, 'call_id', call_id, 'seq', seq,
        'from_state', from_state, 'to_state', to_state, 'agent_id', agent_id, 'agent', agent,
        'person_id', person_id, 'person', person, 'server', server, 'tool', tool,
        'definition_digest', definition_digest, 'arguments_digest', arguments_digest,
        'result_digest', result_digest, 'reason', reason, 'details', details)::text
    FROM audit_entry ORDER BY id
"""
LINES = """
    INSERT INTO audit_line (entry_id, at, action, actor, agent, person, server, tool, definition,
        effect, rule)
    SELECT id, at, action, '', '', '', '', '', '', '', '' FROM audit_entry
    WHERE id IN (SELECT entry_id FROM audit_leaf)
"""


class FirstFormat:
    """The sealer as it was while audit_leaf and audit_node held the tree."""

    def __init__(self, link: psycopg.Connection[Any], key: SigningKey) -> None:
        self.link, self.key, self.tree = link, key, verify.Peaks()

    def seal(self, ids: list[int], bodies: dict[int, bytes]) -> None:
        for pk in ids:
            salt = os.urandom(16)
            hashed = verify.leaf_hash(salt, bodies[pk])
            self.link.execute(
                "INSERT INTO audit_leaf (index, entry_id, salt, hash) VALUES (%s, %s, %s, %s)",
                [self.tree.size, pk, salt, hashed],
            )
            for level, index, made in self.tree.append(hashed):
                if level % 8 == 0:
                    self.link.execute(
                        "INSERT INTO audit_node (level, index, hash) VALUES (%s, %s, %s)",
                        [level, index, made],
                    )

    def sign(self) -> None:
        size, root = self.tree.size, self.tree.root()
        text = verify.checkpoint_text(self.key.key, size, root, "2026-01-01T00:00:00.000000Z")
        self.link.execute(
            "INSERT INTO audit_checkpoint (size, root, note) VALUES (%s, %s, %s)",
            [size, root, f"{text}\n{self.key.sign(text)}"],
        )


def bodies(link: psycopg.Connection[Any]) -> dict[int, bytes]:
    rows = link.execute(AS_JSON).fetchall()
    return {pk: verify.canonical(json.loads(text)) for pk, text in rows}


@pytest.fixture
def upgraded(databases: Databases, tmp_path: Path) -> Iterator[dict[str, str]]:
    urls = databases.empty()
    env = urls | {"COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "key")}
    try:
        manage(["migrate", "audit", "0001", "--database=owner", "-v0"], env=env)
        with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
            seal_as_before(link, tmp_path / "key")
        manage(["migrate", "--database=owner", "-v0"], env=env)
        manage(["grant_app_role"], env=env)
        yield env
    finally:
        databases.drop(urls)


def seal_as_before(link: psycopg.Connection[Any], path: Path) -> None:
    link.execute(WRITTEN, [IDS])
    write_key(path)
    key = replace(read_key(path), name="countersign")
    link.execute(
        "INSERT INTO audit_signer (public, first_size, from_secret) VALUES (%s, 0, false)",
        [key.key.public],
    )
    made, sealer = bodies(link), FirstFormat(link, key)
    ids = list(made)[LATE:SEALED] + list(made)[:LATE]
    for n in range(0, len(ids), BATCH):
        sealer.seal(ids[n : n + BATCH], made)
        sealer.sign()
    link.execute(LINES)


@pytest.mark.usefixtures("db")
# Every migration from the first on.
@pytest.mark.long
def test_what_was_sealed_before_holds_and_goes_on(
    upgraded: dict[str, str], databases: Databases
) -> None:
    sealing = {"DATABASE_URL": databases.seal_url(upgraded)}

    assert (
        manage(["audit_seal"], env=upgraded | sealing)
        == f"{ENTRIES - SEALED + 1} entries sealed.\n"
    )

    assert "entries hold" in manage(["audit_verify"], env=upgraded)
    # It goes on under a name of its own, which the first entry of this format says.
    before, now = manage(["audit_key"], env=upgraded).splitlines()
    assert re.fullmatch(rf"countersign\+.* until {SEALED}", before)
    assert now.startswith("countersign.invalid/")
    with psycopg.connect(upgraded["DATABASE_URL"]) as app:
        (counts,) = app.execute(
            "SELECT count(*), count(DISTINCT salt) FROM audit_entry WHERE format = 1"
        )
        (first,) = app.execute(
            "SELECT action, details FROM audit_entry WHERE format = 2 ORDER BY id LIMIT 1"
        )
        (last,) = app.execute("SELECT note FROM audit_checkpoint WHERE size = %s", [SEALED])
        (note,) = app.execute("SELECT note FROM audit_checkpoint ORDER BY id DESC LIMIT 1")
    assert counts == (ENTRIES, ENTRIES)
    assert first[0] == "record.format"
    assert first[1]["end"] == last[0]
    assert first[1]["size"] == SEALED
    assert now.startswith(f"{first[1]['name']}+")
    assert note[0].startswith(f"{first[1]['name']}\n{ENTRIES + 1}\n")
