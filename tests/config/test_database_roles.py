"""What each database role could do: docs/en/concepts/security-model.md, each sentence tried."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import Agent, User
from audit.services import SYSTEM, record
from calls.record.states import State
from policies.models import Effect, Rule
from tests.approvals.test_quorum import approver
from tests.config.test_maintenance import result, sign, urls
from tests.console import scenery
from tests.database import Databases
from tests.sealing import seal_all

__all__ = ["urls"]

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = Path(__file__).parents[2] / "docs" / "en" / "concepts" / "security-model.md"
APP, SEAL, MAINTENANCE, OWNER = (
    "The application's role",
    "The sealer's role",
    "The maintenance role",
    "The owner",
)
# A list of the document, by how its sentence begins.
LIST = re.compile(r"^(The [\w' ]+ (?:can|cannot))\n\n((?:- .*\n(?:  .*\n)*)+)", re.MULTILINE)

ENTRY = "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('note.made', 'system', 'x')"
NAME = (
    "INSERT INTO audit_name (kind, text, salt, commitment)"
    " SELECT 'person', 'alice', salt, audit_commitment(salt, 'person', NULL, 'alice', '', '')"
    " FROM (SELECT uuid_send(gen_random_uuid()) AS salt) fresh"
)
VOTE = (
    "INSERT INTO approvals_vote (approval_id, person_id, approve, reason, seen_digest, at)"
    " SELECT c.id, p.id, true, '', c.call_digest, now() FROM calls_call c, accounts_user p"
    " WHERE c.state = 'held' AND p.username = '{}'"
)
MOVE = "UPDATE calls_call SET state = 'withdrawn', seq = seq + 1 WHERE state = 'held'"
MOVED = (
    "INSERT INTO audit_entry (action, actor_kind, actor, call_id, seq, from_state, to_state)"
    " SELECT 'call.withdrawn', 'system', 'x', id, 2, 'held', 'withdrawn' FROM calls_call"
    " WHERE state = 'held'"
)
# As the one that is held, but allowed: a worker would send it.
OPENED = (
    "INSERT INTO audit_entry (action, actor_kind, actor, call_id, seq, to_state)"
    " VALUES ('call.queued', 'system', 'x', '01900000-0000-7000-8000-000000000001', 1, 'queued')",
    "INSERT INTO calls_call SELECT (jsonb_populate_record(c, jsonb_build_object("
    " 'id', '01900000-0000-7000-8000-000000000001', 'state', 'queued', 'effect', 'allow'))).*"
    " FROM calls_call c WHERE state = 'held'",
)
ERASED = (
    "INSERT INTO audit_entry (action, actor_kind, actor, call_id)"
    " SELECT 'payload.erased', 'system', 'x', id FROM calls_call WHERE state = 'withdrawn'"
)
ERASE = (
    "SELECT approvals_erase_payload(id, '{}', '{}', true) FROM calls_call WHERE state = 'withdrawn'"
)
TILE = "INSERT INTO audit_tile VALUES (7, 7, '', '')"
BATCH = "INSERT INTO audit_batch VALUES (7000, 1, '{[7,7]}', '')"
CHECKPOINT = "INSERT INTO audit_checkpoint (size, root, at, note) VALUES (7, '', now(), '')"
SIGNER = (
    "INSERT INTO audit_signer (public, first_size, from_secret, at) VALUES ('', 7, false, now())"
)
FORGET = "UPDATE audit_name SET salt = NULL, subject = NULL, text = '' WHERE text = 'A reason.'"
FORGOTTEN = (
    "INSERT INTO audit_entry (action, actor_kind, actor, details)"
    " SELECT 'record.forgotten', 'system', 'x',"
    " jsonb_build_object('commitments', jsonb_build_array(encode(commitment, 'hex')))"
    " FROM audit_name WHERE text = 'A reason.'"
)
LOCK = "SELECT pg_advisory_lock(hashtext('countersign audit'))"
SEALED = ("audit_tile", "audit_batch", "audit_checkpoint", "audit_signer")
# What a role reads, of whatever it is told.
READ = "SELECT count(*) FROM {}"

CAN: dict[tuple[str, str], tuple[str, ...]] = {
    (APP, "read every row; credentials"): (
        READ.format("accounts_user"),
        READ.format("calls_call"),
        READ.format("audit_checkpoint"),
        READ.format("registry_server"),
    ),
    (APP, "change agents, servers, rules, people"): (
        "UPDATE accounts_agent SET enabled = NOT enabled",
        "UPDATE registry_server SET url = 'http://127.0.0.1:1/'",
        "INSERT INTO accounts_user_groups (user_id, group_id)"
        " SELECT p.id, g.id FROM accounts_user p, auth_group g"
        " WHERE p.username = 'mallory' AND g.name = 'Approver'",
        "UPDATE accounts_user SET password = 'x'",
    ),
    (APP, "add entries of what"): (ENTRY,),
    (APP, "add names"): (NAME,),
    (APP, "vote in the name"): (VOTE.format("pat"),),
    (APP, "open a call in any"): (*OPENED, MOVED, MOVE),
    (APP, "pause everything"): (
        "INSERT INTO calls_pause (reason, by, began_at) VALUES ('x', 'x', now())",
        "INSERT INTO audit_rollback (origin, reason, noticed_at) VALUES (1, 'x', now())",
    ),
    (APP, "keep the sealer"): (LOCK,),
    (APP, "erase the payload of a call that has ended"): (MOVED, MOVE, ERASED, ERASE),
    (APP, "remove rows without a trigger"): (
        "DELETE FROM accounts_agenttoken",
        "DELETE FROM django_session",
        "DELETE FROM policies_rule",
        "DELETE FROM registry_toolset_tools",
    ),
    (SEAL, "read entries and names"): (READ.format("audit_entryrow"), READ.format("audit_name")),
    (SEAL, "add tiles"): (TILE, BATCH, CHECKPOINT, SIGNER),
    (SEAL, "sign what it likes"): (CHECKPOINT,),
    (MAINTENANCE, "see which calls"): ("SELECT call_id, kept_until FROM calls_result",),
    (MAINTENANCE, "remove parts"): ("DELETE FROM calls_resultpart",),
    (MAINTENANCE, "remove results as received"): ("DELETE FROM calls_receivedresult",),
    (MAINTENANCE, "remove checkpoints"): ("DELETE FROM audit_checkpoint WHERE size = 10",),
    (MAINTENANCE, "read and add entries"): (ENTRY, NAME, READ.format("audit_entry")),
    (MAINTENANCE, "let the database make"): ("SELECT core_make_months()",),
    (OWNER, "forget a name"): (FORGOTTEN, FORGET),
    (OWNER, "take the triggers"): (
        "ALTER TABLE audit_entryrow DISABLE TRIGGER USER",
        "UPDATE audit_entryrow SET at = now()",
        "ALTER TABLE audit_entryrow ENABLE TRIGGER USER",
    ),
}
CANNOT: dict[tuple[str, str], tuple[str, ...]] = {
    (APP, "change, remove or forget"): (
        "UPDATE audit_entryrow SET at = now()",
        "DELETE FROM audit_entryrow",
        "UPDATE audit_name SET text = 'x'",
        "DELETE FROM audit_name",
        FORGET,
    ),
    (APP, "give an entry"): tuple(
        f"INSERT INTO {table} (action, {column}) VALUES ({action}, {value})"
        for table, action in (("audit_entry", "'x'"), ("audit_entryrow", "1"))
        for column, value in (
            ("id", "-5"),
            ("at", "now()"),
            ("transaction", "'3'::xid8"),
            ("format", "1::smallint"),
            ("salt", "'x'"),
        )
    ),
    (APP, "add a name without"): (
        "INSERT INTO audit_name (kind, text, commitment) VALUES ('person', 'x', sha256('x'))",
        NAME.replace("'alice', '', ''", "'eve', '', ''"),
        NAME.replace("'person'", "'context'"),
    ),
    (APP, "add an entry that"): (
        "INSERT INTO audit_entryrow (action) VALUES (3)",
        "INSERT INTO audit_entryrow (action, actor, details) VALUES (1, 3, '[]')",
        FORGOTTEN,
        ENTRY.replace("note.made", "record.restored"),
    ),
    (APP, "move a call without"): (
        MOVE,
        "UPDATE calls_call SET arguments = '{}'",
        "UPDATE calls_result SET body = '{}'",
        "DELETE FROM calls_call",
    ),
    (APP, "report another course"): tuple(
        f"UPDATE calls_call SET {column} = {value}"
        for column, value in (
            ("executed", "'unknown'"),
            ("outcome", "'x'"),
            ("reason", "'x'"),
            ("result_digest", "'x'"),
            ("finished_at", "now()"),
        )
    ),
    (APP, "add a result"): (
        "INSERT INTO calls_result (call_id, kind, body)"
        " SELECT id, 'result', '{}' FROM calls_call WHERE state = 'held'",
        "INSERT INTO calls_resultpart (call_id, number, body)"
        " SELECT id, 0, '{}' FROM calls_call WHERE state = 'held'",
    ),
    (APP, "vote for a person"): (
        VOTE.format("mallory"),
        "UPDATE approvals_vote SET approve = NOT approve",
        "UPDATE approvals_approval SET state = 'approved', decided_at = now()",
    ),
    (APP, "add a tile"): (
        TILE,
        BATCH,
        CHECKPOINT,
        SIGNER,
        "UPDATE audit_checkpoint SET note = ''",
        "DELETE FROM audit_tile",
    ),
    (APP, "begin another origin"): (
        "INSERT INTO audit_origin (number, index, kept, system_identifier, table_oid)"
        " VALUES (9, 0, 0, '', 0)",
        "INSERT INTO audit_secret (fingerprint) VALUES ('x')",
    ),
    (APP, "empty a table"): ("TRUNCATE django_session", "TRUNCATE calls_call"),
    (APP, "reach calls or results"): (
        READ.format("calls_call_first"),
        "DELETE FROM calls_result_first",
        "UPDATE calls_call_later SET state = 'succeeded'",
    ),
    (APP, "make a table"): (
        "CREATE TABLE mine (a int)",
        "CREATE TEMPORARY TABLE mine (a int)",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA mine",
    ),
    (APP, "take a trigger"): (
        "ALTER TABLE audit_entryrow DISABLE TRIGGER USER",
        "CREATE OR REPLACE FUNCTION audit_insert_entry() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'",
        "SET session_replication_role = replica",
    ),
    (SEAL, "add an entry"): (ENTRY, NAME, "INSERT INTO audit_entryrow (action) VALUES (1)"),
    (SEAL, "change or remove"): (
        *(f"DELETE FROM {table}" for table in SEALED),
        *(f"TRUNCATE {table}" for table in SEALED),
        "UPDATE audit_checkpoint SET note = ''",
        "UPDATE audit_tile SET root = ''",
        FORGET,
    ),
    (SEAL, "read calls"): tuple(
        READ.format(table)
        for table in ("calls_call", "accounts_user", "registry_server", "calls_result")
    ),
    (MAINTENANCE, "read calls"): (
        *(READ.format(table) for table in ("calls_call", "accounts_user", "registry_server")),
        "SELECT body FROM calls_result",
        "SELECT body FROM calls_resultpart",
        "SELECT sealed FROM calls_receivedresult",
    ),
    (MAINTENANCE, "change anything"): (
        FORGET,
        "UPDATE audit_checkpoint SET note = ''",
        "UPDATE calls_result SET kept_until = now()",
        "UPDATE audit_entryrow SET at = now()",
        "DELETE FROM audit_entryrow",
    ),
    (MAINTENANCE, "seal or sign"): (TILE, BATCH, CHECKPOINT, SIGNER),
}
# Beside what it can: what holds it as long as it does nothing about that.
HELD: dict[tuple[str, str], tuple[str, ...]] = {
    (MAINTENANCE, "remove checkpoints"): ("DELETE FROM audit_checkpoint",),
    (OWNER, "forget a name"): (
        FORGET,
        "UPDATE audit_name SET text = 'x'",
        "UPDATE audit_entryrow SET at = now()",
        "DELETE FROM audit_entryrow",
        "TRUNCATE audit_entryrow",
        "DELETE FROM audit_tile",
    ),
}
REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)


@pytest.fixture
def record_with_calls(scout: Agent, olga: User, mallory: User, scout_token: str) -> None:
    """A held call that pat may decide, one that came back, and a sealed record."""
    tool = scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())
    ended = scenery.call(scout, tool, scenery.MAIL, State.QUEUED)
    scenery.run(ended)
    scenery.finish(ended, {"content": []})
    scenery.call(scout, tool, scenery.MAIL, State.HELD)
    approver("pat")
    Rule.objects.create(name="all", effect=Effect.ALLOW)
    Session.objects.create(session_key="x", session_data="", expire_date=timezone.now())
    record("note.made", actor=SYSTEM, reason="A reason.")
    seal_all()


@pytest.fixture
def ways(record_with_calls: None, databases: Databases, urls: Mapping[str, str]) -> dict[str, str]:
    """The maintenance role's is into a database of its own."""
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        sign(owner)
        owner.execute(ENTRY)
        owner.execute(
            ENTRY.replace("(action,", "(reason, action,").replace("('", "('A reason.', '")
        )
    with databases.superuser(urls) as past:
        result(past, kept="1 day")
    return {
        APP: os.environ["DATABASE_URL"],
        SEAL: databases.seal_url(os.environ),
        MAINTENANCE: urls["DATABASE_MAINTENANCE_URL"],
        OWNER: os.environ["DATABASE_OWNER_URL"],
    }


def attempt(url: str, statements: tuple[str, ...], *, fails: bool) -> list[str]:
    """Those that went otherwise. Nothing is kept of any."""
    other: list[str] = []
    with psycopg.connect(url) as link:
        # Begins the transaction of which each statement is a part.
        link.execute("SELECT 1")
        for statement in statements:
            try:
                with link.transaction():
                    done = link.execute(statement)
                if fails or (not statement.startswith(("SELECT", "ALTER")) and not done.rowcount):
                    other.append(statement)
            except REFUSED as error:
                if not fails:
                    other.append(f"{statement}: {error}")
        link.rollback()
    return other


@pytest.mark.long
def test_each_sentence_is_tried_and_true(ways: dict[str, str]) -> None:
    other = []
    for sentences, fails in ((CAN, False), (CANNOT, True), (HELD, True)):
        for (role, sentence), statements in sentences.items():
            went = attempt(ways[role], statements, fails=fails)
            other += [(role, sentence, statement) for statement in went]

    assert not other, "\n".join(map(str, other))


def test_no_sentence_is_left_out() -> None:
    tried = {
        **{(f"{role} can", words): True for role, words in CAN},
        **{(f"{role} cannot", words): True for role, words in CANNOT},
    }
    written = [
        (head, line.strip())
        for head, lines in LIST.findall(DOCUMENT.read_text())
        for line in re.split(r"^- ", lines, flags=re.MULTILINE)[1:]
    ]
    missing = [
        (head, line)
        for head, line in written
        if not any(head == one and line.startswith(words) for one, words in tried)
    ]

    assert missing == []
    assert len(written) == len(tried)


def test_the_application_reads_every_table_and_empties_none() -> None:
    """And no table that is made later is forgotten in the document's lists."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as link:
        rows: list[Any] = link.execute(
            "SELECT relname, has_table_privilege(oid, 'SELECT'),"
            " has_table_privilege(oid, 'TRUNCATE') FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relispartition"
        ).fetchall()

    assert [name for name, reads, empties in rows if not reads or empties] == []
